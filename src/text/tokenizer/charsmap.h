// The "precompiled_charsmap" of a sentencepiece model: character sequences and what to write for them.
//
// Format (sentencepiece src/normalizer.cc): uint32 size of the trie in bytes; the trie, an array of uint32
// units as Darts-clone makes it; the replacements, each ended by a NUL. A value of the trie is an offset into
// the replacements.
#pragma once

#include "base/error.h"

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace plow {

class Charsmap {
 public:
  // `bytes` must stay. Errors: sizes that do not fit, replacements that are not UTF-8.
  static Result<Charsmap> open(std::string_view bytes);

  // `text` with the map applied as `tokenizers` does: to whole grapheme clusters of less than 6 bytes, else
  // to each character; what is looked up is the shortest entry that the cluster begins with. REQUIRES valid
  // UTF-8.
  std::string apply(std::string_view text) const;

 private:
  // The replacement of the shortest entry that `text` begins with.
  std::optional<std::string_view> find(std::string_view text) const;

  std::vector<uint32_t> units_;
  std::string_view replacements_;
};

}  // namespace plow
