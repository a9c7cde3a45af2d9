// What a fuzz target does with a checkpoint that was accepted: touch everything in it. For *_fuzz.cpp only.
#pragma once

#include "checkpoint/checkpoint.h"

#include <vector>

namespace plow::testing_files {

// The first and the last row of each tensor, so that a wrong offset at either end is seen by the sanitizer.
inline void read_tensors(const std::vector<CheckpointTensor>& tensors) {
  for (const auto& tensor : tensors) {
    std::vector<float> row(static_cast<size_t>(tensor.row_values()));
    read_rows(tensor, 0, 1, row.data());
    read_rows(tensor, tensor.n_rows() - 1, 1, row.data());
  }
}

inline void read_tokenizer(const GgufTokenizer& tokenizer) {
  size_t bytes = 0;
  for (const std::string_view token : tokenizer.tokens)
    bytes += token.size() + (token.empty() ? 0 : token.back() & 1);
  for (const std::string_view merge : tokenizer.merges) bytes += merge.size();
  for (size_t i = 0; i < tokenizer.scores.size(); ++i) bytes += tokenizer.scores[i] > 0 ? 1 : 0;
  for (size_t i = 0; i < tokenizer.token_types.size(); ++i)
    bytes += static_cast<size_t>(tokenizer.token_types[i] & 1);
  volatile size_t keep = bytes;  // the reads must not be removed
  (void)keep;
}

}  // namespace plow::testing_files
