// Configurations that build_model refuses, each with its message.
#include "models/models.h"
#include "models/testing/fake_checkpoint.h"

#include <gtest/gtest.h>

namespace plow {
namespace {

struct BadConfig {
  const char* architecture;
  FakeField field;
  const char* message;
};

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

}  // namespace
}  // namespace plow
