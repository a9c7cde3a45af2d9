// A checkpoint small enough to be written by a test: a Llama of random weights, with a tokenizer of single
// bytes and a chat template.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>

namespace plow {

struct TinyCheckpoint {
  uint32_t vocab = 272;  // 256 bytes, three control tokens, the rest unused
  uint32_t hidden = 64;
  uint32_t layers = 2;
  bool chat_template = true;
  bool zero_weights = false;  // a sparse file: large without taking space
};

// Writes config.json, generation_config.json, model.safetensors, tokenizer.json and tokenizer_config.json
// into `folder`, which is made.
void write_tiny_checkpoint(const std::filesystem::path& folder, const TinyCheckpoint& options = {});

// The tokenizer of tiny checkpoints: bytes, three control tokens and, when `merge_newlines`, the token 259 for two newlines.
std::string tiny_tokenizer_json(bool merge_newlines = false);

void write_file(const std::filesystem::path& path, const std::string& text);
std::string read_file(const std::filesystem::path& path);

}  // namespace plow
