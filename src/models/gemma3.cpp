// Gemma 3, text. Fields: transformers' Gemma3TextConfig and modeling_gemma3.py (5.24). Layers with a window
// have a rope of their own.
#include "models/decoder.h"

#include <cmath>

namespace plow {
namespace {

constexpr uint32_t kGlobal = 0, kLocal = 1;  // ropes
constexpr double kGlobalTheta = 1e6, kLocalTheta = 1e4;

// layer_types, or every sliding_window_pattern-th layer sees everything.
Status read_layers(const JsonFields& config, DecoderSpec& spec) {
  PLOW_TRY(const uint32_t window, read_window(config, "sliding_window", 4096));
  PLOW_TRY(const int64_t pattern, config.positive_or("sliding_window_pattern", 6));
  PLOW_TRY(const bool has_types, read_layer_types(config, window, spec));
  if (has_types) config.ignore({"_sliding_window_pattern"});  // saved beside what was made of it
  if (!has_types && window == 0)
    return config.error("sliding_window", "a positive integer where there is no layer_types");
  for (size_t i = 0; i < spec.layers.size(); ++i) {
    if (!has_types && (i + 1) % static_cast<size_t>(pattern) != 0) spec.layers[i].window = window;
    spec.layers[i].rope = spec.layers[i].window > 0 ? kLocal : kGlobal;
  }
  return {};
}

// rope_theta and rope_scaling for global layers and rope_local_base_freq for local ones; or rope_parameters
// with one object for each kind.
Status read_ropes(const JsonFields& config, DecoderSpec& spec) {
  RopeDefaults global{kGlobalTheta, spec.head_dim, spec.max_position};
  RopeDefaults local{kLocalTheta, spec.head_dim, spec.max_position};
  PLOW_TRY(local.theta, config.number_or("rope_local_base_freq", kLocalTheta));
  if (!(local.theta > 0)) return config.error("rope_local_base_freq", "a number above 0");
  spec.ropes.resize(2);
  if (!config.has("rope_parameters")) {
    PLOW_TRY(spec.ropes[kGlobal], read_rope(config, global));
    PLOW_TRY(spec.ropes[kLocal], read_rope_parameters(std::nullopt, local));
    return {};
  }
  if (config.has("rope_scaling")) {
    return config.error("'rope_scaling' and 'rope_parameters' are both there; one of them must go");
  }
  PLOW_TRY(global.theta, config.number_or("rope_theta", kGlobalTheta));
  if (!(global.theta > 0)) return config.error("rope_theta", "a number above 0");
  PLOW_TRY(const JsonFields kinds, config.object("rope_parameters"));
  PLOW_TRY(const auto full, kinds.object_or_none("full_attention"));
  PLOW_TRY(const auto sliding, kinds.object_or_none("sliding_attention"));
  PLOW_TRY(spec.ropes[kGlobal], read_rope_parameters(full, global));
  PLOW_TRY(spec.ropes[kLocal], read_rope_parameters(sliding, local));
  return {};
}

// A cap that is null or absent is none.
Result<float> read_cap(const JsonFields& config, std::string_view key) {
  if (!config.has(key)) {
    config.find(key);
    return 0.0f;
  }
  PLOW_TRY(const double cap, config.number(key));
  if (!(static_cast<float>(cap) > 0) || !std::isfinite(static_cast<float>(cap)))
    return config.error(key, "a number above 0, or null");
  return static_cast<float>(cap);
}

}  // namespace

Result<OpGraph> build_gemma3(ModelSource& source) {
  const JsonFields& config = source.config;
  PLOW_TRY(DecoderSpec spec, read_decoder(config, {.head_dim = 256, .tied = true}));
  PLOW_TRY(spec.activation, read_activation(config, "hidden_activation", "gelu_pytorch_tanh"));
  PLOW_TRY(spec.qkv_bias, config.boolean_or("attention_bias", false));
  spec.output_bias = spec.qkv_bias;
  spec.norm_offset = 1;
  spec.qk_norm = true;
  spec.norms_after = true;
  // transformers rounds the factor to the dtype that it runs in: this is float32's. (In bfloat16 sqrt(640)
  // becomes 25.25.)
  spec.embedding_scale = std::sqrt(static_cast<float>(spec.hidden));
  PLOW_TRY(const double query_scalar, config.number_or("query_pre_attn_scalar", 256));
  if (!(query_scalar > 0)) return config.error("query_pre_attn_scalar", "a number above 0");
  spec.attention_scale = static_cast<float>(1.0 / std::sqrt(query_scalar));
  PLOW_TRY(spec.attention_softcap, read_cap(config, "attn_logit_softcapping"));
  PLOW_TRY(spec.logit_softcap, read_cap(config, "final_logit_softcapping"));
  PLOW_TRY_STATUS(expect_false(config, "use_bidirectional_attention"));
  PLOW_TRY_STATUS(read_layers(config, spec));
  PLOW_TRY_STATUS(read_ropes(config, spec));
  return build_decoder(source, spec);
}

}  // namespace plow
