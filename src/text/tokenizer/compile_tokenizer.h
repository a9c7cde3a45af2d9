// Turns a checkpoint's tokenizer into the table that Tokenizer::open() maps (tokenizer.h). For plowc; reads
// JSON, which the runtime never does. The same input gives the same bytes.
#pragma once

#include "base/error.h"

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace plow {

// `tokenizer_json` and `tokenizer_config_json` are the texts of the files of those names; the second may be
// empty. The second gives the names of the bos, eos, pad and unk tokens, which the first does not have, and
// more special tokens
// (`added_tokens_decoder`). Components are those of the library `tokenizers` 0.23.3.
// Errors (kInput): not JSON, a component or field that is not known, a merge of pieces that are not in the
// vocabulary, ids that clash, a regular expression that does not compile, ... Each names the place.
Result<std::vector<std::byte>> compile_tokenizer(std::string_view tokenizer_json,
                                                 std::string_view tokenizer_config_json = {});

// The tokenizer metadata of a GGUF file, key by key
// (https://github.com/ggml-org/ggml/blob/master/docs/gguf.md, "tokenizer.ggml.*").
struct GgufTokenizerSource {
  std::string model;                // tokenizer.ggml.model: "llama", "gpt2", "gemma4", "bert"
  std::string pre;                  // tokenizer.ggml.pre: "llama-bpe", "qwen2", ...; empty when absent
  std::vector<std::string> tokens;  // tokenizer.ggml.tokens
  std::vector<float> scores;        // tokenizer.ggml.scores; empty when absent
  std::vector<int32_t>
      types;  // tokenizer.ggml.token_type: 1 normal, 2 unknown, 3 control, 4 user, 5 unused, 6 byte
  std::vector<std::string> merges;  // tokenizer.ggml.merges: "left right"
  std::optional<uint32_t> bos_id, eos_id, unk_id, pad_id, eot_id, sep_id, cls_id;
  std::optional<bool> add_bos, add_eos, add_space_prefix;
};

// Errors (kInput): as above, and a model or pre-tokenizer name that is not known (the message lists those
// that are).
Result<std::vector<std::byte>> compile_tokenizer(const GgufTokenizerSource& source);

}  // namespace plow
