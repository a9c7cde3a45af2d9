#include "text/tokenizer/models.h"
#include "text/tokenizer/utf8.h"

#include <fmt/format.h>

#include <algorithm>
#include <limits>

namespace plow {

namespace {

// How much worse than the worst piece an unknown character is (kUnkPenalty in sentencepiece's
// unigram_model.cc).
constexpr double kUnknownPenalty = 10.0;

}  // namespace

// The best way to a place in the text.
struct UnigramModel::Step {
  double score = 0;
  size_t begin = SIZE_MAX;  // where its last piece begins; SIZE_MAX: not reached
  uint32_t id = kNoToken;
};

UnigramModel::UnigramModel(const TableView& table)
    : table_(&table), trie_(table.trie(SectionId::kPieceTrie)), byte_tokens_(find_byte_tokens(table)) {
  double worst = std::numeric_limits<double>::infinity();
  for (uint32_t id = 0; id < table.token_count(); ++id) {
    if ((table.flags(id) & kTokenInModel) != 0) worst = std::min(worst, table.score(id));
  }
  unknown_score_ = worst - kUnknownPenalty;
}

// Fills `best` with the best step that ends at each byte.
Status UnigramModel::find_path(std::string_view piece, bool allow_control, std::vector<Step>& best) const {
  const uint32_t unk = table_->header().unk_token;
  const auto offer = [&](size_t begin, size_t end, double score, uint32_t id) {
    Step& step = best[end];
    if (step.begin == SIZE_MAX || score > step.score) step = {score, begin, id};
  };
  for (size_t begin = 0; begin < piece.size();) {
    const size_t character = utf8_length(piece[begin]);
    const double so_far = best[begin].score;
    bool has_character = false;
    uint32_t node = TrieView::kRoot;
    const size_t limit = trie_.empty() ? begin : std::min(piece.size(), begin + kMaxTriePieceBytes);
    for (size_t end = begin; end < limit;) {
      node = trie_.child(node, static_cast<uint8_t>(piece[end++]));
      if (node == TrieView::kNoNode) break;
      const uint32_t id = trie_.value(node);
      if (id == kNoTrieValue || (!allow_control && (table_->flags(id) & kTokenControl) != 0)) continue;
      offer(begin, end, so_far + table_->score(id), id);
      has_character |= end - begin == character;
    }
    if (!has_character) {
      if (unk == kNoToken) {
        return input_error(
            fmt::format("the text has '{}', which the tokenizer does not know, and it has no unknown token",
                        piece.substr(begin, character)));
      }
      offer(begin, begin + character, so_far + unknown_score_, unk);
    }
    begin += character;
  }
  return {};
}

// The token of a piece of the path: of a run of unknown characters, the byte tokens or the unknown token.
Status UnigramModel::append(std::string_view spelling, bool allow_control, std::vector<uint32_t>& out) const {
  const uint32_t id = table_->find_piece(spelling);
  if (id != kNoToken && (allow_control || (table_->flags(id) & kTokenControl) == 0)) {
    out.push_back(id);
    return {};
  }
  const auto has_token = [&](char byte) { return byte_tokens_[static_cast<uint8_t>(byte)] != kNoToken; };
  if (table_->has_flag(kByteFallbackModel) && std::all_of(spelling.begin(), spelling.end(), has_token)) {
    for (const char byte : spelling) out.push_back(byte_tokens_[static_cast<uint8_t>(byte)]);
    return {};
  }
  if (table_->header().unk_token == kNoToken) {
    return input_error(fmt::format("the text has '{}', which the tokenizer does not know", spelling));
  }
  out.push_back(table_->header().unk_token);
  return {};
}

Status UnigramModel::encode(std::string_view piece, bool allow_control, std::vector<uint32_t>& out) const {
  std::vector<Step> best(piece.size() + 1);
  PLOW_TRY_STATUS(find_path(piece, allow_control, best));
  // Backwards along the path; neighbours that are unknown become one.
  const uint32_t unk = table_->header().unk_token;
  std::vector<std::string_view> spellings;
  bool in_unknown = false;
  for (size_t end = piece.size(); end > 0;) {
    // Every beginning of a character was reached, by a piece or by the unknown token, and steps begin only
    // there.
    const Step& step = best[end];
    const bool unknown = step.id == unk && unk != kNoToken;
    if (unknown && in_unknown) {
      spellings.back() = {spellings.back().data() - (end - step.begin),
                          spellings.back().size() + (end - step.begin)};
    } else {
      spellings.push_back(piece.substr(step.begin, end - step.begin));
    }
    in_unknown = unknown;
    end = step.begin;
  }
  std::reverse(spellings.begin(), spellings.end());
  for (const std::string_view spelling : spellings) PLOW_TRY_STATUS(append(spelling, allow_control, out));
  return {};
}

}  // namespace plow
