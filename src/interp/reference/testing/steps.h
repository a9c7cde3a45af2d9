// Steps for tests: spans of tokens whose last row is sampled greedily.
#pragma once

#include "interp/reference/machine.h"

#include <vector>

namespace plow::reference {

inline SamplingParams greedy() {
  SamplingParams params{};
  params.flags = kSampleGreedy;
  params.temperature = 1;
  params.top_p = params.repetition_penalty = 1;
  return params;
}

struct Part {
  uint32_t slot, first_position;
  std::vector<uint32_t> tokens;
};

inline StepInput step_of(const std::vector<Part>& parts, uint32_t program = 0, uint32_t n_steps = 1) {
  StepInput input;
  input.program = program;
  input.n_steps = n_steps;
  for (const Part& part : parts) {
    const auto first = static_cast<uint32_t>(input.token_ids.size());
    input.spans.push_back({first, static_cast<uint32_t>(part.tokens.size()), part.slot, part.first_position});
    input.token_ids.insert(input.token_ids.end(), part.tokens.begin(), part.tokens.end());
    input.sample_rows.push_back(static_cast<uint32_t>(input.token_ids.size()) - 1);
    input.sampling.push_back(greedy());
  }
  return input;
}

inline void sample_too(StepInput& input, std::initializer_list<uint32_t> rows) {
  for (const uint32_t row : rows) {
    input.sample_rows.push_back(row);
    input.sampling.push_back(greedy());
  }
}

// A prompt in two chunks beside another sequence, then decoding of both, then a third joins, then three steps
// at one doorbell. Program 0 takes few rows (at least 3), program 1 many (at least 20, 6 samples); tokens are
// below 64. Rows of every row tile of 4 are sampled.
inline std::vector<StepInput> mixed_steps() {
  std::vector<StepInput> steps = {
      step_of({{0, 0, {5, 9, 33, 21, 12, 8, 40, 3, 9, 11, 9, 2, 50, 63, 0, 7, 7}}, {1, 0, {17, 3, 2}}}, 1),
      step_of({{1, 3, {44}}, {0, 17, {1, 2, 3, 4, 5}}}, 1), step_of({{0, 22, {60}}, {1, 4, {61}}}),
      step_of({{2, 0, {27}}, {1, 5, {62}}, {0, 23, {10}}}), step_of({{2, 1, {6}}, {0, 24, {11}}}, 0, 3)};
  sample_too(steps[0], {1, 6, 10, 13});
  return steps;
}

}  // namespace plow::reference
