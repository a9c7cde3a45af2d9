// Qwen2, Qwen2.5. Fields: transformers' Qwen2Config and modeling_qwen2.py (5.24): queries, keys and values
// have a bias, whatever the configuration says.
#include "models/qwen.h"

namespace plow {

Status read_qwen_windows(const JsonFields& config, DecoderSpec& spec) {
  PLOW_TRY(const bool use_window, config.boolean_or("use_sliding_window", false));
  PLOW_TRY(const uint32_t given_window, read_window(config, "sliding_window", 4096));
  PLOW_TRY(const int64_t first, config.integer_or("max_window_layers", 28, 0, JsonFields::kMaxDimension));
  const uint32_t window = use_window ? given_window : 0;
  PLOW_TRY(const bool has_types, read_layer_types(config, window, spec));
  for (size_t i = 0; i < spec.layers.size() && !has_types; ++i) {
    if (static_cast<int64_t>(i) >= first) spec.layers[i].window = window;
  }
  return {};
}

Result<OpGraph> build_qwen2(ModelSource& source) {
  const JsonFields& config = source.config;
  PLOW_TRY(DecoderSpec spec, read_decoder(config, {}));
  PLOW_TRY(spec.activation, read_activation(config, "hidden_act", "silu"));
  spec.qkv_bias = true;
  PLOW_TRY_STATUS(read_qwen_windows(config, spec));
  PLOW_TRY_STATUS(expect_false(config, "use_mrope"));  // Qwen2.5 says it
  PLOW_TRY(Rope rope, read_rope(config, {10000.0, spec.head_dim, spec.max_position}));
  spec.ropes = {std::move(rope)};
  return build_decoder(source, spec);
}

}  // namespace plow
