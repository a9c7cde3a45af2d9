// The three models: a piece of text -> token ids. Each is a view of the table plus what is worked out once
// when it is opened.
//
// `allow_control` false: the model does not produce control tokens, so spelling one out in a text yields
// other tokens. (The unknown token is still what unknown text becomes.)
#pragma once

#include "base/error.h"
#include "text/tokenizer/table_view.h"

#include <array>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace plow {

// Byte-pair encoding: characters, then the best-ranked merge of two neighbours, again and again.
// O(n log n) in the length of the piece.
class BpeModel {
 public:
  explicit BpeModel(const TableView& table);

  // Appends the ids of `piece`. REQUIRES valid UTF-8. Errors (kInput): a character is unknown and the unknown
  // token that the model names does not exist; the piece has more than 2^30 characters.
  Status encode(std::string_view piece, bool allow_control, std::vector<uint32_t>& out) const;

 private:
  struct Symbols;
  Status add_characters(std::string_view piece, bool allow_control, Symbols& symbols) const;
  uint32_t character_id(std::string_view character, bool is_first, bool is_last) const;
  bool add_bytes(std::string_view spelling, Symbols& symbols) const;
  void merge(bool allow_control, Symbols& symbols) const;
  const MergeSlot* allowed_merge(uint32_t left, uint32_t right, bool allow_control) const;
  bool allowed(uint32_t id, bool allow_control) const {
    return allow_control || (table_->flags(id) & kTokenControl) == 0;
  }

  // Characters below this are looked up by value; it holds the byte-level alphabet and all two-byte
  // characters.
  static constexpr size_t kDirectCharacters = 0x800;

  const TableView* table_;
  std::vector<uint32_t> direct_;             // id of each such character
  std::array<uint32_t, 256> byte_tokens_{};  // "<0x00>"...
  std::string prefix_;
  std::string suffix_;
};

// The most probable cut into pieces (Viterbi), where each piece has the logarithm of its probability as
// score.
class UnigramModel {
 public:
  explicit UnigramModel(const TableView& table);

  // Errors: a character is in no piece and the model has no unknown token.
  Status encode(std::string_view piece, bool allow_control, std::vector<uint32_t>& out) const;

 private:
  struct Step;
  Status find_path(std::string_view piece, bool allow_control, std::vector<Step>& best) const;
  Status append(std::string_view spelling, bool allow_control, std::vector<uint32_t>& out) const;

  const TableView* table_;
  TrieView trie_;
  std::array<uint32_t, 256> byte_tokens_{};
  double unknown_score_ = 0;
};

// The longest piece first, from the left (BERT).
class WordPieceModel {
 public:
  explicit WordPieceModel(const TableView& table);

  // Errors: the word is unknown and the unknown token that the model names does not exist.
  Status encode(std::string_view piece, bool allow_control, std::vector<uint32_t>& out) const;

 private:
  const TableView* table_;
  std::string prefix_;
  size_t max_piece_bytes_ = 0;
};

// The ids of the tokens "<0x00>" to "<0xFF>"; kNoToken for those that the model does not have.
std::array<uint32_t, 256> find_byte_tokens(const TableView& table);

}  // namespace plow
