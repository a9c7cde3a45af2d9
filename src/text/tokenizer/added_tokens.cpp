#include "text/tokenizer/added_tokens.h"

#include "text/tokenizer/unicode.h"
#include "text/tokenizer/utf8.h"

namespace plow {

AddedTokenMatcher::AddedTokenMatcher(const TableView& table, SectionId section)
    : table_(&table), trie_(table.trie(section)) {}

bool AddedTokenMatcher::is_single_word(std::string_view text, TextSpan match) const {
  const bool word_before = match.begin > 0 && is_word(code_point_before(text, match.begin).value);
  const bool word_after = match.end < text.size() && is_word(code_point_at(text, match.end).value);
  return !word_before && !word_after;
}

std::vector<AddedSplit> AddedTokenMatcher::split(std::string_view text, bool allow_control) const {
  std::vector<AddedSplit> splits;
  size_t done = 0;
  for (size_t i = 0; !trie_.empty() && i < text.size();) {
    const auto [length, index] = trie_.longest_prefix(text.substr(i));
    if (length == 0) {
      ++i;
      continue;
    }
    const AddedRecord& token = table_->added()[index];
    TextSpan match = {i, i + length};
    i += length;
    if (!allow_control && (table_->flags(token.id) & kTokenControl) != 0) continue;
    if ((token.flags & kSingleWord) != 0 && !is_single_word(text, match)) continue;
    while ((token.flags & kLeftStrip) != 0 && match.begin > done) {
      const CodePoint before = code_point_before(text, match.begin);
      if (!is_white_space(before.value)) break;
      match.begin -= before.bytes;
    }
    while ((token.flags & kRightStrip) != 0 && match.end < text.size()) {
      const CodePoint after = code_point_at(text, match.end);
      if (!is_white_space(after.value)) break;
      match.end += after.bytes;
    }
    if (done < match.begin) splits.push_back({{done, match.begin}, kNoToken});
    splits.push_back({match, token.id});
    done = match.end;
  }
  if (done < text.size()) splits.push_back({{done, text.size()}, kNoToken});
  return splits;
}

}  // namespace plow
