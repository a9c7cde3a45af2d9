// For tests: one small instance of every operator with random inputs, and how to run its reference alone.
#pragma once

#include "graph/eval_context.h"
#include "graph/op_def.h"
#include "ops/tile_rule.h"

#include <random>
#include <string>
#include <vector>

namespace plow {

// Rows of the step are those of one sequence in slot 0, positions first_position, first_position + 1, ...
struct TestInstance {
  Op op;
  std::vector<ValueType> inputs;
  Attributes attributes{};
  std::vector<Matrix> values{};  // of the inputs; of a cache: what the positions before and in the step hold,
                                 // keys and values alike
  std::vector<uint32_t> exclusive{};  // by input: u32 values are below this
  uint32_t tokens = 0;
  uint32_t samples = 0;
  uint32_t first_position = 0;

  ValueType output() const;
  bool takes_cache() const;  // as its last input
  // The output; of kv_append, what it stores at the step's positions: keys and values side by side in one
  // number.
  Matrix run() const;
};

std::vector<TestInstance> random_instances(std::mt19937& random);

}  // namespace plow
