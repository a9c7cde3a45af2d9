#include "checkpoint/dequantize.h"
#include "checkpoint/gguf_model.h"

#include <algorithm>
#include <cmath>
#include <numbers>

namespace plow {

namespace {

// Keys of one architecture: "block_count" is "llama.block_count".
class Keys {
 public:
  Keys(const JsonFields& fields, const GgufArchitecture& architecture)
      : fields_(fields), prefix_(std::string(architecture.name) + ".") {}

  std::string operator()(std::string_view name) const { return prefix_ + std::string(name); }
  bool has(std::string_view name) const { return fields_.has((*this)(name)); }
  Result<int64_t> positive(std::string_view name) const { return fields_.positive((*this)(name)); }
  Result<int64_t> integer(std::string_view name, int64_t least, int64_t most) const {
    return fields_.integer((*this)(name), least, most);
  }
  Result<int64_t> positive_or(std::string_view name, int64_t absent) const {
    return fields_.positive_or((*this)(name), absent);
  }
  Result<double> number(std::string_view name) const { return fields_.number((*this)(name)); }
  Result<double> number_or(std::string_view name, double absent) const {
    return fields_.number_or((*this)(name), absent);
  }
  const JsonFields& fields() const { return fields_; }

 private:
  const JsonFields& fields_;
  std::string prefix_;
};

// Gemma 3's configuration has an entry for each layer, made before any tensor has confirmed their number. The
// most in use is 126 (Llama 3.1 405B).
constexpr int64_t kMaxLayers = 1024;

// What several fields of the configuration are made from.
struct Dimensions {
  int64_t hidden = 0;
  int64_t layers = 0;
  int64_t head_dim = 0;
  int64_t context = 0;
  GgufHeads heads;
  double rope_theta = 0;
};

JsonValue id_or_null(const std::optional<uint32_t>& id) {
  return id ? JsonValue(static_cast<int64_t>(*id)) : JsonValue();
}

Result<Dimensions> read_dimensions(const Keys& keys, const GgufArchitecture& architecture) {
  Dimensions d;
  PLOW_TRY(d.hidden, keys.positive("embedding_length"));
  PLOW_TRY(d.layers, keys.integer("block_count", 1, kMaxLayers));
  PLOW_TRY(d.context, keys.positive("context_length"));
  PLOW_TRY(d.heads, gguf_heads(keys.fields(), architecture));
  // Defaults of llama.cpp's loader for keys that a converter may leave out.
  PLOW_TRY(d.rope_theta, keys.number_or("rope.freq_base", 10000.0));
  PLOW_TRY(const int64_t rope_dim, keys.positive_or("rope.dimension_count", d.hidden / d.heads.query));
  PLOW_TRY(d.head_dim, keys.positive_or("attention.key_length", rope_dim));
  PLOW_TRY(const int64_t value_dim, keys.positive_or("attention.value_length", d.head_dim));
  if (value_dim != d.head_dim)
    return keys.fields().error(keys("attention.value_length"), fmt::format("{}, the key length", d.head_dim));
  if (keys.has("rope.dimension_count") && rope_dim != d.head_dim) {
    return keys.fields().error(
        keys("rope.dimension_count"),
        fmt::format("{}, the key length (rope on a part of a head is not supported)", d.head_dim));
  }
  return d;
}

// The table of factors that llama.cpp's converter makes of the "llama3" kind of rope scaling, one for each
// pair of a head: 1 for high frequencies, `factor` for low ones, between them a blend. Its parameters are not
// in the file; these two and the original context are those of every published Llama 3.
constexpr double kLlama3LowFrequency = 1.0;
constexpr double kLlama3HighFrequency = 4.0;
constexpr double kLlama3Context = 8192.0;

double llama3_factor(double frequency, double factor) {
  const double wavelength = 2.0 * std::numbers::pi / frequency;
  if (wavelength < kLlama3Context / kLlama3HighFrequency) return 1.0;
  if (wavelength > kLlama3Context / kLlama3LowFrequency) return factor;
  const double smooth =
      (kLlama3Context / wavelength - kLlama3LowFrequency) / (kLlama3HighFrequency - kLlama3LowFrequency);
  return 1.0 / ((1.0 - smooth) / factor + smooth);
}

// The configuration whose table the file has. Errors: it is no such table.
Result<JsonValue> llama3_scaling(const GgufTensor& table, const Dimensions& d, const JsonFields& fields) {
  const int64_t pairs = d.head_dim / 2;
  if (table.dtype != StoredDType::kF32 || table.shape != std::vector<int64_t>{pairs}) {
    return fields.error(fmt::format("tensor '{}' must be {} values of F32", table.name, pairs));
  }
  std::vector<float> factors(static_cast<size_t>(pairs));
  dequantize_blocks(table.dtype, table.bytes.data(), factors.size(), factors.data());
  const double factor = factors.empty() ? 1.0 : static_cast<double>(factors.back());
  for (size_t i = 0; i < factors.size(); ++i) {
    const double frequency =
        std::pow(d.rope_theta, -2.0 * static_cast<double>(i) / static_cast<double>(d.head_dim));
    const double expected = llama3_factor(frequency, factor);
    // The converter computes in float32: some ulps of the frequency, magnified by at most `factor` in the
    // blend.
    if (!(std::abs(static_cast<double>(factors[i]) - expected) <= 1e-5 * factor * expected)) {
      return fields.error(fmt::format(
          "tensor '{}' is not the table of a llama3 rope scaling by {} (value {} is {}, expected {}); "
          "other tables are not supported",
          table.name, factor, i, factors[i], expected));
    }
  }
  return JsonValue(
      JsonValue::Object{{"rope_type", "llama3"},
                        {"factor", factor},
                        {"low_freq_factor", kLlama3LowFrequency},
                        {"high_freq_factor", kLlama3HighFrequency},
                        {"original_max_position_embeddings", static_cast<int64_t>(kLlama3Context)}});
}

Result<JsonValue> rope_scaling(const Keys& keys, const Dimensions& d, const GgufTensor* rope_factors) {
  PLOW_TRY(const std::string type_name, keys.fields().string_or(keys("rope.scaling.type"), "none"));
  const std::string_view type = type_name;
  if (type == "none") {
    return rope_factors != nullptr ? llama3_scaling(*rope_factors, d, keys.fields())
                                   : Result<JsonValue>(JsonValue());
  }
  if (rope_factors != nullptr) {
    return keys.fields().error(
        fmt::format("has both the rope scaling '{}' and the table '{}'", type, rope_factors->name));
  }
  if (type != "linear" && type != "yarn")
    return keys.fields().error(keys("rope.scaling.type"), "'none', 'linear' or 'yarn'");
  PLOW_TRY(const double factor, keys.number("rope.scaling.factor"));
  JsonValue::Object scaling{{"rope_type", type_name}, {"factor", factor}};
  if (type == "yarn") {
    PLOW_TRY(const int64_t context, keys.positive("rope.scaling.original_context_length"));
    scaling.push_back({"original_max_position_embeddings", context});
    constexpr std::pair<const char*, const char*> kOptional[] = {
        {"rope.scaling.attn_factor", "attention_factor"},
        {"rope.scaling.yarn_beta_fast", "beta_fast"},
        {"rope.scaling.yarn_beta_slow", "beta_slow"}};
    for (const auto& [key, field] : kOptional) {
      if (!keys.has(key)) continue;
      PLOW_TRY(const double value, keys.number(key));
      scaling.push_back({field, value});
    }
  } else if (keys.has("rope.scaling.original_context_length")) {
    keys.fields().ignore({keys("rope.scaling.original_context_length")});  // linear scaling does not use it
  }
  return JsonValue(std::move(scaling));
}

Status add_gemma3(const Keys& keys, const Dimensions& d, JsonValue::Object& config) {
  // llama.cpp's loader (LLM_ARCH_GEMMA3): every sixth layer is full unless the file says otherwise.
  PLOW_TRY(const int64_t pattern, keys.positive_or("attention.sliding_window_pattern", 6));
  PLOW_TRY(const int64_t window, keys.positive("attention.sliding_window"));
  PLOW_TRY(const double local_theta, keys.number_or("rope.freq_base_swa", 10000.0));
  JsonValue::Array layer_types;
  for (int64_t i = 0; i < d.layers; ++i)
    layer_types.push_back((i + 1) % pattern == 0 ? "full_attention" : "sliding_attention");
  // The file does not say how queries are scaled. All sizes but 27B (62 layers) use the head's size; that one
  // uses hidden/heads (llama.cpp's loader tells it by the number of layers, too).
  constexpr int64_t kLayersOf27B = 62;
  config.push_back({"hidden_activation", "gelu_pytorch_tanh"});
  config.push_back({"head_dim", d.head_dim});
  config.push_back(
      {"query_pre_attn_scalar", d.layers == kLayersOf27B ? d.hidden / d.heads.query : d.head_dim});
  config.push_back({"rope_local_base_freq", local_theta});
  config.push_back({"sliding_window", window});
  config.push_back({"layer_types", std::move(layer_types)});
  for (const char* name : {"attn_logit_softcapping", "final_logit_softcapping"}) {
    JsonValue cap;
    if (keys.has(name)) {
      PLOW_TRY(const double value, keys.number(name));
      cap = JsonValue(value);
    }
    config.push_back({name, std::move(cap)});
  }
  return {};
}

Status add_family(const Keys& keys, const Dimensions& d, const GgufArchitecture& architecture, bool mlp_bias,
                  JsonValue::Object& config) {
  config.push_back({"architectures", JsonValue::Array{std::string(architecture.class_name)}});
  config.push_back({"model_type", std::string(architecture.model_type)});
  if (architecture.gemma) return add_gemma3(keys, d, config);
  config.push_back({"hidden_act", "silu"});
  if (architecture.name == "llama") {
    config.push_back({"mlp_bias", mlp_bias});
    config.push_back({"head_dim", d.head_dim});
    return {};
  }
  config.push_back({"use_sliding_window", false});
  config.push_back({"sliding_window", JsonValue()});
  if (architecture.name == "qwen3") {
    config.push_back({"head_dim", d.head_dim});
  } else if (d.head_dim * d.heads.query != d.hidden) {  // Qwen2's configuration has no head_dim
    return keys.fields().error(keys("attention.key_length"), "the embedding length divided by the heads");
  }
  return {};
}

const CheckpointTensor* find(const std::vector<CheckpointTensor>& tensors, std::string_view name) {
  for (const auto& tensor : tensors) {
    if (tensor.name == name) return &tensor;
  }
  return nullptr;
}

std::optional<uint32_t> token_id(const GgufTokenizer& tokenizer, std::string_view text) {
  uint32_t id = 0;
  for (const std::string_view token : tokenizer.tokens) {
    if (token == text) return id;
    ++id;
  }
  return std::nullopt;
}

}  // namespace

Result<GgufHeads> gguf_heads(const JsonFields& fields, const GgufArchitecture& architecture) {
  const Keys keys(fields, architecture);
  GgufHeads heads;
  PLOW_TRY(heads.query, keys.positive("attention.head_count"));
  PLOW_TRY(heads.key_value, keys.positive_or("attention.head_count_kv", heads.query));
  return heads;
}

Result<JsonValue> gguf_config(const JsonFields& fields, const GgufArchitecture& architecture,
                              const std::vector<CheckpointTensor>& tensors,
                              const std::optional<GgufTokenizer>& tokenizer, const GgufTensor* rope_factors) {
  const Keys keys(fields, architecture);
  PLOW_TRY(const Dimensions d, read_dimensions(keys, architecture));
  PLOW_TRY(const int64_t intermediate, keys.positive("feed_forward_length"));
  PLOW_TRY(const double epsilon, keys.number("attention.layer_norm_rms_epsilon"));
  PLOW_TRY(JsonValue scaling, rope_scaling(keys, d, rope_factors));
  fields.ignore(
      {keys("vocab_size"), keys("rope.scaling.finetuned")});  // the embedding's rows count; a remark
  const CheckpointTensor* embedding = find(tensors, "model.embed_tokens.weight");
  if (embedding == nullptr || embedding->shape.size() != 2)
    return fields.error("there is no tensor 'token_embd.weight' of two dimensions");
  const auto layer0_has = [&](const char* name) {
    return find(tensors, std::string("model.layers.0.") + name) != nullptr;
  };

  JsonValue::Object config{
      {"hidden_size", d.hidden},
      {"num_hidden_layers", d.layers},
      {"num_attention_heads", d.heads.query},
      {"num_key_value_heads", d.heads.key_value},
      {"intermediate_size", intermediate},
      {"max_position_embeddings", d.context},
      {"rms_norm_eps", epsilon},
      {"rope_theta", d.rope_theta},
      {"rope_scaling", std::move(scaling)},
      {"vocab_size", embedding->shape[0]},
  };
  // Qwen2 has biases on Q, K and V whatever a configuration says, so its configuration says nothing.
  if (architecture.name != "qwen2") config.push_back({"attention_bias", layer0_has("self_attn.q_proj.bias")});
  config.push_back({"attention_dropout", 0.0});
  config.push_back({"initializer_range", 0.02});
  config.push_back({"tie_word_embeddings", find(tensors, "lm_head.weight") == nullptr});
  config.push_back({"torch_dtype", "bfloat16"});
  config.push_back({"use_cache", true});
  config.push_back({"bos_token_id", tokenizer ? id_or_null(tokenizer->bos_id) : JsonValue()});
  config.push_back({"eos_token_id", tokenizer ? id_or_null(tokenizer->eos_id) : JsonValue()});
  config.push_back({"pad_token_id", tokenizer ? id_or_null(tokenizer->padding_id) : JsonValue()});
  PLOW_TRY_STATUS(add_family(keys, d, architecture, layer0_has("mlp.up_proj.bias"), config));
  return JsonValue(std::move(config));
}

Result<JsonValue> gguf_generation_config(const JsonFields& fields, const GgufArchitecture& architecture,
                                         const GgufTokenizer& tokenizer) {
  JsonValue::Array ends;
  const auto add_end = [&](const std::optional<uint32_t>& id) {
    if (!id) return;
    const JsonValue value(static_cast<int64_t>(*id));
    if (std::find(ends.begin(), ends.end(), value) == ends.end()) ends.push_back(value);
  };
  add_end(tokenizer.eos_id);
  add_end(tokenizer.eot_id);
  add_end(tokenizer.eom_id);
  if (!architecture.end_of_turn.empty()) add_end(token_id(tokenizer, architecture.end_of_turn));
  JsonValue::Object config{{"bos_token_id", id_or_null(tokenizer.bos_id)},
                           {"pad_token_id", id_or_null(tokenizer.padding_id)}};
  if (ends.size() == 1) {
    config.push_back({"eos_token_id", ends[0]});
  } else {
    config.push_back({"eos_token_id", ends.empty() ? JsonValue() : JsonValue(std::move(ends))});
  }
  // What converters of 2025 and later copy from generation_config.json; its presence means that sampling was
  // meant.
  constexpr std::pair<const char*, const char*> kSampling[] = {{"general.sampling.temp", "temperature"},
                                                               {"general.sampling.top_k", "top_k"},
                                                               {"general.sampling.top_p", "top_p"},
                                                               {"general.sampling.min_p", "min_p"}};
  const bool sampling = std::any_of(std::begin(kSampling), std::end(kSampling),
                                    [&](const auto& pair) { return fields.has(pair.first); });
  config.push_back({"do_sample", sampling});
  for (const auto& [key, field] : kSampling) {
    if (fields.has(key)) config.push_back({field, *fields.find(key)});
  }
  return JsonValue(std::move(config));
}

}  // namespace plow
