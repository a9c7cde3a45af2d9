// The decoders of a tokenizer as one pipeline that takes tokens one at a time, so that decoding at once and
// decoding a stream are the same code.
#pragma once

#include "base/error.h"
#include "text/tokenizer/component.h"
#include "text/tokenizer/regex.h"

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace plow {

// The steps, checked; shared by all streams of a tokenizer.
class Decoder {
 public:
  // The strings that `components` name must stay. `join_with_spaces`: the tokenizer has no decoder. Errors: a
  // component that is no decoder, a bad regular expression.
  static Result<Decoder> create(std::span<const ComponentView> components, bool join_with_spaces);

  // The bytes of one token in the middle of a text (see Tokenizer::token_bytes).
  std::string token_bytes(std::string_view piece) const;

 private:
  friend class DecodeStream;
  struct Step {
    ComponentView component;
    std::optional<Regex> regex;
    // True behind a step that makes one token of all (ByteLevel, Fuse): what arrives is that token, part by
    // part.
    bool takes_parts = false;
  };
  std::vector<Step> steps_;
  bool join_with_spaces_ = false;
};

// One text being decoded. REQUIRES that the Decoder outlives it.
class DecodeStream {
 public:
  explicit DecodeStream(const Decoder& decoder);

  void push(std::string_view piece);                      // one token
  void finish();                                          // no more tokens; the stream is then as new
  std::string take() { return std::exchange(out_, {}); }  // the text so far

 private:
  struct State {
    uint64_t tokens = 0;  // that arrived
    std::string held;
    bool holds_token = false;
    uint32_t stripped = 0;
    bool strips = true;
  };

  void deliver(size_t step, std::string_view text);
  void finish_step(size_t step);
  void push_bytes(size_t step, std::string_view token);
  void push_fallback(size_t step, std::string_view token);
  void flush_fallback(size_t step);
  void strip_parts(size_t step, std::string_view part);

  const Decoder* decoder_;
  std::vector<State> states_;
  std::string out_;
};

}  // namespace plow
