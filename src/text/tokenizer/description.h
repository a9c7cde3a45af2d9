// A tokenizer as the compiler sees it: read from tokenizer.json or from GGUF metadata, written by
// write_table().
#pragma once

#include "base/error.h"
#include "text/tokenizer/compile_tokenizer.h"
#include "text/tokenizer/component.h"
#include "text/tokenizer/table_format.h"
#include "text/tokenizer/tokenizer.h"

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

namespace plow {

// The spellings that a model knows, by id and back. Ids may have gaps.
class Vocabulary {
 public:
  Vocabulary() = default;
  Vocabulary(Vocabulary&&) = default;
  Vocabulary& operator=(Vocabulary&&) = default;

  // Errors: `id` is not below kMaxTokens, or taken by another spelling; `piece` has an id already (unless
  // `allow_duplicates`: then the last id is the one found, as for the pieces of a Unigram model).
  Status add(std::string piece, uint64_t id, bool allow_duplicates = false);

  std::optional<uint32_t> find(std::string_view piece) const;
  bool has(uint32_t id) const { return id < exists_.size() && exists_[id]; }
  uint32_t id_limit() const { return static_cast<uint32_t>(pieces_.size()); }
  uint32_t size() const { return size_; }  // how many ids exist
  const std::string& piece(uint32_t id) const { return *pieces_[id]; }

 private:
  // The map owns the strings; its nodes stay where they are, also when the map moves. A duplicate spelling
  // shares the node.
  std::unordered_map<std::string, uint32_t> ids_;
  std::vector<const std::string*> pieces_;
  std::vector<bool> exists_;
  uint32_t size_ = 0;
};

struct Merge {
  uint32_t left = 0;
  uint32_t right = 0;
  uint32_t merged = 0;
};

struct ModelDescription {
  ModelKind kind = ModelKind::kBpe;
  uint32_t flags = 0;  // ModelFlags
  Vocabulary vocabulary;
  std::optional<uint32_t> unk;
  std::vector<Merge> merges;   // BPE, best first
  std::vector<double> scores;  // Unigram, by id
  std::string continuing_prefix;
  std::string end_of_word_suffix;
  uint32_t max_chars_per_word = 0;
};

struct AddedToken {
  uint32_t id = 0;
  std::string content;
  uint32_t flags = 0;  // AddedFlags
  bool special = false;
};

struct TokenizerDescription {
  ModelDescription model;
  std::vector<AddedToken> added;  // by add_token() only
  Vocabulary added_vocabulary;
  std::unordered_map<uint32_t, size_t> added_index;  // id -> index into `added`
  std::vector<uint32_t> control;  // ids that text must not become, besides the special added tokens
  std::vector<Component> normalizers;
  std::vector<Component> pre_tokenizers;
  std::vector<Component> decoders;
  bool has_decoder = false;
  std::vector<uint32_t> post_template = {kTemplateText};
  SpecialIds special;

  std::optional<uint32_t> find(std::string_view piece) const;  // added tokens, then the model's
};

Result<TokenizerDescription> parse_tokenizer_json(std::string_view tokenizer_json,
                                                  std::string_view config_json);
Result<TokenizerDescription> describe_gguf(const GgufTokenizerSource& source);

// Adds the merge of the pieces `left` and `right`. Errors: they, or what they make, are not in the
// vocabulary; one of them is empty (the merge would make itself).
Status add_merge(ModelDescription& model, std::string_view left, std::string_view right);

// Adds a token on top of the model's vocabulary; one that is there already, with the same id, is replaced. An
// empty spelling is left out, as `tokenizers` does. Errors: the id or the spelling clashes with another
// token. (Where the file's id differs from the vocabulary's, `tokenizers` takes the vocabulary's and says so;
// since one of them is wrong, it is an error here.)
Status add_token(TokenizerDescription& description, AddedToken token);

// Names the end-of-turn token, if the tokenizer has one of the known spellings and none is set.
void find_end_of_turn(TokenizerDescription& description);

// Errors: a piece is too long for a trie, a regular expression does not compile, the table would be larger
// than 4 GiB.
Result<std::vector<std::byte>> write_table(const TokenizerDescription& description);

}  // namespace plow
