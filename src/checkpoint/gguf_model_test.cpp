#include "checkpoint/gguf_model.h"

#include "checkpoint/testing/files.h"

#include <gtest/gtest.h>

#include <cmath>
#include <functional>
#include <numbers>

namespace plow {
namespace {

using testing_files::as_bytes;
using testing_files::GgufBuilder;
using testing_files::raw;

const std::string kTestdata = PLOW_SOURCE_DIR "/src/checkpoint/testdata/";

JsonValue json(std::string_view text) { return parse_json(text, "expected").value(); }

// model_value of tools/make_gguf_vectors.py.
float model_value(int64_t salt, int64_t i) {
  return static_cast<float>((i * 37 + salt * 11) % 127 - 63) / 64.0f;
}

std::vector<float> all_rows(const CheckpointTensor& tensor) {
  std::vector<float> values(static_cast<size_t>(tensor.n_rows() * tensor.row_values()));
  read_rows(tensor, 0, tensor.n_rows(), values.data());
  return values;
}

// Tensors of the tiny files in the order in which the script made them, by their Hugging Face names.
void expect_values(const Checkpoint& checkpoint, const std::vector<std::string>& names) {
  EXPECT_EQ(checkpoint.tensors.size(), names.size());
  for (size_t salt = 0; salt < names.size(); ++salt) {
    const CheckpointTensor* tensor = checkpoint.find(names[salt]);
    ASSERT_NE(tensor, nullptr) << names[salt];
    const auto values = all_rows(*tensor);
    for (size_t i = 0; i < values.size(); ++i) {
      ASSERT_EQ(values[i], model_value(static_cast<int64_t>(salt), static_cast<int64_t>(i)))
          << names[salt] << " " << i;
    }
  }
}

std::vector<std::string> layer_names(int layer, std::initializer_list<const char*> parts) {
  std::vector<std::string> names;
  for (const char* part : parts) names.push_back(fmt::format("model.layers.{}.{}", layer, part));
  return names;
}

TEST(GgufModel, ReadsAFileOfThePackageGgufAsALlamaOfHuggingFace) {
  const auto checkpoint = load_checkpoint(kTestdata + "tiny_llama.gguf");
  ASSERT_TRUE(checkpoint.ok()) << checkpoint.error().message;
  EXPECT_EQ(checkpoint->format, CheckpointFormat::kGguf);
  EXPECT_EQ(to_json(checkpoint->config), to_json(json(R"({
      "hidden_size":16,"num_hidden_layers":2,"num_attention_heads":4,"num_key_value_heads":2,"intermediate_size":8,
      "max_position_embeddings":128,"rms_norm_eps":1e-06,"rope_theta":1000000.0,"rope_scaling":null,"vocab_size":12,
      "attention_bias":true,"attention_dropout":0.0,"initializer_range":0.02,"tie_word_embeddings":false,
      "torch_dtype":"bfloat16","use_cache":true,"bos_token_id":1,"eos_token_id":2,"pad_token_id":0,
      "architectures":["LlamaForCausalLM"],"model_type":"llama","hidden_act":"silu","mlp_bias":false,"head_dim":4})")));
  EXPECT_EQ(to_json(*checkpoint->generation_config),
            R"({"bos_token_id":1,"pad_token_id":0,"eos_token_id":2,"do_sample":false})");
  std::vector<std::string> names = {"model.embed_tokens.weight", "model.norm.weight", "lm_head.weight"};
  for (int i = 0; i < 2; ++i) {
    const auto layer =
        layer_names(i, {"input_layernorm.weight", "self_attn.q_proj.weight", "self_attn.k_proj.weight",
                        "self_attn.v_proj.weight", "self_attn.o_proj.weight", "self_attn.q_proj.bias",
                        "post_attention_layernorm.weight", "mlp.gate_proj.weight", "mlp.up_proj.weight",
                        "mlp.down_proj.weight"});
    names.insert(names.end(), layer.begin(), layer.end());
  }
  expect_values(*checkpoint, names);
  EXPECT_EQ(checkpoint->find("model.layers.1.self_attn.k_proj.weight")->stored_name, "blk.1.attn_k.weight");
  EXPECT_EQ(checkpoint->find("model.layers.1.self_attn.k_proj.weight")->interleaved_heads, 2u);
  EXPECT_TRUE(checkpoint->find("model.layers.1.self_attn.v_proj.weight")->stored_as_is());
}

TEST(GgufModel, ReadsAFileOfThePackageGgufAsAGemmaOfHuggingFace) {
  const auto checkpoint = load_checkpoint(kTestdata + "tiny_gemma3.gguf");
  ASSERT_TRUE(checkpoint.ok()) << checkpoint.error().message;
  EXPECT_EQ(to_json(checkpoint->config), to_json(json(R"({
      "hidden_size":16,"num_hidden_layers":2,"num_attention_heads":4,"num_key_value_heads":2,"intermediate_size":8,
      "max_position_embeddings":128,"rms_norm_eps":1e-06,"rope_theta":1000000.0,
      "rope_scaling":{"rope_type":"linear","factor":8.0},"vocab_size":12,
      "attention_bias":false,"attention_dropout":0.0,"initializer_range":0.02,"tie_word_embeddings":true,
      "torch_dtype":"bfloat16","use_cache":true,"bos_token_id":1,"eos_token_id":2,"pad_token_id":0,
      "architectures":["Gemma3ForCausalLM"],"model_type":"gemma3_text","hidden_activation":"gelu_pytorch_tanh",
      "head_dim":4,"query_pre_attn_scalar":4,"rope_local_base_freq":10000.0,"sliding_window":16,
      "layer_types":["sliding_attention","sliding_attention"],"attn_logit_softcapping":null,
      "final_logit_softcapping":null})")));
  EXPECT_EQ(to_json(*checkpoint->generation_config),
            R"({"bos_token_id":1,"pad_token_id":0,"eos_token_id":[2,11],"do_sample":false})");
  std::vector<std::string> names = {"model.embed_tokens.weight", "model.norm.weight"};
  for (int i = 0; i < 2; ++i) {
    const auto layer =
        layer_names(i, {"input_layernorm.weight", "self_attn.q_proj.weight", "self_attn.k_proj.weight",
                        "self_attn.v_proj.weight", "self_attn.o_proj.weight", "self_attn.q_norm.weight",
                        "self_attn.k_norm.weight", "post_attention_layernorm.weight",
                        "post_feedforward_layernorm.weight", "pre_feedforward_layernorm.weight",
                        "mlp.gate_proj.weight", "mlp.up_proj.weight", "mlp.down_proj.weight"});
    names.insert(names.end(), layer.begin(), layer.end());
  }
  expect_values(*checkpoint, names);
}

TEST(GgufModel, ExposesTheTokenizerAsItStands) {
  const auto llama = load_checkpoint(kTestdata + "tiny_llama.gguf").value();
  ASSERT_TRUE(llama.gguf_tokenizer.has_value());
  const GgufTokenizer& bpe = *llama.gguf_tokenizer;
  EXPECT_EQ(bpe.model, "gpt2");
  EXPECT_EQ(bpe.pre, "smollm");
  EXPECT_EQ((std::vector<std::string>(bpe.tokens.begin(), bpe.tokens.end())),
            (std::vector<std::string>{"<pad>", "<s>", "</s>", "a", "b", "c", "ab", "abc", "\xc4\xa0",
                                      "\xc3\xa9", "\xe4\xb8\xad", "x"}));
  EXPECT_EQ((std::vector<std::string>(bpe.merges.begin(), bpe.merges.end())),
            (std::vector<std::string>{"a b", "ab c"}));
  ASSERT_EQ(bpe.token_types.size(), 12u);
  EXPECT_EQ(bpe.token_types[2], static_cast<int32_t>(GgufTokenType::kControl));
  EXPECT_EQ(bpe.token_types[3], static_cast<int32_t>(GgufTokenType::kNormal));
  EXPECT_TRUE(bpe.scores.empty());
  EXPECT_EQ(bpe.bos_id, 1u);
  EXPECT_EQ(bpe.padding_id, 0u);
  EXPECT_FALSE(bpe.unknown_id.has_value());
  EXPECT_EQ(bpe.add_bos, true);
  EXPECT_FALSE(bpe.add_eos.has_value());
  EXPECT_EQ(bpe.chat_template, "{{ messages[0]['content'] }}");
  const auto gemma = load_checkpoint(kTestdata + "tiny_gemma3.gguf").value();
  EXPECT_EQ(gemma.gguf_tokenizer->model, "llama");
  EXPECT_EQ(gemma.gguf_tokenizer->scores[5], -1.25f);
}

// A small llama whose metadata and tensors a test can change.
struct Llama {
  std::string architecture = "llama";
  uint32_t layers = 1;
  GgufBuilder builder;

  std::string key(std::string_view name) const { return architecture + "." + std::string(name); }
  Llama& base() {
    builder.string("general.architecture", architecture);
    for (const auto& [name, value] : {std::pair{"context_length", 64u},
                                      {"embedding_length", 16u},
                                      {"block_count", layers},
                                      {"feed_forward_length", 8u},
                                      {"attention.head_count", 4u}}) {
      builder.u32(key(name), value);
    }
    builder.f32(key("attention.layer_norm_rms_epsilon"), 1e-5f);
    builder.zeros("token_embd.weight", {16, 4}).zeros("blk.0.attn_q.weight", {16, 16});
    return *this;
  }
  Result<Checkpoint> read() const {
    file_ = builder.build();
    auto gguf = read_gguf(as_bytes(file_), "m.gguf");
    if (!gguf.ok()) return gguf.error();
    return gguf_to_checkpoint(*gguf, "m.gguf");
  }

 private:
  mutable std::string file_;
};

TEST(GgufModel, FillsInWhatConvertersLeaveOut) {
  const auto checkpoint = Llama().base().read();
  ASSERT_TRUE(checkpoint.ok()) << checkpoint.error().message;
  EXPECT_EQ(*checkpoint->config.find("num_key_value_heads")->as_int(), 4);
  EXPECT_EQ(*checkpoint->config.find("head_dim")->as_int(), 4);
  EXPECT_EQ(checkpoint->config.find("rope_theta")->as_number(), 10000.0);
  EXPECT_TRUE(checkpoint->config.find("bos_token_id")->is_null());
  EXPECT_FALSE(checkpoint->gguf_tokenizer.has_value());
  EXPECT_FALSE(checkpoint->generation_config.has_value());
}

TEST(GgufModel, NamesTheFamiliesAsHuggingFaceDoes) {
  for (const auto& [architecture, class_name, has_head_dim] : {std::tuple{"llama", "LlamaForCausalLM", true},
                                                               {"qwen2", "Qwen2ForCausalLM", false},
                                                               {"qwen3", "Qwen3ForCausalLM", true}}) {
    Llama file;
    file.architecture = architecture;
    const auto checkpoint = file.base().read();
    ASSERT_TRUE(checkpoint.ok()) << checkpoint.error().message;
    EXPECT_EQ(*checkpoint->config.find("architectures")->as_array()->at(0).as_string(), class_name);
    EXPECT_EQ(checkpoint->config.find("head_dim") != nullptr, has_head_dim);
    // Only llama's Q and K are interleaved.
    EXPECT_EQ(checkpoint->find("model.layers.0.self_attn.q_proj.weight")->interleaved_heads,
              file.architecture == "llama" ? 4u : 0u);
  }
}

// A Gemma of so many layers; `pattern` is its sliding_window_pattern when it is not 0.
JsonValue gemma_config(uint32_t layers, uint32_t pattern) {
  GgufBuilder builder;
  builder.string("general.architecture", "gemma3");
  for (const auto& [name, value] : {std::pair{"gemma3.context_length", 64u},
                                    {"gemma3.embedding_length", 16u},
                                    {"gemma3.block_count", layers},
                                    {"gemma3.feed_forward_length", 8u},
                                    {"gemma3.attention.head_count", 2u},
                                    {"gemma3.attention.key_length", 6u},
                                    {"gemma3.attention.sliding_window", 8u}}) {
    builder.u32(name, value);
  }
  if (pattern != 0) builder.u32("gemma3.attention.sliding_window_pattern", pattern);
  builder.f32("gemma3.attention.layer_norm_rms_epsilon", 1e-6f).zeros("token_embd.weight", {16, 4});
  const std::string file = builder.build();
  const auto gguf = read_gguf(as_bytes(file), "m.gguf").value();
  return gguf_to_checkpoint(gguf, "m.gguf").value().config;
}

TEST(GgufModel, GemmaHasAFullLayerWhereItsPatternEnds) {
  // Of the layers counted from 1, every sixth, or every `pattern`-th, is full.
  for (const uint32_t pattern : {0u, 2u}) {
    const JsonValue config = gemma_config(13, pattern);
    std::string kinds;
    for (const auto& kind : *config.find("layer_types")->as_array()) kinds += kind.as_string()->front();
    EXPECT_EQ(kinds, pattern == 0 ? "sssssfsssssfs" : "sfsfsfsfsfsfs");
  }
  EXPECT_EQ(*gemma_config(34, 0).find("query_pre_attn_scalar")->as_int(), 6);  // the head's size
  EXPECT_EQ(*gemma_config(62, 0).find("query_pre_attn_scalar")->as_int(), 8);  // 27B: hidden size by heads
}

TEST(GgufModel, ReadsTheKindsOfRopeScaling) {
  Llama yarn;
  yarn.base()
      .builder.string("llama.rope.scaling.type", "yarn")
      .f32("llama.rope.scaling.factor", 4.0f)
      .u32("llama.rope.scaling.original_context_length", 32768);
  EXPECT_EQ(to_json(*yarn.read().value().config.find("rope_scaling")),
            R"({"rope_type":"yarn","factor":4.0,"original_max_position_embeddings":32768})");
  Llama none;
  none.base().builder.string("llama.rope.scaling.type", "none");
  EXPECT_TRUE(none.read().value().config.find("rope_scaling")->is_null());
}

// What convert_hf_to_gguf.py computes for {"rope_type": "llama3", "factor": 32, ...} with a head of 64 and
// theta 500000 (Llama 3.2): the formula of transformers' _compute_llama3_parameters, written out here from
// its description.
std::string llama3_table(double factor, double broken_by) {
  std::string bytes;
  for (int i = 0; i < 32; ++i) {
    const double wavelength = 2 * std::numbers::pi * std::pow(500000.0, 2.0 * i / 64.0);
    double value = 1;
    if (wavelength > 8192)
      value = factor;
    else if (wavelength >= 8192 / 4.0) {
      const double smooth = (8192 / wavelength - 1) / 3;
      value = 1 / ((1 - smooth) / factor + smooth);
    }
    bytes += raw(static_cast<float>(value * (i == 20 ? 1 + broken_by : 1)));
  }
  return bytes;
}

Result<Checkpoint> llama_with_table(double broken_by) {
  Llama file;
  file.builder.string("general.architecture", "llama")
      .f32("llama.attention.layer_norm_rms_epsilon", 1e-5f)
      .f32("llama.rope.freq_base", 500000.0f);
  for (const auto& [name, value] : {std::pair{"llama.context_length", 131072u},
                                    {"llama.embedding_length", 64u},
                                    {"llama.block_count", 1u},
                                    {"llama.feed_forward_length", 8u},
                                    {"llama.attention.head_count", 1u},
                                    {"llama.rope.dimension_count", 64u}}) {
    file.builder.u32(name, value);
  }
  file.builder.zeros("rope_freqs.weight", {32}).zeros("token_embd.weight", {64, 4});
  std::string bytes = file.builder.build();
  bytes.replace(bytes.size() - 1024 - 128, 128, llama3_table(32, broken_by));
  const auto gguf = read_gguf(as_bytes(bytes), "m.gguf").value();
  return gguf_to_checkpoint(gguf, "m.gguf");
}

TEST(GgufModel, RecoversLlama3ScalingFromItsTable) {
  const auto good = llama_with_table(0);
  ASSERT_TRUE(good.ok()) << good.error().message;
  EXPECT_EQ(
      to_json(*good->config.find("rope_scaling")),
      R"({"rope_type":"llama3","factor":32.0,"low_freq_factor":1.0,"high_freq_factor":4.0,"original_max_position_embeddings":8192})");
  EXPECT_EQ(good->find("rope_freqs.weight"), nullptr);
  const auto bad = llama_with_table(0.01);
  ASSERT_FALSE(bad.ok());
  EXPECT_NE(bad.error().message.find("is not the table of a llama3 rope scaling by 32"), std::string::npos)
      << bad.error().message;
}

struct Refusal {
  std::function<void(Llama&)> change;
  std::string message;
};

TEST(GgufModel, RefusesWhatItDoesNotUnderstand) {
  const auto tokens = [](Llama& m) -> GgufBuilder& {
    return m.base()
        .builder.string("tokenizer.ggml.model", "gpt2")
        .strings("tokenizer.ggml.tokens", {"a", "b"});
  };
  const std::vector<Refusal> cases = {
      {[](Llama& m) { m.builder.u32("x", 1); }, "m.gguf: 'general.architecture' is missing"},
      {[](Llama& m) {
         m.architecture = "mamba";
         m.base();
       },
       "the architecture 'mamba' is not supported; supported: llama, qwen2, qwen3, gemma3"},
      {[](Llama& m) {
         m.layers = 2147483647u;
         m.base();
       },
       "'llama.block_count' must be an integer from 1 to 1024, found 2147483647"},
      {[](Llama& m) { m.base().builder.u32("llama.expert_count", 8); },
       "'llama.expert_count' (8) is not understood"},
      {[](Llama& m) { m.base().builder.f32("llama.logit_scale", 2.0f); },
       "'llama.logit_scale' (2.0) is not understood"},
      {[](Llama& m) { m.base().builder.array("llama.attention.head_count_kv", 4, 1, raw(1u)); },
       "'llama.attention.head_count_kv' is an array"},
      {[](Llama& m) { m.base().builder.string("llama.rope.scaling.type", "longrope"); },
       "'llama.rope.scaling.type' must be 'none', 'linear' or 'yarn', found \"longrope\""},
      {[](Llama& m) { m.base().builder.string("llama.rope.scaling.type", "linear"); },
       "'llama.rope.scaling.factor' is missing"},
      {[](Llama& m) {
         m.base().builder.u32("llama.rope.dimension_count", 2).u32("llama.attention.key_length", 4);
       },
       "'llama.rope.dimension_count' must be 4"},
      {[](Llama& m) { m.base().builder.u32("llama.attention.value_length", 8); },
       "'llama.attention.value_length' must be 4"},
      {[](Llama& m) { m.base().builder.zeros("blk.0.attn_sinks.weight", {4}); },
       "tensor 'blk.0.attn_sinks.weight' is none that the architecture 'llama' has"},
      {[](Llama& m) { m.base().builder.zeros("blk.00.attn_v.weight", {4}); },
       "tensor 'blk.00.attn_v.weight' is none"},
      {[](Llama& m) { m.base().builder.zeros("blk.0.attn_v.scale", {4}); },
       "tensor 'blk.0.attn_v.scale' is none"},
      {[](Llama& m) {
         m.base().builder.zeros("blk.0.attn_k.weight", {16, 12});
       },
       "tensor 'blk.0.attn_k.weight' has 12 rows, which do not make 4 heads of even size"},
      {[](Llama& m) { m.base().builder.zeros("rope_freqs.weight", {3}); },
       "tensor 'rope_freqs.weight' must be 2 values of F32"},
      {[](Llama& m) { m.base().builder.string("tokenizer.ggml.model", "gpt2"); },
       "'tokenizer.ggml.tokens' is missing or empty"},
      {[&](Llama& m) { tokens(m).u32("tokenizer.ggml.bos_token_id", 2); },
       "'tokenizer.ggml.bos_token_id' must be an integer from 0 to 1, found 2"},
      {[&](Llama& m) { tokens(m).array("tokenizer.ggml.scores", 6, 1, raw(1.0f)); },
       "'tokenizer.ggml.scores' has 1 entries for 2 tokens"},
      {[&](Llama& m) { tokens(m).array("tokenizer.ggml.token_type", 5, 3, raw(1) + raw(1) + raw(1)); },
       "'tokenizer.ggml.token_type' has 3 entries for 2 tokens"},
      {[&](Llama& m) { tokens(m).array("tokenizer.ggml.merges", 5, 1, raw(1)); },
       "'tokenizer.ggml.merges' must be an array of type 8"},
      {[&](Llama& m) { tokens(m).u32("tokenizer.ggml.add_bos_token", 1); },
       "'tokenizer.ggml.add_bos_token' must be true or false"},
      {[&](Llama& m) { tokens(m).u32("tokenizer.chat_template", 1); },
       "'tokenizer.chat_template' must be a string"},
  };
  for (const auto& refusal : cases) {
    Llama model;
    refusal.change(model);
    const auto checkpoint = model.read();
    ASSERT_FALSE(checkpoint.ok()) << refusal.message;
    EXPECT_TRUE(checkpoint.error().message.starts_with("m.gguf: ")) << checkpoint.error().message;
    EXPECT_NE(checkpoint.error().message.find(refusal.message), std::string::npos)
        << "expected: " << refusal.message << "\ngot: " << checkpoint.error().message;
  }
}

}  // namespace
}  // namespace plow
