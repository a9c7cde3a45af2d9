// An opened tokenizer: the checked table and its components. Private to the library.
#pragma once

#include "text/tokenizer/added_tokens.h"
#include "text/tokenizer/decode.h"
#include "text/tokenizer/models.h"
#include "text/tokenizer/normalize.h"
#include "text/tokenizer/pre_tokenize.h"
#include "text/tokenizer/table_view.h"
#include "text/tokenizer/tokenizer.h"

#include <variant>

namespace plow {

struct TokenizerState {
  TokenizerState(TableView checked_table, Normalizer normalizer_steps, PreTokenizer pre_tokenizer_steps,
                 Decoder decoder_steps);
  TokenizerState(const TokenizerState&) = delete;  // components point to `table`
  TokenizerState& operator=(const TokenizerState&) = delete;

  MappedFile file;  // empty when the caller keeps the bytes
  TableView table;
  Normalizer normalizer;
  PreTokenizer pre_tokenizer;
  Decoder decoder;
  AddedTokenMatcher added;
  AddedTokenMatcher normalized_added;
  std::variant<BpeModel, UnigramModel, WordPieceModel> model;
  SpecialIds special;
  std::vector<std::string_view> special_spellings;

  // What the decoder sees of a token; none when the id has no token.
  std::optional<std::string_view> decoded_piece(uint32_t id) const;
};

}  // namespace plow
