// The float64 evaluator: runs an operator graph step by step on doubles. It is the oracle of every kernel and of the compiler.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "abi/step.h"
#include "base/error.h"
#include "graph/graph.h"
#include "graph/op_def.h"

namespace plow {

// Gives the rows of a weight tensor as floats that hold its exact values; the checkpoint implements it.
struct WeightSource {
  virtual ~WeightSource() = default;
  // Writes rows [first, first + count) of the named tensor (of `cols` columns) to `out`.
  virtual Status read_rows(const std::string& name, uint32_t first, uint32_t count, uint32_t cols, float* out) const = 0;
};

// One step, as the step descriptor says it, on host vectors.
struct EvalStep {
  std::vector<Span> spans;
  std::vector<uint32_t> token_ids;    // [T]
  std::vector<uint32_t> sample_rows;  // [S]
  std::vector<SamplingParams> sampling;  // [S]
};

// The keys and values of one layer: for each slot and position, [kv_heads * head_dim] doubles each.
struct EvalKv {
  std::vector<std::vector<double>> keys;    // [slot] -> position-major
  std::vector<std::vector<double>> values;  // [slot]
};

struct EvalContext {
  const OpGraph* graph = nullptr;
  const EvalStep* step = nullptr;
  std::vector<uint32_t> row_slots;   // [T], from the spans
  std::vector<uint32_t> positions;   // [T]
  std::vector<EvalKv>* kv = nullptr;            // by kv state
  std::vector<std::vector<uint32_t>>* history = nullptr;  // [slot] -> tokens by position
};

// Holds the weights as doubles (loaded once) and the cache between steps.
class Evaluator {
 public:
  static Result<Evaluator> create(const OpGraph& graph, const WeightSource& weights, uint32_t max_slots);

  // Runs one step; returns every node's value (leaves included; kv nodes are empty).
  std::vector<Matrix> run(const EvalStep& step);

 private:
  const OpGraph* graph_ = nullptr;
  std::vector<Matrix> leaves_;  // by node
  std::vector<EvalKv> kv_;
  std::vector<std::vector<uint32_t>> history_;
};

}  // namespace plow
