#include "text/tokenizer/models.h"
#include "text/tokenizer/utf8.h"

#include <fmt/format.h>

#include <algorithm>

namespace plow {

namespace {

// Positions are 31 bits.
constexpr size_t kMaxSymbols = size_t{1} << 30;

struct Symbol {
  uint32_t id = 0;
  int32_t previous = -1;
  int32_t next = -1;
  bool alive = true;
};

// A merge that was possible when it was put into the queue.
struct Candidate {
  uint32_t rank;
  int32_t position;  // of the left symbol
  uint32_t merged;
};

// Best rank first, then leftmost: std heaps keep the largest on top.
bool comes_later(const Candidate& x, const Candidate& y) {
  return x.rank != y.rank ? x.rank > y.rank : x.position > y.position;
}

}  // namespace

struct BpeModel::Symbols {
  std::vector<Symbol> items;

  void add(uint32_t id) {
    const auto index = static_cast<int32_t>(items.size());
    if (index > 0) items.back().next = index;
    items.push_back({id, index - 1, -1, true});
  }
};

std::array<uint32_t, 256> find_byte_tokens(const TableView& table) {
  std::array<uint32_t, 256> ids;
  for (uint32_t byte = 0; byte < 256; ++byte) ids[byte] = table.find_piece(fmt::format("<0x{:02X}>", byte));
  return ids;
}

BpeModel::BpeModel(const TableView& table)
    : table_(&table),
      direct_(kDirectCharacters),
      byte_tokens_(find_byte_tokens(table)),
      prefix_(table.string(table.header().continuing_prefix)),
      suffix_(table.string(table.header().end_of_word_suffix)) {
  for (uint32_t c = 0; c < kDirectCharacters; ++c) {
    std::string character;
    append_utf8(character, c);
    direct_[c] = table.find_piece(character);
  }
}

uint32_t BpeModel::character_id(std::string_view character, bool is_first, bool is_last) const {
  const bool has_prefix = !is_first && !prefix_.empty();
  const bool has_suffix = is_last && !suffix_.empty();
  if (has_prefix || has_suffix) {
    return table_->find_piece((has_prefix ? prefix_ : "") + std::string(character) +
                              (has_suffix ? suffix_ : ""));
  }
  if (character.size() <= 2) return direct_[code_point_at(character, 0).value];
  return table_->find_piece(character);
}

// The byte tokens of `spelling`; false when the model lacks one of them.
bool BpeModel::add_bytes(std::string_view spelling, Symbols& symbols) const {
  const auto has_token = [&](char byte) { return byte_tokens_[static_cast<uint8_t>(byte)] != kNoToken; };
  if (!std::all_of(spelling.begin(), spelling.end(), has_token)) return false;
  for (const char byte : spelling) symbols.add(byte_tokens_[static_cast<uint8_t>(byte)]);
  return true;
}

// One symbol a character. The unknown token is held back until the next known character, so that neighbours
// can be fused; byte tokens do not release it (a quirk of `tokenizers`, which the ids depend on).
Status BpeModel::add_characters(std::string_view piece, bool allow_control, Symbols& symbols) const {
  const uint32_t unk = table_->header().unk_token;
  const bool fuse = table_->has_flag(kFuseUnknown);
  bool pending = false;
  for (size_t i = 0; i < piece.size();) {
    if (symbols.items.size() > kMaxSymbols)
      return input_error("the text is too long to be tokenized as one piece");
    const std::string_view character = piece.substr(i, utf8_length(piece[i]));
    const bool is_first = i == 0;
    i += character.size();
    const bool is_last = i == piece.size();
    const uint32_t id = character_id(character, is_first, is_last);
    if (id != kNoToken && allowed(id, allow_control)) {
      if (pending) symbols.add(unk);
      pending = false;
      symbols.add(id);
      continue;
    }
    if (table_->has_flag(kByteFallbackModel)) {
      const std::string spelling =
          (is_first ? "" : prefix_) + std::string(character) + (is_last ? suffix_ : "");
      if (add_bytes(spelling, symbols)) continue;
    }
    if (table_->has_flag(kUnknownIsMissing)) {
      return input_error(fmt::format(
          "the text has '{}', which the tokenizer does not know, and its unknown token is not in its "
          "vocabulary",
          character));
    }
    if (unk == kNoToken) continue;  // dropped, as `tokenizers` does
    if (pending && !fuse) symbols.add(unk);
    pending = true;
  }
  if (pending) symbols.add(unk);
  return {};
}

const MergeSlot* BpeModel::allowed_merge(uint32_t left, uint32_t right, bool allow_control) const {
  const MergeSlot* merge = table_->find_merge(left, right);
  return merge != nullptr && allowed(merge->merged, allow_control) ? merge : nullptr;
}

void BpeModel::merge(bool allow_control, Symbols& symbols) const {
  auto& items = symbols.items;
  std::vector<Candidate> queue;
  queue.reserve(items.size());
  for (size_t i = 0; i + 1 < items.size(); ++i) {
    const MergeSlot* merge = allowed_merge(items[i].id, items[i + 1].id, allow_control);
    if (merge != nullptr) queue.push_back({merge->rank, static_cast<int32_t>(i), merge->merged});
  }
  std::make_heap(queue.begin(), queue.end(), comes_later);
  const auto push = [&](int32_t left, int32_t right) {
    const MergeSlot* merge = allowed_merge(items[left].id, items[right].id, allow_control);
    if (merge == nullptr) return;
    queue.push_back({merge->rank, left, merge->merged});
    std::push_heap(queue.begin(), queue.end(), comes_later);
  };
  while (!queue.empty()) {
    std::pop_heap(queue.begin(), queue.end(), comes_later);
    const Candidate best = queue.back();
    queue.pop_back();
    Symbol& left = items[best.position];
    if (!left.alive || left.next < 0) continue;
    Symbol& right = items[left.next];
    // Either symbol may have changed since; what counts is whether the pair still makes the same token.
    const MergeSlot* current = allowed_merge(left.id, right.id, allow_control);
    if (current == nullptr || current->merged != best.merged) continue;
    left.id = best.merged;
    right.alive = false;
    left.next = right.next;
    if (left.next >= 0) items[left.next].previous = best.position;
    if (left.previous >= 0) push(left.previous, best.position);
    if (left.next >= 0) push(best.position, left.next);
  }
}

Status BpeModel::encode(std::string_view piece, bool allow_control, std::vector<uint32_t>& out) const {
  if (table_->has_flag(kIgnoreMerges)) {
    const uint32_t whole = table_->find_piece(piece);
    if (whole != kNoToken && allowed(whole, allow_control)) {
      out.push_back(whole);
      return {};
    }
  }
  Symbols symbols;
  symbols.items.reserve(piece.size());
  PLOW_TRY_STATUS(add_characters(piece, allow_control, symbols));
  merge(allow_control, symbols);
  for (const Symbol& symbol : symbols.items) {
    if (symbol.alive) out.push_back(symbol.id);
  }
  return {};
}

}  // namespace plow
