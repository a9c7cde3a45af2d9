// The float64 evaluator: runs an operator graph step by step on doubles. It is the oracle of every kernel and
// of the compiler.
#pragma once

#include "base/error.h"
#include "graph/eval_context.h"
#include "graph/graph.h"
#include "graph/op_def.h"

#include <cstdint>
#include <span>
#include <vector>

namespace plow {

// Gives the rows of a weight tensor as floats that hold its exact values; the checkpoint implements it.
struct WeightSource {
  virtual ~WeightSource() = default;
  // Writes rows [first, first + count) of the named tensor (of `cols` columns) to `out`.
  virtual Status read_rows(const std::string& name, uint32_t first, uint32_t count, uint32_t cols,
                           float* out) const = 0;
};

// Holds the weights (loaded once, rounded to the dtype that the graph stores them in) and the cache between
// steps. Everything else is exact but for double's rounding: neither activations nor keys and values are
// rounded to the dtypes of their nodes.
class Evaluator {
 public:
  // `graph` must outlive the evaluator. REQUIRES a graph that verifies. Errors: those of `weights`.
  static Result<Evaluator> create(const OpGraph& graph, const WeightSource& weights, uint32_t max_slots);

  // Runs one step; returns every node's value (step inputs included; weights, constants and kv nodes are
  // empty). REQUIRES a step as abi/step.h defines it: token ids below the vocabulary, slots below max_slots,
  // spans that tile the rows and go on where their sequence stopped or before.
  std::vector<Matrix> run(const EvalStep& step);

  // The same step, but returns the value of one node and frees the others as soon as they have been used: for
  // long prompts.
  Matrix run_for(const EvalStep& step, NodeId wanted);

 private:
  std::vector<Matrix> run_nodes(const EvalStep& step, const std::vector<uint32_t>& last_use);

  const OpGraph* graph_ = nullptr;
  std::vector<Matrix> leaves_;  // by node
  std::vector<EvalKv> kv_;
  std::vector<std::vector<uint32_t>> history_;
};

}  // namespace plow
