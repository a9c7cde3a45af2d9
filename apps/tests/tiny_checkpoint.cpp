#include "tests/tiny_checkpoint.h"

#include "base/float16.h"
#include "text/tokenizer/byte_level.h"

#include <boost/json.hpp>

#include <fstream>
#include <iterator>
#include <random>
#include <vector>

namespace plow {

namespace {

namespace json = boost::json;
namespace fs = std::filesystem;

constexpr uint32_t kHeadDim = 16, kKvHeads = 2, kIntermediate = 96;
constexpr uint32_t kImStart = 256, kImEnd = 257, kEndOfText = 258, kTwoNewlines = 259;

struct Tensor {
  std::string name;
  std::vector<uint32_t> shape;
};

std::vector<Tensor> tensors_of(const TinyCheckpoint& o) {
  std::vector<Tensor> tensors = {{"model.embed_tokens.weight", {o.vocab, o.hidden}},
                                 {"model.norm.weight", {o.hidden}}};
  for (uint32_t layer = 0; layer < o.layers; ++layer) {
    const std::string prefix = "model.layers." + std::to_string(layer) + ".";
    const auto add = [&](const char* name, std::vector<uint32_t> shape) {
      tensors.push_back({prefix + name, std::move(shape)});
    };
    add("input_layernorm.weight", {o.hidden});
    add("post_attention_layernorm.weight", {o.hidden});
    add("self_attn.q_proj.weight", {o.hidden, o.hidden});
    add("self_attn.k_proj.weight", {kKvHeads * kHeadDim, o.hidden});
    add("self_attn.v_proj.weight", {kKvHeads * kHeadDim, o.hidden});
    add("self_attn.o_proj.weight", {o.hidden, o.hidden});
    add("mlp.gate_proj.weight", {kIntermediate, o.hidden});
    add("mlp.up_proj.weight", {kIntermediate, o.hidden});
    add("mlp.down_proj.weight", {o.hidden, kIntermediate});
  }
  return tensors;
}

// The format of safetensors: eight bytes of length, JSON, the data (github.com/huggingface/safetensors).
void write_safetensors(const fs::path& path, const TinyCheckpoint& options) {
  json::object header;
  uint64_t bytes = 0;
  for (const Tensor& tensor : tensors_of(options)) {
    uint64_t count = 1;
    for (const uint32_t dimension : tensor.shape) count *= dimension;
    header[tensor.name] = {{"dtype", "BF16"},
                           {"shape", json::array(tensor.shape.begin(), tensor.shape.end())},
                           {"data_offsets", {bytes, bytes + 2 * count}}};
    bytes += 2 * count;
  }
  const std::string text = json::serialize(header);
  const uint64_t length = text.size();
  std::ofstream file(path, std::ios::binary);
  file.write(reinterpret_cast<const char*>(&length), sizeof(length))
      .write(text.data(), static_cast<std::streamsize>(text.size()));
  if (!options.zero_weights) {
    std::mt19937 random(7);
    std::uniform_real_distribution<float> value(-0.25f, 0.25f);
    for (uint64_t i = 0; i < bytes / 2; ++i) {
      const uint16_t bits = float_to_bf16(value(random));
      file.write(reinterpret_cast<const char*>(&bits), sizeof(bits));
    }
  }
  file.close();
  fs::resize_file(path, sizeof(length) + length + bytes);
}

std::string byte_character(uint32_t byte) {
  std::string character;
  append_byte_level(character, std::string(1, static_cast<char>(byte)));
  return character;
}

json::object added_token(uint32_t id, const char* content) {
  return {{"id", id},        {"content", content},  {"single_word", false}, {"lstrip", false},
          {"rstrip", false}, {"normalized", false}, {"special", true}};
}

json::object config_json(const TinyCheckpoint& o) {
  return {{"architectures", {"LlamaForCausalLM"}},
          {"model_type", "llama"},
          {"attention_bias", false},
          {"attention_dropout", 0.0},
          {"bos_token_id", kEndOfText},
          {"eos_token_id", kImEnd},
          {"head_dim", kHeadDim},
          {"hidden_act", "silu"},
          {"hidden_size", o.hidden},
          {"initializer_range", 0.02},
          {"intermediate_size", kIntermediate},
          {"max_position_embeddings", 256},
          {"mlp_bias", false},
          {"num_attention_heads", o.hidden / kHeadDim},
          {"num_hidden_layers", o.layers},
          {"num_key_value_heads", kKvHeads},
          {"pretraining_tp", 1},
          {"rms_norm_eps", 1e-5},
          {"rope_scaling", nullptr},
          {"rope_theta", 10000.0},
          {"tie_word_embeddings", true},
          {"torch_dtype", "bfloat16"},
          {"use_cache", true},
          {"vocab_size", o.vocab}};
}

constexpr const char* kChatTemplate =
    "{% for message in messages %}<|im_start|>{{ message['role'] }}\n{{ message['content'] }}<|im_end|>\n{% "
    "endfor %}"
    "{% if add_generation_prompt %}<|im_start|>assistant\n{% endif %}";

}  // namespace

std::string tiny_tokenizer_json(bool merge_newlines) {
  json::object vocab;
  for (uint32_t byte = 0; byte < 256; ++byte) vocab[byte_character(byte)] = byte;
  json::array merges;
  if (merge_newlines) {
    const std::string newline = byte_character('\n');
    vocab[newline + newline] = kTwoNewlines;
    merges.push_back(json::value(newline + " " + newline));
  }
  const json::object byte_level{
      {"type", "ByteLevel"}, {"add_prefix_space", false}, {"trim_offsets", true}, {"use_regex", true}};
  const json::object root{{"version", "1.0"},
                          {"truncation", nullptr},
                          {"padding", nullptr},
                          {"added_tokens",
                           {added_token(kImStart, "<|im_start|>"), added_token(kImEnd, "<|im_end|>"),
                            added_token(kEndOfText, "<|endoftext|>")}},
                          {"normalizer", nullptr},
                          {"pre_tokenizer", byte_level},
                          {"post_processor", nullptr},
                          {"decoder", byte_level},
                          {"model",
                           {{"type", "BPE"},
                            {"dropout", nullptr},
                            {"unk_token", nullptr},
                            {"continuing_subword_prefix", nullptr},
                            {"end_of_word_suffix", nullptr},
                            {"fuse_unk", false},
                            {"byte_fallback", false},
                            {"ignore_merges", false},
                            {"vocab", vocab},
                            {"merges", merges}}}};
  return json::serialize(root);
}

void write_file(const fs::path& path, const std::string& text) {
  std::ofstream(path, std::ios::binary) << text;
}

std::string read_file(const fs::path& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), {}};
}

void write_tiny_checkpoint(const fs::path& folder, const TinyCheckpoint& options) {
  fs::create_directories(folder);
  write_file(folder / "config.json", json::serialize(config_json(options)));
  write_file(folder / "generation_config.json", R"({"bos_token_id": 258, "eos_token_id": 257})");
  write_file(folder / "tokenizer.json", tiny_tokenizer_json());
  json::object tokenizer_config{{"bos_token", "<|endoftext|>"},
                                {"eos_token", "<|im_end|>"},
                                {"tokenizer_class", "PreTrainedTokenizerFast"}};
  if (options.chat_template) tokenizer_config["chat_template"] = kChatTemplate;
  write_file(folder / "tokenizer_config.json", json::serialize(tokenizer_config));
  write_safetensors(folder / "model.safetensors", options);
}

}  // namespace plow
