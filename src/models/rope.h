// Rotary position embeddings: from the configuration's fields to inverse frequencies.
//
// Formulas: transformers' modeling_rope_utils.py (5.24); linear: kaiokendev's interpolation; yarn: arXiv
// 2309.00071; llama3: the published model's reference. All of it in double: transformers computes frequencies
// in float32, which differs by about 1e-7 of each.
#pragma once

#include "base/error.h"
#include "checkpoint/json.h"

#include <vector>

namespace plow {

struct Rope {
  std::vector<double> inverse_frequencies;  // [head_dim / 2]
  float attention_factor = 1.0f;            // of cosines and sines
  bool operator==(const Rope&) const = default;
};

// What rope parameters are completed by where they are silent.
struct RopeDefaults {
  double theta = 10000.0;
  uint32_t head_dim = 0;
  uint32_t max_position = 0;
};

// The ropes of a model whose layers all have the same: `rope_theta` and `rope_scaling`, or `rope_parameters`
// (transformers 5). "dynamic" changes frequencies only beyond max_position_embeddings, where a graph does not
// go, and hence is the default. Errors (kInput): a kind that is not known, a parameter that is missing or out
// of range.
Result<Rope> read_rope(const JsonFields& config, const RopeDefaults& defaults);

// One set of parameters: {rope_type, rope_theta, factor, ...}; null for what `rope_scaling: null` means.
Result<Rope> read_rope_parameters(const std::optional<JsonFields>& parameters, const RopeDefaults& defaults);

}  // namespace plow
