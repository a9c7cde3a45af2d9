// tokenizer.ggml.pre: the names that llama.cpp gives to the pre-tokenizers of byte-level BPE models.
#pragma once

#include "base/error.h"
#include "text/tokenizer/component.h"

#include <string_view>
#include <vector>

namespace plow {

struct GgufPreTokenizer {
  std::vector<Component> normalizers;
  std::vector<Component> pre_tokenizers;
  bool ignore_merges = false;
  bool add_bos = false;  // where the file does not say
};

// Errors: the name is empty or not known; the message lists those that are.
Result<GgufPreTokenizer> find_gguf_pre_tokenizer(std::string_view name);

}  // namespace plow
