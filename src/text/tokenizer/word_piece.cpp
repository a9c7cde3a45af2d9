#include "text/tokenizer/models.h"
#include "text/tokenizer/utf8.h"

#include <fmt/format.h>

#include <algorithm>

namespace plow {

WordPieceModel::WordPieceModel(const TableView& table)
    : table_(&table), prefix_(table.string(table.header().continuing_prefix)) {
  for (uint32_t id = 0; id < table.token_count(); ++id) {
    if ((table.flags(id) & kTokenInModel) != 0)
      max_piece_bytes_ = std::max(max_piece_bytes_, table.piece(id).size());
  }
}

Status WordPieceModel::encode(std::string_view piece, bool allow_control, std::vector<uint32_t>& out) const {
  const size_t before = out.size();
  const auto characters =
      std::count_if(piece.begin(), piece.end(), [](char b) { return !is_utf8_continuation(b); });
  bool known = characters <= table_->header().max_chars_per_word;
  std::string spelling;
  for (size_t begin = 0; known && begin < piece.size();) {
    size_t end = std::min(piece.size(), begin + max_piece_bytes_);
    while (end < piece.size() && is_utf8_continuation(piece[end])) --end;
    uint32_t id = kNoToken;
    while (begin < end) {
      spelling = begin > 0 ? prefix_ : "";
      spelling += piece.substr(begin, end - begin);
      id = table_->find_piece(spelling);
      if (id != kNoToken && (allow_control || (table_->flags(id) & kTokenControl) == 0)) break;
      id = kNoToken;
      end -= code_point_before(piece, end).bytes;
    }
    known = id != kNoToken;
    if (known) out.push_back(id);
    begin = end;
  }
  if (known) return {};
  out.resize(before);
  const uint32_t unk = table_->header().unk_token;
  if (unk == kNoToken) {
    return input_error(fmt::format(
        "the text has '{}', which the tokenizer does not know, and its unknown token is not in its "
        "vocabulary",
        piece.substr(0, 100)));
  }
  out.push_back(unk);
  return {};
}

}  // namespace plow
