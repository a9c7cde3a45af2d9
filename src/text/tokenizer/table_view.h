// A tokenizer table that has been checked, seen as arrays. Nothing is copied out of the table.
#pragma once

#include "base/error.h"
#include "text/tokenizer/component.h"
#include "text/tokenizer/table_format.h"
#include "text/tokenizer/trie.h"

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string_view>
#include <vector>

namespace plow {

class TableView {
 public:
  // Checks everything that later reads rely on: sizes, offsets, ids, that tries have no cycles, that strings
  // are UTF-8. REQUIRES that `table` stays. Errors (kInput): one of these
  // does not hold.
  static Result<TableView> open(std::span<const std::byte> table);

  const TableHeader& header() const { return *header_; }
  uint32_t token_count() const { return header_->token_count; }
  bool has_flag(ModelFlags flag) const { return (header_->model_flags & flag) != 0; }

  std::string_view string(StringRef ref) const { return {strings_.data() + ref.offset, ref.length}; }

  // REQUIRES id < token_count().
  std::string_view piece(uint32_t id) const { return string(tokens_[id]); }
  uint8_t flags(uint32_t id) const { return token_flags_[id]; }
  double score(uint32_t id) const { return scores_[id]; }

  // The id of the model's token with this spelling, or kNoToken.
  uint32_t find_piece(std::string_view piece) const;

  // The merge of two neighbours; null when there is none.
  const MergeSlot* find_merge(uint32_t left, uint32_t right) const;

  std::span<const AddedRecord> added() const { return added_; }
  const AddedRecord* find_added(uint32_t id) const;
  std::span<const uint32_t> post_template() const { return template_; }
  std::span<const TrieNode> trie(SectionId section) const;
  std::vector<ComponentView> components(SectionId section) const;

 private:
  template <class T>
  Result<std::span<const T>> section(SectionId id) const;
  template <class T>
  std::span<const T> section_unchecked(SectionId id) const;
  bool valid_string(StringRef ref);
  bool valid_text(StringRef ref);  // and UTF-8
  Status check_header() const;
  Status check_tokens();
  Status check_model();
  Status check_added();
  Status check_components();

  std::span<const std::byte> table_;
  const TableHeader* header_ = nullptr;
  std::span<const char> strings_;
  uint64_t strings_left_ = 0;  // bytes that no checked string has used: in a table no two strings overlap
  std::span<const StringRef> tokens_;
  std::span<const uint8_t> token_flags_;
  std::span<const uint32_t> piece_slots_;
  std::span<const MergeSlot> merges_;
  std::span<const double> scores_;
  std::span<const AddedRecord> added_;
  std::span<const uint32_t> template_;
};

}  // namespace plow
