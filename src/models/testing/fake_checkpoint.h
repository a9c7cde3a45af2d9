// Checkpoints without bytes, for tests of what configurations and tensor lists are accepted: the families'
// smallest configurations, changed field by field.
#pragma once

#include "checkpoint/checkpoint.h"
#include "models/models.h"

#include <algorithm>
#include <string>
#include <vector>

namespace plow {

// A field of config.json: JSON text, or "" to leave the field out.
struct FakeField {
  std::string key;
  std::string json;
};

inline std::vector<FakeField> fake_config(const std::string& architecture) {
  return {{"architectures", "[\"" + architecture + "\"]"},
          {"vocab_size", "10"},
          {"hidden_size", "8"},
          {"intermediate_size", "12"},
          {"num_hidden_layers", "2"},
          {"num_attention_heads", "2"},
          {"num_key_value_heads", "1"},
          {"head_dim", "4"},
          {"max_position_embeddings", "64"},
          {"tie_word_embeddings", "false"}};
}

// `config` with the fields of `changes` set, added or (where the text is empty) left out.
inline std::string fake_json(std::vector<FakeField> config, const std::vector<FakeField>& changes) {
  for (const FakeField& change : changes) {
    const auto at = std::ranges::find(config, change.key, &FakeField::key);
    if (at == config.end()) {
      config.push_back(change);
    } else {
      at->json = change.json;
    }
  }
  std::string text;
  for (const FakeField& field : config) {
    if (!field.json.empty()) text += (text.empty() ? "{\"" : ", \"") + field.key + "\": " + field.json;
  }
  return text + "}";
}

struct FakeTensor {
  std::string name;
  std::vector<int64_t> shape;
};

// What fake_config() without biases and norms of heads needs.
inline std::vector<FakeTensor> fake_tensors() {
  std::vector<FakeTensor> tensors = {
      {"lm_head.weight", {10, 8}}, {"model.embed_tokens.weight", {10, 8}}, {"model.norm.weight", {8}}};
  for (const std::string layer : {"model.layers.0.", "model.layers.1."}) {
    tensors.push_back({layer + "input_layernorm.weight", {8}});
    tensors.push_back({layer + "mlp.down_proj.weight", {8, 12}});
    tensors.push_back({layer + "mlp.gate_proj.weight", {12, 8}});
    tensors.push_back({layer + "mlp.up_proj.weight", {12, 8}});
    tensors.push_back({layer + "post_attention_layernorm.weight", {8}});
    tensors.push_back({layer + "self_attn.k_proj.weight", {4, 8}});
    tensors.push_back({layer + "self_attn.o_proj.weight", {8, 8}});
    tensors.push_back({layer + "self_attn.q_proj.weight", {8, 8}});
    tensors.push_back({layer + "self_attn.v_proj.weight", {4, 8}});
  }
  return tensors;
}

inline Result<Checkpoint> fake_checkpoint(const std::string& config, const std::vector<FakeTensor>& tensors) {
  Checkpoint checkpoint;
  checkpoint.path = "folder";
  checkpoint.config_source = "config.json";
  PLOW_TRY(checkpoint.config, parse_json(config, "config.json"));
  for (const FakeTensor& tensor : tensors) {
    CheckpointTensor out;
    out.name = tensor.name;
    out.shape = tensor.shape;
    out.dtype = StoredDType::kBf16;
    checkpoint.tensors.push_back(std::move(out));
  }
  std::ranges::sort(checkpoint.tensors, {}, &CheckpointTensor::name);
  return checkpoint;
}

inline constexpr const char* kLlama = "LlamaForCausalLM";
inline constexpr const char* kMistral = "MistralForCausalLM";
inline constexpr const char* kQwen2 = "Qwen2ForCausalLM";
inline constexpr const char* kQwen3 = "Qwen3ForCausalLM";
inline constexpr const char* kGemma3 = "Gemma3ForCausalLM";

inline Result<OpGraph> build(const std::string& config, const std::vector<FakeTensor>& tensors,
                             const ModelOptions& options = {}) {
  PLOW_TRY(const Checkpoint checkpoint, fake_checkpoint(config, tensors));
  return build_model(checkpoint, options);
}

inline Result<OpGraph> build_changed(const std::string& architecture, const std::vector<FakeField>& changes) {
  return build(fake_json(fake_config(architecture), changes), fake_tensors());
}

inline std::string message_of(const Result<OpGraph>& graph) {
  return graph.ok() ? "(no error)" : graph.error().message;
}

}  // namespace plow
