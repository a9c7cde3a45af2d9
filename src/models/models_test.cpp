// What build_model refuses, by which message, and which of a configuration's forms mean the same.
#include "models/models.h"

#include "graph/op_def.h"
#include "models/testing/fake_checkpoint.h"

#include <gtest/gtest.h>

namespace plow {
namespace {

struct BadConfig {
  const char* architecture;
  FakeField field;
  const char* message;
};

Result<OpGraph> build(const std::string& config, const std::vector<FakeTensor>& tensors,
                      const ModelOptions& options = {}) {
  PLOW_TRY(const Checkpoint checkpoint, fake_checkpoint(config, tensors));
  return build_model(checkpoint, options);
}

Result<OpGraph> build_changed(const std::string& architecture, const std::vector<FakeField>& changes) {
  return build(fake_json(fake_config(architecture), changes), fake_tensors());
}

std::string message_of(const Result<OpGraph>& graph) {
  return graph.ok() ? "(no error)" : graph.error().message;
}

const char* const kLlama = "LlamaForCausalLM";
const char* const kMistral = "MistralForCausalLM";
const char* const kQwen2 = "Qwen2ForCausalLM";
const char* const kQwen3 = "Qwen3ForCausalLM";
const char* const kGemma3 = "Gemma3ForCausalLM";

// Each replaces, adds or (empty text) removes one field of a configuration that is accepted.
const BadConfig kBadConfigs[] = {
    // Architecture.
    {kLlama,
     {"architectures", ""},
     "config.json: 'architectures' is missing; it must be an array of strings"},
    {kLlama, {"architectures", "[]"}, "config.json: 'architectures' must be a list of one name, found []"},
    {kLlama,
     {"architectures", "\"LlamaForCausalLM\""},
     "config.json: 'architectures' must be an array of strings, found \"LlamaForCausalLM\""},
    {kLlama,
     {"architectures", "[\"MambaForCausalLM\"]"},
     "config.json: the architecture 'MambaForCausalLM' is not supported; supported are Gemma3ForCausalLM, "
     "LlamaForCausalLM, "
     "MistralForCausalLM, Qwen2ForCausalLM, Qwen3ForCausalLM"},
    // Sizes.
    {kLlama, {"hidden_size", ""}, "config.json: 'hidden_size' is missing; it must be a positive integer"},
    {kLlama, {"hidden_size", "\"8\""}, "config.json: 'hidden_size' must be a positive integer, found \"8\""},
    {kLlama, {"hidden_size", "8.0"}, "config.json: 'hidden_size' must be a positive integer, found 8.0"},
    {kLlama, {"hidden_size", "0"}, "config.json: 'hidden_size' must be a positive integer, found 0"},
    {kLlama, {"hidden_size", "-8"}, "config.json: 'hidden_size' must be a positive integer, found -8"},
    {kLlama,
     {"hidden_size", "4294967304"},
     "config.json: 'hidden_size' must be a positive integer, found 4294967304"},
    {kLlama, {"vocab_size", "null"}, "config.json: 'vocab_size' must be a positive integer, found null"},
    {kLlama,
     {"vocab_size", "2147483647"},
     "folder: tensor 'model.embed_tokens.weight' has the shape [10, 8], but by config.json it must be "
     "[2147483647, 8]"},
    {kLlama,
     {"intermediate_size", "true"},
     "config.json: 'intermediate_size' must be a positive integer, found true"},
    {kLlama,
     {"num_hidden_layers", "0"},
     "config.json: 'num_hidden_layers' must be an integer from 1 to 1024, found 0"},
    {kLlama,
     {"num_hidden_layers", "2147483647"},
     "config.json: 'num_hidden_layers' must be an integer from 1 to 1024, found 2147483647"},
    {kLlama,
     {"num_hidden_layers", "3"},
     "folder: tensor 'model.layers.2.input_layernorm.weight' is missing; LlamaForCausalLM needs it with the "
     "shape [8]"},
    {kLlama,
     {"num_hidden_layers", "1"},
     "folder: tensor 'model.layers.1.input_layernorm.weight' with the shape [8] is not one that "
     "LlamaForCausalLM has by config.json"},
    {kLlama,
     {"max_position_embeddings", "0"},
     "config.json: 'max_position_embeddings' must be a positive integer, found 0"},
    // Heads.
    {kLlama,
     {"num_attention_heads", "0"},
     "config.json: 'num_attention_heads' must be an integer from 1 to 1024, found 0"},
    {kLlama,
     {"num_attention_heads", "100000"},
     "config.json: 'num_attention_heads' must be an integer from 1 to 1024, found 100000"},
    {kLlama,
     {"num_key_value_heads", "0"},
     "config.json: 'num_key_value_heads' must be an integer from 1 to 2, found 0"},
    {kLlama,
     {"num_key_value_heads", "3"},
     "config.json: 'num_key_value_heads' must be an integer from 1 to 2, found 3"},
    {kLlama,
     {"num_attention_heads", "3"},
     "folder: tensor 'model.layers.0.self_attn.q_proj.weight' has the shape [8, 8], but by config.json it "
     "must be [12, 8]"},
    {kMistral,
     {"num_key_value_heads", ""},
     "config.json: 'num_key_value_heads' is missing; it must be an integer from 1 to 2, or null for as many "
     "as heads"},
    {kLlama,
     {"head_dim", "3"},
     "config.json: heads of 3 columns; they must have an even number of at most 4096"},
    {kLlama,
     {"head_dim", "1000000"},
     "config.json: 'head_dim' must be an integer from 1 to 4096, found 1000000"},
    {kLlama,
     {"head_dim", "6"},
     "folder: tensor 'model.layers.0.self_attn.q_proj.weight' has the shape [8, 8], but by config.json it "
     "must be [12, 8]"},
    // Norms, activations, biases.
    {kLlama,
     {"rms_norm_eps", "\"1e-6\""},
     "config.json: 'rms_norm_eps' must be a finite number, found \"1e-6\""},
    {kLlama, {"rms_norm_eps", "-1"}, "config.json: 'rms_norm_eps' must be a number of at least 0, found -1"},
    {kLlama,
     {"rms_norm_eps", "1e300"},
     "config.json: 'rms_norm_eps' must be a number of at least 0, found 1e+300"},
    {kLlama,
     {"hidden_act", "\"relu\""},
     "config.json: 'hidden_act' must be 'silu', 'gelu' or 'gelu_pytorch_tanh', found \"relu\""},
    {kLlama, {"attention_bias", "1"}, "config.json: 'attention_bias' must be true or false, found 1"},
    {kLlama,
     {"attention_bias", "true"},
     "folder: tensor 'model.layers.0.self_attn.q_proj.bias' is missing; LlamaForCausalLM needs it with the "
     "shape [8]"},
    {kLlama,
     {"mlp_bias", "true"},
     "folder: tensor 'model.layers.0.mlp.gate_proj.bias' is missing; LlamaForCausalLM needs it with the "
     "shape [12]"},
    {kMistral,
     {"attention_bias", "true"},
     "config.json: 'attention_bias' must be false; true is not supported for this architecture, found true"},
    {kLlama,
     {"rope_interleaved", "true"},
     "config.json: 'rope_interleaved' must be false; true is not supported for this architecture, found "
     "true"},
    // Rope.
    {kLlama, {"rope_theta", "0"}, "config.json: 'rope_theta' must be a number above 0, found 0"},
    {kLlama,
     {"rope_theta", "NaN"},
     "config.json: 'rope_theta' must be a finite number, found {\"__float__\":\"NaN\"}"},
    {kLlama, {"rope_scaling", "2.0"}, "config.json: 'rope_scaling' must be an object, found 2.0"},
    {kLlama,
     {"rope_scaling", "{\"rope_type\": \"longrope\", \"factor\": 4}"},
     "config.json: 'rope_scaling.rope_type' must be 'default', 'linear', 'dynamic', 'llama3' or 'yarn', "
     "found \"longrope\""},
    {kLlama,
     {"rope_scaling", "{\"type\": \"su\"}"},
     "config.json: 'rope_scaling.type' must be 'default', 'linear', 'dynamic', 'llama3' or 'yarn', found "
     "\"su\""},
    {kLlama,
     {"rope_scaling", "{\"type\": \"linear\", \"rope_type\": \"yarn\", \"factor\": 2}"},
     "config.json: 'rope_scaling.type' must be what 'rope_type' is: 'yarn', found \"linear\""},
    {kLlama,
     {"rope_scaling", "{\"type\": \"linear\"}"},
     "config.json: 'rope_scaling.factor' is missing; it must be a finite number"},
    {kLlama,
     {"rope_scaling", "{\"type\": \"linear\", \"factor\": -2}"},
     "config.json: 'rope_scaling.factor' must be a number above 0, found -2"},
    {kLlama,
     {"rope_scaling", "{\"type\": \"linear\", \"factor\": 1e-320}"},
     "config.json: the rope parameters give a frequency that is not a finite number"},
    {kLlama,
     {"rope_scaling", "{\"type\": \"dynamic\"}"},
     "config.json: 'rope_scaling.factor' is missing; it must be a finite number"},
    {kLlama,
     {"rope_scaling", "{\"type\": \"linear\", \"factor\": 2, \"attn_factor\": 3}"},
     "config.json: not understood: 'rope_scaling.attn_factor' (3). A field that may change the result is "
     "never skipped."},
    {kLlama,
     {"rope_scaling",
      "{\"rope_type\": \"llama3\", \"factor\": 8, \"low_freq_factor\": 4, \"high_freq_factor\": 1}"},
     "config.json: 'rope_scaling.high_freq_factor' must be above low_freq_factor, found 1"},
    {kLlama,
     {"rope_scaling", "{\"rope_type\": \"yarn\", \"factor\": 8, \"rope_theta\": 1}"},
     "config.json: 'rope_scaling.rope_theta' must be above 1 for yarn, found 1"},
    {kLlama,
     {"rope_parameters", "{\"rope_type\": \"default\", \"partial_rotary_factor\": 0.5}"},
     "config.json: 'rope_parameters.partial_rotary_factor' must be 1: this architecture rotates whole heads, "
     "found 0.5"},
    {kGemma3,
     {"rope_parameters", "{\"rope_type\": \"default\"}"},
     "config.json: not understood: 'rope_parameters.rope_type' (\"default\"). A field that may change the "
     "result is never skipped."},
    {kGemma3,
     {"rope_local_base_freq", "-1"},
     "config.json: 'rope_local_base_freq' must be a number above 0, found -1"},
    // Windows and layer types.
    {kMistral, {"sliding_window", "0"}, "config.json: 'sliding_window' must be a positive integer, found 0"},
    {kQwen2,
     {"layer_types", "[\"full_attention\"]"},
     "config.json: 'layer_types' has 1 entries for 2 layers"},
    {kQwen2,
     {"layer_types", "[\"full_attention\", \"sliding_attention\"]"},
     "config.json: 'layer_types' has sliding_attention for layer 1, but there is no sliding window"},
    {kQwen3,
     {"layer_types", "[\"full_attention\", \"linear_attention\"]"},
     "config.json: 'layer_types' has 'linear_attention' for layer 1; supported are full_attention and "
     "sliding_attention"},
    {kQwen3, {"layer_types", "7"}, "config.json: 'layer_types' must be an array of strings, found 7"},
    {kQwen3,
     {"max_window_layers", "-1"},
     "config.json: 'max_window_layers' must be an integer from 0 to 2147483647, found -1"},
    {kGemma3,
     {"sliding_window", "null"},
     "config.json: 'sliding_window' must be a positive integer where there is no layer_types, found null"},
    {kGemma3,
     {"use_bidirectional_attention", "true"},
     "config.json: 'use_bidirectional_attention' must be false; true is not supported for this architecture, "
     "found true"},
    {kGemma3,
     {"query_pre_attn_scalar", "0"},
     "config.json: 'query_pre_attn_scalar' must be a number above 0, found 0"},
    {kGemma3,
     {"attn_logit_softcapping", "-30"},
     "config.json: 'attn_logit_softcapping' must be a number above 0, or null, found -30"},
    // Fields that nobody understands.
    {kLlama,
     {"quantization_config", "{\"bits\": 4}"},
     "config.json: not understood: 'quantization_config' ({\"bits\":4}). A field that may change the result "
     "is never skipped."},
    {kLlama,
     {"sliding_window", "4096"},
     "config.json: not understood: 'sliding_window' (4096). A field that may change the result is never "
     "skipped."},
    {kQwen2,
     {"attn_logit_softcapping", "50"},
     "config.json: not understood: 'attn_logit_softcapping' (50). A field that may change the result is "
     "never skipped."},
};

TEST(BuildModel, EveryBadConfigurationIsRefusedByItsMessage) {
  for (const BadConfig& bad : kBadConfigs) {
    const Result<OpGraph> graph = build_changed(bad.architecture, {bad.field});
    EXPECT_EQ(message_of(graph), bad.message)
        << bad.architecture << " " << bad.field.key << ": " << bad.field.json;
    if (!graph.ok()) {
      EXPECT_EQ(graph.error().error_class, ErrorClass::kInput);
    }
  }
}

TEST(BuildModel, HeadsMustDivide) {
  EXPECT_EQ(
      message_of(build_changed(kLlama, {{"num_attention_heads", "4"}, {"num_key_value_heads", "3"}})),
      "config.json: 'num_key_value_heads' must be a divisor of num_attention_heads, which is 4, found 3");
  EXPECT_EQ(message_of(build_changed(kLlama, {{"num_attention_heads", "3"}, {"head_dim", ""}})),
            "config.json: 'num_attention_heads' must be a divisor of hidden_size, which is 8, where there is "
            "no head_dim, found 3");
  EXPECT_EQ(message_of(build_changed(kLlama, {{"hidden_size", "2147483646"}, {"head_dim", ""}})),
            "config.json: heads of 1073741823 columns; they must have an even number of at most 4096");
}

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

  std::vector<FakeTensor> tensors = fake_tensors();
  for (const std::string layer : {"model.layers.0.", "model.layers.1."}) {
    tensors.push_back({layer + "self_attn.q_proj.bias", {8}});
    tensors.push_back({layer + "self_attn.k_proj.bias", {4}});
    tensors.push_back({layer + "self_attn.v_proj.bias", {4}});
  }
  const auto qwen2 = [&](const std::vector<FakeField>& changes) {
    return windows_of(build(fake_json(fake_config(kQwen2), changes), tensors));
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

std::vector<FakeTensor> gemma3_tensors() {
  std::vector<FakeTensor> tensors = fake_tensors();
  for (const std::string layer : {"model.layers.0.", "model.layers.1."}) {
    for (const char* norm : {"pre_feedforward_layernorm.weight", "post_feedforward_layernorm.weight"})
      tensors.push_back({layer + norm, {8}});
    for (const char* norm : {"self_attn.q_norm.weight", "self_attn.k_norm.weight"})
      tensors.push_back({layer + norm, {4}});
  }
  return tensors;
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

}  // namespace
}  // namespace plow
