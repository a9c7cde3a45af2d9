// The reference of one model (tests/golden/models/NAME.json, made by tools/references/make_references.py; docs/numerics.md says what its tolerances are).
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

#include "base/error.h"

namespace plow {

struct GoldenLogits {
  uint32_t position = 0;            // of the token after which they are, in prompt + greedy answer
  std::vector<uint32_t> ids;        // whose logits follow
  std::vector<double> logits;
};

struct GoldenPrompt {
  std::vector<uint32_t> ids;
  std::vector<uint32_t> greedy;
  std::vector<double> margins;      // of each greedy token: best logit minus second best
  std::vector<GoldenLogits> logits;

  // The prompt and its answer, which teacher forcing feeds.
  std::vector<uint32_t> sequence() const;
};

struct Golden {
  double tolerance_f32 = 0;      // of a logit, cache in f32
  double tolerance_kv_bf16 = 0;  // cache in bf16
  double tolerance_bf16 = 0;     // and products' inputs in bf16
  double reference_error = 0;    // of the float32 run that chose the greedy tokens; 0 when they were chosen in float64
  std::vector<GoldenPrompt> prompts;
};

Result<Golden> read_golden(const std::filesystem::path& path);

}  // namespace plow
