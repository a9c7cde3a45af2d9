// Qwen3, dense. Fields: transformers' Qwen3Config and modeling_qwen3.py (5.24): a norm of each query and key
// head.
#include "models/qwen.h"

namespace plow {

Result<OpGraph> build_qwen3(ModelSource& source) {
  const JsonFields& config = source.config;
  PLOW_TRY(DecoderSpec spec, read_decoder(config, {.head_dim = 128}));
  PLOW_TRY(spec.activation, read_activation(config, "hidden_act", "silu"));
  PLOW_TRY(spec.qkv_bias, config.boolean_or("attention_bias", false));
  spec.output_bias = spec.qkv_bias;
  spec.qk_norm = true;
  PLOW_TRY_STATUS(read_qwen_windows(config, spec));
  PLOW_TRY(Rope rope, read_rope(config, {10000.0, spec.head_dim, spec.max_position}));
  spec.ropes = {std::move(rope)};
  return build_decoder(source, spec);
}

}  // namespace plow
