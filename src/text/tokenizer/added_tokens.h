// Finds added tokens in a text, as `tokenizers` does: the leftmost match, the longest of those; a match that
// turns out not to count (a special token where text must stay text, a single word inside a word) is used up
// all the same.
#pragma once

#include "text/tokenizer/regex.h"
#include "text/tokenizer/table_view.h"

#include <cstdint>
#include <string_view>
#include <vector>

namespace plow {

// A stretch of text, or an added token with the white space that it takes along.
struct AddedSplit {
  TextSpan span;
  uint32_t id = kNoToken;  // kNoToken: text
};

class AddedTokenMatcher {
 public:
  // `table` must stay. `section` is kAddedTrie or kNormalizedTrie.
  AddedTokenMatcher(const TableView& table, SectionId section);

  // Cuts all of `text`. With `allow_control` false, control tokens are not matched. REQUIRES valid UTF-8.
  std::vector<AddedSplit> split(std::string_view text, bool allow_control) const;

 private:
  bool is_single_word(std::string_view text, TextSpan match) const;

  const TableView* table_;
  TrieView trie_;
};

}  // namespace plow
