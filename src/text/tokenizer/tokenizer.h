// The tokenizer of a model: text -> token ids -> text, from a table that compile_tokenizer() made
// (compile_tokenizer.h).
//
// For plowrt and the server. Opening reads no JSON and allocates nothing per token: hash tables and tries lie
// in the table as they are used, so a vocabulary of 262,144 opens in milliseconds. The table is foreign data:
// every offset and id in it is checked when it is opened.
//
// What a tokenizer.json means is defined by the Rust library `tokenizers` (0.23.3); encode() and decode()
// give its ids and its text. tools/compare_tokenizers.py compares the two.
//
// Threads: a Tokenizer is immutable once open; any number of threads may use one at the same time. A
// TokenStream belongs to one request.
#pragma once

#include "base/error.h"
#include "base/mapped_file.h"

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace plow {

struct EncodeOptions {
  // Adds what the tokenizer's post-processor adds around a text (often a beginning-of-sequence token). Off
  // for the output of a chat template, which writes those tokens itself.
  bool add_special_tokens = true;
  // true: "<|im_end|>" in the text becomes that control token; for the output of a chat template's own text.
  // false: text never becomes a control token; special tokens that are spelled out in it are tokenised as
  // plain text. For everything that a user wrote.
  bool parse_special = false;
};

// Ids with a meaning to the one who generates. A tokenizer need not have any of them.
struct SpecialIds {
  std::optional<uint32_t> bos, eos, pad, unk;
  std::optional<uint32_t>
      eot;  // end of a turn, when it is another token than eos (<|im_end|>, <|eot_id|>, <end_of_turn>)
  bool operator==(const SpecialIds&) const = default;
};

struct TokenizerState;  // the opened table and its components (tokenizer_state.h)

class Tokenizer {
 public:
  // The caller keeps `table` alive and unchanged. Errors (kInput): not a tokenizer table, cut or altered, of
  // another version, or with a regular expression that does not compile.
  static Result<Tokenizer> open(std::span<const std::byte> table);
  // The same; the tokenizer keeps the mapping.
  static Result<Tokenizer> open(MappedFile file);

  Tokenizer(Tokenizer&&) noexcept;
  Tokenizer& operator=(Tokenizer&&) noexcept;
  Tokenizer(const Tokenizer&) = delete;
  Tokenizer& operator=(const Tokenizer&) = delete;
  ~Tokenizer();

  // Errors (kInput): `text` is not UTF-8; the text has a character that the model knows nothing for (no
  // unknown token and no byte fallback is dropped by some models and refused by others, as `tokenizers`
  // does); a regular expression of the tokenizer needs more steps on this text than the limit allows (see
  // regex.h). Time is O(n log n) in the length of the text.
  Result<std::vector<uint32_t>> encode(std::string_view text, const EncodeOptions& options = {}) const;

  // Ids that no token has are left out. ENSURES valid UTF-8: bytes that form no character become U+FFFD.
  std::string decode(std::span<const uint32_t> ids, bool skip_special) const;

  // Ids run from 0 to vocab_size() - 1; some may have no token.
  uint32_t vocab_size() const;
  const SpecialIds& special_ids() const;

  // The token of that exact spelling in the vocabulary ("\u0120the", "<|im_end|>").
  std::optional<uint32_t> token_to_id(std::string_view piece) const;
  // The spelling of a token; empty when `id` has none.
  std::string_view id_to_token(uint32_t id) const;
  // What the tokens of is_special() are spelled as, longest first: the first that a text begins with is the
  // longest.
  std::span<const std::string_view> special_spellings() const;
  // True for tokens that skip_special leaves out and parse_special=false keeps away from text.
  bool is_special(uint32_t id) const;

  // The bytes that a token stands for in the middle of a text: " the" for "\u0120the", one byte for "<0xE2>"
  // where the decoder has byte fallback. Not always UTF-8. Empty for ids without a token. For grammars and
  // logprobs.
  std::string token_bytes(uint32_t id) const;

 private:
  friend class TokenStream;
  explicit Tokenizer(std::unique_ptr<const TokenizerState> state);

  std::unique_ptr<const TokenizerState> state_;
};

// Decodes one token at a time. What push() and finish() return, put together, is decode() of all the ids; no
// piece ever ends inside a UTF-8 character. What cannot be decided yet is held back: the first bytes of a
// character; with byte fallback the whole run of byte tokens, since an invalid byte later in the run turns
// all of it into U+FFFD.
class TokenStream {
 public:
  // REQUIRES that `tokenizer` outlives the stream.
  TokenStream(const Tokenizer& tokenizer, bool skip_special);
  TokenStream(TokenStream&&) noexcept;
  TokenStream& operator=(TokenStream&&) noexcept;
  ~TokenStream();

  std::string push(uint32_t id);  // the text that is certain now; often empty
  std::string finish();           // the rest; the stream is then as new

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace plow
