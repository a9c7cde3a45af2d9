#include "text/tokenizer/table_view.h"

#include "base/digest.h"
#include "text/tokenizer/utf8.h"

#include <fmt/format.h>
#include <xxhash.h>

#include <algorithm>
#include <bit>
#include <cmath>

namespace plow {

namespace {

constexpr size_t kSectionAlignment = 8;

Error bad_table(std::string_view what) {
  return input_error(fmt::format("the tokenizer table is damaged: {}; compile the model again", what));
}

bool is_hash_size(size_t slots) { return slots > 0 && std::has_single_bit(slots); }

}  // namespace

template <class T>
Result<std::span<const T>> TableView::section(SectionId id) const {
  const SectionRecord& record = header_->sections[static_cast<size_t>(id)];
  const auto number = static_cast<uint32_t>(id);
  if (record.offset % kSectionAlignment != 0 || record.offset > table_.size() ||
      record.bytes > table_.size() - record.offset) {
    return bad_table(fmt::format("section {} lies outside of it", number));
  }
  if (record.bytes % sizeof(T) != 0)
    return bad_table(fmt::format("section {} has a part of a record", number));
  return section_unchecked<T>(id);
}

template <class T>
std::span<const T> TableView::section_unchecked(SectionId id) const {
  const SectionRecord& record = header_->sections[static_cast<size_t>(id)];
  return {reinterpret_cast<const T*>(table_.data() + record.offset),
          static_cast<size_t>(record.bytes) / sizeof(T)};
}

// The bytes that all strings have together are bounded too, so checking them takes no longer than the table
// is large.
bool TableView::valid_string(StringRef ref) {
  if (ref.offset > strings_.size() || ref.length > strings_.size() - ref.offset) return false;
  if (ref.length > strings_left_) return false;
  strings_left_ -= ref.length;
  return true;
}

bool TableView::valid_text(StringRef ref) { return valid_string(ref) && !first_invalid_utf8(string(ref)); }

Result<TableView> TableView::open(std::span<const std::byte> table) {
  TableView view;
  view.table_ = table;
  view.header_ = reinterpret_cast<const TableHeader*>(table.data());
  PLOW_TRY_STATUS(view.check_header());
  PLOW_TRY(view.strings_, view.section<char>(SectionId::kStrings));
  view.strings_left_ = view.strings_.size();
  PLOW_TRY_STATUS(view.check_tokens());
  PLOW_TRY_STATUS(view.check_model());
  PLOW_TRY_STATUS(view.check_added());
  PLOW_TRY_STATUS(view.check_components());
  return view;
}

Status TableView::check_header() const {
  if (table_.size() < sizeof(TableHeader)) return bad_table("it is shorter than its header");
  if (reinterpret_cast<uintptr_t>(table_.data()) % kSectionAlignment != 0) {
    return bad_table("it does not begin at a multiple of 8 bytes in memory");
  }
  if (header_->magic != kTableMagic)
    return input_error("this is not a tokenizer table (its magic number is another)");
  if (header_->version != kTableVersion || header_->section_count != kSectionCount) {
    return input_error(fmt::format(
        "the tokenizer table has version {}, this program reads version {}; compile the model again",
        header_->version, kTableVersion));
  }
  if (header_->table_bytes != table_.size()) {
    return bad_table(fmt::format("it has {} bytes and says {}", table_.size(), header_->table_bytes));
  }
  const Digest128 digest = xxh3_128(table_.subspan(kDigestBegin));
  if (digest != Digest128{header_->digest_low, header_->digest_high})
    return bad_table("its digest does not fit");
  return {};
}

Status TableView::check_tokens() {
  PLOW_TRY(tokens_, section<StringRef>(SectionId::kTokens));
  PLOW_TRY(token_flags_, section<uint8_t>(SectionId::kTokenFlags));
  PLOW_TRY(piece_slots_, section<uint32_t>(SectionId::kPieceSlots));
  const uint32_t count = token_count();
  if (count == 0 || count > kMaxTokens || tokens_.size() != count || token_flags_.size() != count) {
    return bad_table("its token counts differ");
  }
  for (uint32_t id = 0; id < count; ++id) {
    if (!valid_text(tokens_[id]))
      return bad_table(fmt::format("the spelling of token {} is not UTF-8 inside it", id));
  }
  if (!is_hash_size(piece_slots_.size())) return bad_table("its piece table has no power of two of slots");
  const auto valid_id = [&](uint32_t id) { return id == kNoToken || id < count; };
  if (!std::all_of(piece_slots_.begin(), piece_slots_.end(), valid_id)) {
    return bad_table("its piece table names a token that is not there");
  }
  if (!valid_id(header_->unk_token) ||
      !std::all_of(header_->special.begin(), header_->special.end(), valid_id)) {
    return bad_table("its header names a token that is not there");
  }
  PLOW_TRY(template_, section<uint32_t>(SectionId::kTemplate));
  if (template_.size() > kMaxComponents) return bad_table("its template is too long");
  if (!std::all_of(template_.begin(), template_.end(), valid_id))
    return bad_table("its template names a missing token");
  return {};
}

Status TableView::check_model() {
  const uint32_t count = token_count();
  PLOW_TRY(merges_, section<MergeSlot>(SectionId::kMerges));
  PLOW_TRY(scores_, section<double>(SectionId::kScores));
  PLOW_TRY(const auto piece_trie, section<TrieNode>(SectionId::kPieceTrie));
  if (!TrieView::valid(piece_trie, count)) return bad_table("its piece trie is not one");
  if (!valid_text(header_->continuing_prefix) || !valid_text(header_->end_of_word_suffix)) {
    return bad_table("its prefix or suffix is not UTF-8 inside it");
  }
  if (header_->continuing_prefix.length > kMaxAffixBytes ||
      header_->end_of_word_suffix.length > kMaxAffixBytes) {
    return bad_table("its prefix or suffix is too long");
  }
  switch (header_->model) {
    case ModelKind::kBpe: {
      if (!is_hash_size(merges_.size())) return bad_table("its merge table has no power of two of slots");
      if (std::any_of(merges_.begin(), merges_.end(), [&](const MergeSlot& slot) {
            return slot.merged != kNoToken && slot.merged >= count;
          })) {
        return bad_table("a merge makes a token that is not there");
      }
      return {};
    }
    case ModelKind::kUnigram:
      if (scores_.size() != count) return bad_table("it has no score for each token");
      // A NaN would make every comparison false and leave a text without a path.
      if (std::any_of(scores_.begin(), scores_.end(), [](double s) { return !std::isfinite(s); })) {
        return bad_table("a score is not a number");
      }
      return {};
    case ModelKind::kWordPiece:
      if (header_->max_chars_per_word > kMaxCharsPerWord) return bad_table("its words are too long");
      return {};
  }
  return bad_table(fmt::format("model {} is not known", static_cast<uint32_t>(header_->model)));
}

Status TableView::check_added() {
  PLOW_TRY(added_, section<AddedRecord>(SectionId::kAddedTokens));
  for (size_t i = 0; i < added_.size(); ++i) {
    const AddedRecord& record = added_[i];
    if (record.id >= token_count() || !valid_text(record.decoded) ||
        (i > 0 && added_[i - 1].id >= record.id)) {
      return bad_table(fmt::format("added token {} is not valid", i));
    }
  }
  for (const SectionId id : {SectionId::kAddedTrie, SectionId::kNormalizedTrie}) {
    PLOW_TRY(const auto nodes, section<TrieNode>(id));
    if (!TrieView::valid(nodes, static_cast<uint32_t>(added_.size())))
      return bad_table("the trie of added tokens is not one");
  }
  return {};
}

Status TableView::check_components() {
  for (const SectionId id : {SectionId::kNormalizers, SectionId::kPreTokenizers, SectionId::kDecoders}) {
    PLOW_TRY(const auto records, section<ComponentRecord>(id));
    if (records.size() > kMaxComponents) return bad_table("it has too many components");
    for (const ComponentRecord& record : records) {
      // A charsmap is the one string that is not text; Charsmap::open() checks it.
      const bool is_text = record.kind != static_cast<uint32_t>(ComponentKind::kPrecompiled);
      if (!valid_text(record.pattern) ||
          !(is_text ? valid_text(record.content) : valid_string(record.content))) {
        return bad_table("a component's text is not UTF-8 inside it");
      }
    }
  }
  return {};
}

uint32_t TableView::find_piece(std::string_view piece) const {
  const size_t mask = piece_slots_.size() - 1;
  size_t slot = XXH3_64bits(piece.data(), piece.size()) & mask;
  for (size_t probe = 0; probe < kMaxProbes; ++probe, slot = (slot + 1) & mask) {
    const uint32_t id = piece_slots_[slot];
    if (id == kNoToken || this->piece(id) == piece) return id;
  }
  return kNoToken;
}

const MergeSlot* TableView::find_merge(uint32_t left, uint32_t right) const {
  const size_t mask = merges_.size() - 1;
  size_t slot = merge_hash(left, right) & mask;
  for (size_t probe = 0; probe < kMaxProbes; ++probe, slot = (slot + 1) & mask) {
    const MergeSlot& merge = merges_[slot];
    if (merge.merged == kNoToken) return nullptr;
    if (merge.left == left && merge.right == right) return &merge;
  }
  return nullptr;
}

const AddedRecord* TableView::find_added(uint32_t id) const {
  const auto found =
      std::lower_bound(added_.begin(), added_.end(), id,
                       [](const AddedRecord& record, uint32_t value) { return record.id < value; });
  return found != added_.end() && found->id == id ? &*found : nullptr;
}

std::span<const TrieNode> TableView::trie(SectionId section) const {
  return section_unchecked<TrieNode>(section);
}

std::vector<ComponentView> TableView::components(SectionId section) const {
  std::vector<ComponentView> views;
  for (const ComponentRecord& record : section_unchecked<ComponentRecord>(section)) {
    views.push_back({static_cast<ComponentKind>(record.kind), record.a, record.b, string(record.pattern),
                     string(record.content)});
  }
  return views;
}

}  // namespace plow
