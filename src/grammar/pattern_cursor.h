// What GBNF and regular expressions have in common: a cursor over characters, escapes of single characters,
// and counts of repetition.
#pragma once

#include "base/error.h"
#include "grammar/grammar.h"
#include "text/tokenizer/utf8.h"

#include <fmt/format.h>

#include <optional>
#include <string>
#include <string_view>
#include <utility>

namespace plow {

// Groups within groups; the parsers recur as deep.
constexpr int kMostGroupDepth = 64;

class PatternCursor {
 public:
  // REQUIRES valid UTF-8.
  explicit PatternCursor(std::string_view text) : text_(text) {}

  bool at_end() const { return at_ >= text_.size(); }
  size_t at() const { return at_; }
  std::string_view rest() const { return text_.substr(at_); }
  char peek() const { return at_end() ? '\0' : text_[at_]; }  // ASCII, or a byte that no ASCII equals
  bool accept(char c) {
    if (at_end() || text_[at_] != c) return false;
    ++at_;
    return true;
  }
  bool accept(std::string_view s) {
    if (!rest().starts_with(s)) return false;
    at_ += s.size();
    return true;
  }
  // REQUIRES !at_end().
  uint32_t take() {
    const CodePoint code = code_point_at(text_, at_);
    at_ += code.bytes;
    return code.value;
  }

  Error error(const std::string& what) const {
    size_t line = 1, column = 1;
    for (size_t i = 0; i < at_ && i < text_.size(); ++i) {
      column = text_[i] == '\n' ? 1 : column + 1;
      line += text_[i] == '\n' ? 1 : 0;
    }
    return input_error(fmt::format("line {}, column {}: {}", line, column, what));
  }

  // `n` hexadecimal digits.
  Result<uint32_t> hex(int n) {
    uint32_t value = 0;
    for (int i = 0; i < n; ++i) {
      const char c = peek();
      const bool digit = c >= '0' && c <= '9', lower = c >= 'a' && c <= 'f', upper = c >= 'A' && c <= 'F';
      if (!digit && !lower && !upper) return error(fmt::format("{} hexadecimal digits must follow here.", n));
      value = value * 16 + static_cast<uint32_t>(digit ? c - '0' : lower ? c - 'a' + 10 : c - 'A' + 10);
      ++at_;
    }
    return value;
  }

  // A repetition's {m}, {m,}, {m,n} behind the brace.
  Result<std::pair<uint32_t, uint32_t>> counts() {
    PLOW_TRY(const uint32_t least, count());
    uint32_t most = least;
    if (accept(',')) {
      most = Grammar::kNoLimit;
      if (peek() != '}') {
        PLOW_TRY(most, count());
      }
    }
    if (!accept('}')) return error("a repetition is {m}, {m,} or {m,n}.");
    if (most < least) return error("the bounds of the repetition are in the wrong order.");
    return std::pair(least, most);
  }

 private:
  Result<uint32_t> count() {
    constexpr uint32_t kMost = 100'000;  // the automaton's bound on states comes first
    uint32_t value = 0;
    if (peek() < '0' || peek() > '9') return error("a count must stand here.");
    for (; peek() >= '0' && peek() <= '9'; ++at_) {
      value = value * 10 + static_cast<uint32_t>(peek() - '0');
      if (value > kMost) return error(fmt::format("a repetition of more than {} is not allowed.", kMost));
    }
    return value;
  }

  std::string_view text_;
  size_t at_ = 0;
};

}  // namespace plow
