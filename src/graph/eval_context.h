// What the float64 reference of an operator may see besides its inputs: the step and the state between steps.
#pragma once

#include "abi/step.h"
#include "graph/graph.h"

#include <cstdint>
#include <vector>

namespace plow {

// One step, as the step descriptor says it, on host vectors.
struct EvalStep {
  std::vector<Span> spans;
  std::vector<uint32_t> token_ids;       // [T]
  std::vector<uint32_t> sample_rows;     // [S]
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
  std::vector<uint32_t> row_slots;                        // [T], from the spans
  std::vector<uint32_t> positions;                        // [T]
  std::vector<EvalKv>* kv = nullptr;                      // by kv state
  std::vector<std::vector<uint32_t>>* history = nullptr;  // [slot] -> tokens by position
};

}  // namespace plow
