// Which configurations mean the same, which tensors are refused, and what the options do.
#include "models/models.h"

#include "graph/op_def.h"
#include "models/testing/fake_checkpoint.h"

#include <gtest/gtest.h>

namespace plow {
namespace {

TEST(BuildModel, TheTwoFormsOfRopeMustAgree) {
  const std::string linear = "{\"rope_type\": \"linear\", \"factor\": 2}";
  EXPECT_EQ(message_of(build_changed(kLlama, {{"rope_scaling", linear}, {"rope_parameters", linear}})),
            "(no error)");
  EXPECT_EQ(
      message_of(build_changed(
          kLlama, {{"rope_scaling", linear}, {"rope_parameters", "{\"rope_type\": \"default\"}"}})),
      "config.json: 'rope_scaling' and 'rope_parameters' are both there and differ; one of them must go");
}

TEST(BuildModel, HarmlessAndNullFieldsArePassedOver) {
  EXPECT_EQ(message_of(build_changed(kLlama, {{"_name_or_path", "\"x\""},
                                              {"torch_dtype", "\"bfloat16\""},
                                              {"use_cache", "true"},
                                              {"bos_token_id", "1"},
                                              {"eos_token_id", "[1, 2]"},
                                              {"pretraining_tp", "1"},
                                              {"rope_interleaved", "false"},
                                              {"quantization_config", "null"},
                                              {"transformers.js_config", "{\"a\": 1}"}})),
            "(no error)");
}

std::vector<FakeTensor> with_layer_tensors(const std::vector<FakeTensor>& of_a_layer) {
  std::vector<FakeTensor> tensors = fake_tensors();
  for (const std::string layer : {"model.layers.0.", "model.layers.1."}) {
    for (const FakeTensor& tensor : of_a_layer) tensors.push_back({layer + tensor.name, tensor.shape});
  }
  return tensors;
}

std::vector<FakeTensor> qwen2_tensors() {
  return with_layer_tensors(
      {{"self_attn.q_proj.bias", {8}}, {"self_attn.k_proj.bias", {4}}, {"self_attn.v_proj.bias", {4}}});
}

std::vector<FakeTensor> qwen3_tensors() {
  return with_layer_tensors({{"self_attn.q_norm.weight", {4}}, {"self_attn.k_norm.weight", {4}}});
}

std::vector<FakeTensor> gemma3_tensors() {
  return with_layer_tensors({{"pre_feedforward_layernorm.weight", {8}},
                             {"post_feedforward_layernorm.weight", {8}},
                             {"self_attn.q_norm.weight", {4}},
                             {"self_attn.k_norm.weight", {4}}});
}

struct Published {
  const char* architecture;
  std::vector<FakeTensor> tensors;
  std::vector<FakeField> fields;
};

// The fields beside sizes that config.json has in published checkpoints of each family.
TEST(BuildModel, TheFieldsOfPublishedConfigurationsAreUnderstood) {
  const std::vector<FakeField> common = {{"attention_dropout", "0.0"},
                                         {"bos_token_id", "1"},
                                         {"eos_token_id", "[1, 106]"},
                                         {"hidden_act", "\"silu\""},
                                         {"initializer_range", "0.02"},
                                         {"model_type", "\"m\""},
                                         {"rms_norm_eps", "1e-05"},
                                         {"rope_theta", "500000.0"},
                                         {"torch_dtype", "\"bfloat16\""},
                                         {"use_cache", "true"},
                                         {"transformers_version", "\"4.43.0\""}};
  const std::string llama3 =
      "{\"factor\": 8.0, \"low_freq_factor\": 1.0, \"high_freq_factor\": 4.0, "
      "\"original_max_position_embeddings\": 8192, "
      "\"rope_type\": \"llama3\"}";
  const Published published[] = {
      {kLlama,
       fake_tensors(),
       {{"attention_bias", "false"},
        {"mlp_bias", "false"},
        {"pretraining_tp", "1"},
        {"rope_scaling", llama3}}},
      {kLlama,
       fake_tensors(),
       {{"is_llama_config", "true"},
        {"rope_interleaved", "false"},
        {"transformers.js_config", "{\"dtype\": \"q4\"}"},
        {"pad_token_id", "2"}}},
      {kMistral, fake_tensors(), {{"sliding_window", "null"}, {"_name_or_path", "\"x\""}}},
      {kQwen2,
       qwen2_tensors(),
       {{"max_window_layers", "28"},
        {"sliding_window", "131072"},
        {"use_sliding_window", "false"},
        {"use_mrope", "false"}}},
      {kQwen3,
       qwen3_tensors(),
       {{"attention_bias", "false"},
        {"max_window_layers", "28"},
        {"rope_scaling", "null"},
        {"sliding_window", "null"},
        {"use_sliding_window", "false"}}},
      {kGemma3,
       gemma3_tensors(),
       {{"attention_bias", "false"},
        {"attn_logit_softcapping", "null"},
        {"cache_implementation", "\"hybrid\""},
        {"final_logit_softcapping", "null"},
        {"hidden_act", ""},
        {"hidden_activation", "\"gelu_pytorch_tanh\""},
        {"query_pre_attn_scalar", "256"},
        {"rope_local_base_freq", "10000"},
        {"rope_scaling", "null"},
        {"sliding_window", "512"},
        {"sliding_window_pattern", "6"},
        {"tie_word_embeddings", "true"},
        {"use_bidirectional_attention", "false"}}},
  };
  for (const Published& model : published) {
    std::vector<FakeField> fields = common;
    fields.insert(fields.end(), model.fields.begin(), model.fields.end());
    std::vector<FakeField> config = fake_config(model.architecture);
    EXPECT_EQ(message_of(build(fake_json(config, fields), model.tensors)), "(no error)")
        << model.architecture;
  }
}

struct BadTensors {
  std::vector<FakeTensor> changed;  // replaces the one of the name or is added; an empty shape removes it
  const char* message;
};

TEST(BuildModel, ATensorThatIsMissingExtraOrMisshapenIsNamed) {
  const BadTensors cases[] = {
      {{{"model.layers.1.mlp.up_proj.weight", {}}},
       "folder: tensor 'model.layers.1.mlp.up_proj.weight' is missing; LlamaForCausalLM needs it with the "
       "shape [12, 8]"},
      {{{"lm_head.weight", {}}},
       "folder: tensor 'lm_head.weight' is missing; LlamaForCausalLM needs it with the shape [10, 8]"},
      {{{"model.norm.weight", {1, 8}}},
       "folder: tensor 'model.norm.weight' has the shape [1, 8], but by config.json it must be [8]"},
      {{{"model.layers.0.self_attn.k_proj.weight", {8, 4}}},
       "folder: tensor 'model.layers.0.self_attn.k_proj.weight' has the shape [8, 4], but by config.json it "
       "must be [4, 8]"},
      {{{"model.layers.0.self_attn.q_norm.weight", {4}}},
       "folder: tensor 'model.layers.0.self_attn.q_norm.weight' with the shape [4] is not one that "
       "LlamaForCausalLM has by config.json"},
      {{{"model.layers.0.self_attn.q_proj.bias", {8}}},
       "folder: tensor 'model.layers.0.self_attn.q_proj.bias' with the shape [8] is not one that "
       "LlamaForCausalLM has by config.json"},
      {{{"model.layers.0.self_attn.rotary_emb.inv_freq", {2}}}, "(no error)"},
  };
  for (const BadTensors& bad : cases) {
    std::vector<FakeTensor> tensors = fake_tensors();
    for (const FakeTensor& change : bad.changed) {
      std::erase_if(tensors, [&](const FakeTensor& tensor) { return tensor.name == change.name; });
      if (!change.shape.empty()) tensors.push_back(change);
    }
    EXPECT_EQ(message_of(build(fake_json(fake_config(kLlama), {}), tensors)), bad.message);
  }
}

TEST(BuildModel, ATiedHeadThatIsStoredMustBeTheEmbedding) {
  const std::vector<std::byte> embedding(10 * 8 * 2, std::byte{1});
  std::vector<std::byte> head = embedding;
  Result<Checkpoint> checkpoint =
      fake_checkpoint(fake_json(fake_config(kLlama), {{"tie_word_embeddings", "true"}}), fake_tensors());
  ASSERT_TRUE(checkpoint.ok());
  for (CheckpointTensor& tensor : checkpoint->tensors) {
    if (tensor.name == "lm_head.weight") tensor.bytes = head;
    if (tensor.name == "model.embed_tokens.weight") tensor.bytes = embedding;
  }
  const Result<OpGraph> graph = build_model(*checkpoint, {});
  ASSERT_TRUE(graph.ok()) << graph.error().message;
  for (const WeightRef& weight : graph->weights) EXPECT_NE(weight.name, "lm_head.weight");
  head[100] = std::byte{2};
  EXPECT_EQ(message_of(build_model(*checkpoint, {})),
            "folder: 'tie_word_embeddings' says that 'lm_head.weight' is 'model.embed_tokens.weight', but "
            "the checkpoint holds both "
            "and they differ; set it to false or remove the tensor that is wrong");
}

// The attributes of the attention of each layer.
std::vector<uint32_t> windows_of(const Result<OpGraph>& graph) {
  std::vector<uint32_t> windows;
  EXPECT_TRUE(graph.ok()) << message_of(graph);
  if (!graph.ok()) return windows;
  for (const KvStateRef& state : graph->kv_states) windows.push_back(state.window);
  return windows;
}

TEST(BuildModel, WindowsAreThoseOfTheFamilysRules) {
  using Windows = std::vector<uint32_t>;
  EXPECT_EQ(windows_of(build_changed(kLlama, {})), (Windows{0, 0}));
  EXPECT_EQ(windows_of(build_changed(kMistral, {{"sliding_window", "16"}})), (Windows{16, 16}));
  EXPECT_EQ(windows_of(build_changed(kMistral, {{"sliding_window", "null"}})), (Windows{0, 0}));
  EXPECT_EQ(windows_of(build_changed(kMistral, {})), (Windows{4096, 4096}));

  const auto qwen2 = [&](const std::vector<FakeField>& changes) {
    return windows_of(build(fake_json(fake_config(kQwen2), changes), qwen2_tensors()));
  };
  EXPECT_EQ(qwen2({{"sliding_window", "16"}, {"max_window_layers", "0"}}), (Windows{0, 0}));
  EXPECT_EQ(qwen2({{"sliding_window", "16"}, {"use_sliding_window", "true"}}),
            (Windows{0, 0}));  // from layer 28 on
  EXPECT_EQ(qwen2({{"sliding_window", "16"}, {"use_sliding_window", "true"}, {"max_window_layers", "1"}}),
            (Windows{0, 16}));
  EXPECT_EQ(qwen2({{"sliding_window", "16"},
                   {"use_sliding_window", "true"},
                   {"max_window_layers", "1"},
                   {"layer_types", "[\"sliding_attention\", \"full_attention\"]"}}),
            (Windows{16, 0}));
}

TEST(BuildModel, GemmasOldAndNewFieldsForRopesAndLayersMeanTheSame) {
  const auto text = [&](const std::vector<FakeField>& changes) {
    const Result<OpGraph> graph = build(fake_json(fake_config(kGemma3), changes), gemma3_tensors());
    return graph.ok() ? print_graph(*graph) : graph.error().message;
  };
  const std::string linear = "{\"rope_type\": \"linear\", \"factor\": 8}";
  const std::string old_form = text({{"sliding_window_pattern", "2"},
                                     {"sliding_window", "16"},
                                     {"rope_theta", "1000"},
                                     {"rope_local_base_freq", "10"},
                                     {"rope_scaling", linear}});
  const std::string new_form =
      text({{"layer_types", "[\"sliding_attention\", \"full_attention\"]"},
            {"_sliding_window_pattern", "2"},
            {"sliding_window", "16"},
            {"rope_parameters",
             "{\"full_attention\": {\"rope_type\": \"linear\", \"factor\": 8, \"rope_theta\": 1000}, "
             "\"sliding_attention\": {\"rope_type\": \"default\", \"rope_theta\": 10}}"}});
  EXPECT_EQ(old_form, new_form);
  EXPECT_TRUE(old_form.starts_with("graph ")) << old_form;
  EXPECT_NE(old_form.find("window=16"), std::string::npos);
  const std::string defaults = text({{"layer_types", "[\"sliding_attention\", \"full_attention\"]"}});
  EXPECT_NE(defaults.find("window=4096"), std::string::npos) << defaults;
}

// Second frequencies of the ropes in the order of their tables: theta^(-2/4) for heads of 4.
std::vector<double> second_frequencies(const Result<OpGraph>& graph) {
  std::vector<double> out;
  EXPECT_TRUE(graph.ok()) << message_of(graph);
  if (!graph.ok()) return out;
  for (const ConstantData& constant : graph->constants) out.push_back(constant.values[1]);
  return out;
}

// The defaults of transformers' configuration classes.
TEST(BuildModel, FieldsThatAreAbsentMeanWhatTransformersSays) {
  EXPECT_EQ(second_frequencies(build_changed(kLlama, {})), std::vector<double>{0.01});
  const std::string layers = "[\"sliding_attention\", \"full_attention\"]";
  EXPECT_EQ(
      second_frequencies(build(fake_json(fake_config(kGemma3), {{"layer_types", layers}}), gemma3_tensors())),
      (std::vector<double>{0.001, 0.01}));
  EXPECT_EQ(
      message_of(build(fake_json(fake_config(kGemma3), {{"tie_word_embeddings", ""}}), gemma3_tensors())),
      "(no error)");
  EXPECT_EQ(message_of(build_changed(kQwen3, {{"head_dim", ""}})),
            "folder: tensor 'model.layers.0.self_attn.q_proj.weight' has the shape [8, 8], but by "
            "config.json it must be [256, 8]");
  EXPECT_EQ(message_of(build_changed(kGemma3, {{"head_dim", ""}})),
            "folder: tensor 'model.layers.0.self_attn.q_proj.weight' has the shape [8, 8], but by "
            "config.json it must be [512, 8]");
}

TEST(BuildModel, OptionsGiveTheDtypesOfCacheAndMatrices) {
  const std::string config = fake_json(fake_config(kLlama), {});
  const Result<OpGraph> as_stored =
      build(config, fake_tensors(), {.kv_dtype = DType::kF32, .weight_dtype = {}});
  const Result<OpGraph> asked =
      build(config, fake_tensors(), {.kv_dtype = DType::kF16, .weight_dtype = DType::kF32});
  ASSERT_TRUE(as_stored.ok() && asked.ok());
  const auto count = [](const OpGraph& graph, Op op, DType dtype) {
    return std::ranges::count_if(graph.nodes,
                                 [&](const Node& node) { return node.op == op && node.dtype == dtype; });
  };
  EXPECT_EQ(count(*as_stored, Op::kWeight, DType::kBf16), 2 + 2 * 7);
  EXPECT_EQ(count(*as_stored, Op::kWeight, DType::kF32), 1 + 2 * 2);  // the gains of norms
  EXPECT_EQ(count(*as_stored, Op::kKvState, DType::kF32), 2);
  EXPECT_EQ(count(*asked, Op::kWeight, DType::kBf16), 0);
  EXPECT_EQ(count(*asked, Op::kKvState, DType::kF16), 2);
}

TEST(BuildModel, BlocksAreKeptWhereTheyAreReadAndBecomeBf16Elsewhere) {
  Result<Checkpoint> checkpoint = fake_checkpoint(fake_json(fake_config(kLlama), {}), fake_tensors());
  ASSERT_TRUE(checkpoint.ok());
  for (CheckpointTensor& tensor : checkpoint->tensors) {
    if (tensor.shape.size() == 1) continue;
    for (int64_t& n : tensor.shape) n *= 32;  // whole blocks
    tensor.dtype = tensor.name.ends_with("up_proj.weight")     ? StoredDType::kQ4_0
                   : tensor.name.ends_with("down_proj.weight") ? StoredDType::kQ6_K
                                                               : StoredDType::kQ8_0;
  }
  for (CheckpointTensor& tensor : checkpoint->tensors) {
    if (tensor.shape.size() == 1) tensor.shape[0] *= 32;
  }
  std::string config = fake_json(
      fake_config(kLlama),
      {{"vocab_size", "320"}, {"hidden_size", "256"}, {"intermediate_size", "384"}, {"head_dim", "128"}});
  checkpoint->config = *parse_json(config, "config.json");
  const auto dtype_of = [&](const ModelOptions& options, const std::string& name) {
    const Result<OpGraph> graph = build_model(*checkpoint, options);
    EXPECT_TRUE(graph.ok()) << message_of(graph);
    EXPECT_TRUE(verify_graph(*graph).ok());
    for (const Node& node : graph->nodes) {
      if (node.op == Op::kWeight && graph->weights[node.leaf].name.ends_with(name)) return node.dtype;
    }
    return DType::kU32;
  };
  const ModelOptions kept{.kv_dtype = DType::kBf16, .weight_dtype = {}, .keep_blocks = true};
  EXPECT_EQ(dtype_of(kept, "lm_head.weight"), DType::kQ8_0);
  EXPECT_EQ(dtype_of(kept, "embed_tokens.weight"), DType::kQ8_0);
  EXPECT_EQ(dtype_of(kept, "up_proj.weight"), DType::kQ4_0);
  EXPECT_EQ(dtype_of(kept, "down_proj.weight"), DType::kBf16) << "blocks that no body reads";
  EXPECT_EQ(dtype_of(kept, "input_layernorm.weight"), DType::kF32);
  EXPECT_EQ(dtype_of({}, "lm_head.weight"), DType::kBf16);
  const ModelOptions asked{.kv_dtype = DType::kBf16, .weight_dtype = DType::kF32, .keep_blocks = true};
  EXPECT_EQ(dtype_of(asked, "up_proj.weight"), DType::kF32);
}

}  // namespace
}  // namespace plow
