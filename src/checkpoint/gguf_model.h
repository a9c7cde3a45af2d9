// What a GGUF file says, in Hugging Face's words: tensor names and layout, config.json,
// generation_config.json, and the tokenizer's tables. The architectures are the rows of kGgufArchitectures;
// Mistral's files call themselves "llama". Sources: gguf-py's constants.py and tensor_mapping.py for the keys
// and names; llama.cpp's convert_hf_to_gguf.py for what it does to the values; the configuration classes of
// transformers for what the fields are called.
#pragma once

#include "base/error.h"
#include "checkpoint/checkpoint.h"
#include "checkpoint/gguf.h"
#include "checkpoint/json.h"

#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace plow {

struct GgufArchitecture {
  std::string_view name;        // general.architecture, and the prefix of its keys
  std::string_view class_name;  // config.json: architectures[0]
  std::string_view model_type;  // config.json: model_type
  bool interleaved_qk;          // CheckpointTensor::interleaved_heads of Q and K
  bool gemma;                   // norms stored as 1 + w, four of them a layer, sliding and full layers
  std::string_view
      end_of_turn;  // a token that ends a turn though the file's eos is another; "" when there is none
};

inline constexpr GgufArchitecture kGgufArchitectures[] = {
    {"llama", "LlamaForCausalLM", "llama", true, false, ""},
    {"qwen2", "Qwen2ForCausalLM", "qwen2", false, false, "<|endoftext|>"},
    {"qwen3", "Qwen3ForCausalLM", "qwen3", false, false, "<|endoftext|>"},
    {"gemma3", "Gemma3ForCausalLM", "gemma3_text", false, true, "<end_of_turn>"},
};

// Everything of a Checkpoint but its path and files; spans point to what `gguf` points to, and file_idx is 0.
// Errors (kInput, beginning with `source`): an architecture that is not above, a key of the architecture or a
// tensor that is not understood, a key missing or of the wrong kind.
Result<Checkpoint> gguf_to_checkpoint(const GgufFile& gguf, const std::string& source);

// The pieces of it, in the order in which they run. `fields` is the root of a reader of gguf.metadata.

struct GgufHeads {
  int64_t query = 0;
  int64_t key_value = 0;
};

Result<std::vector<CheckpointTensor>> gguf_tensors(const GgufFile& gguf, const GgufArchitecture& architecture,
                                                   const GgufHeads& heads, const std::string& source);

// Absent when the file has no tokenizer.
Result<std::optional<GgufTokenizer>> gguf_tokenizer(const GgufFile& gguf, const JsonFields& fields,
                                                    const std::string& source);

Result<GgufHeads> gguf_heads(const JsonFields& fields, const GgufArchitecture& architecture);

Result<JsonValue> gguf_config(const JsonFields& fields, const GgufArchitecture& architecture,
                              const std::vector<CheckpointTensor>& tensors,
                              const std::optional<GgufTokenizer>& tokenizer, const GgufTensor* rope_factors);

Result<JsonValue> gguf_generation_config(const JsonFields& fields, const GgufArchitecture& architecture,
                                         const GgufTokenizer& tokenizer);

}  // namespace plow
