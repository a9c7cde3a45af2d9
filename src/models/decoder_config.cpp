#include "models/decoder.h"

#include <cmath>

namespace plow {
namespace {

// Bounds on what a packet, a block or a loop is sized by before any tensor has confirmed it. The largest in
// use: 126 layers (Llama 3.1 405B), 128 heads, heads of 512 columns.
constexpr int64_t kMaxLayers = 1024;
constexpr int64_t kMaxHeads = 1024;
constexpr int64_t kMaxHeadDim = 4096;

Result<uint32_t> read_size(const JsonFields& config, std::string_view key) {
  PLOW_TRY(const int64_t size, config.positive(key));
  return static_cast<uint32_t>(size);
}

Status read_heads(const JsonFields& config, const DecoderDefaults& defaults, DecoderSpec& spec) {
  PLOW_TRY(const int64_t heads, config.integer("num_attention_heads", 1, kMaxHeads));
  if (defaults.kv_heads_required && config.value().find("num_key_value_heads") == nullptr) {
    return config.error("num_key_value_heads",
                        fmt::format("an integer from 1 to {}, or null for as many as heads", heads));
  }
  PLOW_TRY(const int64_t kv_heads, config.integer_or("num_key_value_heads", heads, 1, heads));
  if (heads % kv_heads != 0) {
    return config.error("num_key_value_heads",
                        fmt::format("a divisor of num_attention_heads, which is {}", heads));
  }
  int64_t head_dim = defaults.head_dim;
  if (!config.has("head_dim") && head_dim == 0) {
    if (spec.hidden % heads != 0) {
      return config.error(
          "num_attention_heads",
          fmt::format("a divisor of hidden_size, which is {}, where there is no head_dim", spec.hidden));
    }
    head_dim = spec.hidden / heads;
  }
  PLOW_TRY(head_dim, config.integer_or("head_dim", head_dim, 1, kMaxHeadDim));
  if (head_dim % 2 != 0 || head_dim > kMaxHeadDim) {
    return config.error(fmt::format("heads of {} columns; they must have an even number of at most {}",
                                    head_dim, kMaxHeadDim));
  }
  spec.heads = static_cast<uint32_t>(heads);
  spec.kv_heads = static_cast<uint32_t>(kv_heads);
  spec.head_dim = static_cast<uint32_t>(head_dim);
  return {};
}

}  // namespace

Result<DecoderSpec> read_decoder(const JsonFields& config, const DecoderDefaults& defaults) {
  DecoderSpec spec;
  PLOW_TRY(spec.vocab, read_size(config, "vocab_size"));
  PLOW_TRY(spec.hidden, read_size(config, "hidden_size"));
  PLOW_TRY(spec.intermediate, read_size(config, "intermediate_size"));
  PLOW_TRY(spec.max_position, read_size(config, "max_position_embeddings"));
  PLOW_TRY_STATUS(read_heads(config, defaults, spec));
  PLOW_TRY(const double eps, config.number_or("rms_norm_eps", 1e-6));
  if (eps < 0 || !std::isfinite(static_cast<float>(eps)))
    return config.error("rms_norm_eps", "a number of at least 0");
  spec.eps = static_cast<float>(eps);
  spec.attention_scale = static_cast<float>(1.0 / std::sqrt(spec.head_dim));
  PLOW_TRY(spec.tied, config.boolean_or("tie_word_embeddings", defaults.tied));
  PLOW_TRY(const int64_t layers, config.integer("num_hidden_layers", 1, kMaxLayers));
  spec.layers.resize(static_cast<size_t>(layers));
  return spec;
}

Result<Activation> read_activation(const JsonFields& config, std::string_view key, const char* absent) {
  PLOW_TRY(const std::string name, config.string_or(key, absent));
  if (name == "silu" || name == "swish") return Activation::kSilu;
  if (name == "gelu_pytorch_tanh" || name == "gelu_new") return Activation::kGeluTanh;
  if (name == "gelu") return Activation::kGeluErf;
  return config.error(key, "'silu', 'gelu' or 'gelu_pytorch_tanh'");
}

Result<uint32_t> read_window(const JsonFields& config, std::string_view key, uint32_t absent) {
  const JsonValue* value = config.find(key);
  if (value == nullptr) return absent;
  PLOW_TRY(const int64_t window, config.integer_or(key, 0, 1, JsonFields::kMaxDimension));
  return static_cast<uint32_t>(window);
}

Result<bool> read_layer_types(const JsonFields& config, uint32_t window, DecoderSpec& spec) {
  if (!config.has("layer_types")) {
    config.find("layer_types");
    return false;
  }
  PLOW_TRY(const std::vector<std::string> types, config.strings("layer_types"));
  if (types.size() != spec.layers.size()) {
    return config.error(
        fmt::format("'layer_types' has {} entries for {} layers", types.size(), spec.layers.size()));
  }
  for (size_t i = 0; i < types.size(); ++i) {
    if (types[i] == "sliding_attention" && window > 0) {
      spec.layers[i].window = window;
    } else if (types[i] == "sliding_attention") {
      return config.error(
          fmt::format("'layer_types' has sliding_attention for layer {}, but there is no sliding window", i));
    } else if (types[i] != "full_attention") {
      return config.error(fmt::format(
          "'layer_types' has '{}' for layer {}; supported are full_attention and sliding_attention", types[i],
          i));
    }
  }
  return true;
}

Status expect_false(const JsonFields& config, std::string_view key) {
  PLOW_TRY(const bool value, config.boolean_or(key, false));
  if (value) return config.error(key, "false; true is not supported for this architecture");
  return {};
}

}  // namespace plow
