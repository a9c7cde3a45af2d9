#include "text/chat_template/lexer.h"

#include "text/chat_template/budget.h"
#include "text/chat_template/string_literal.h"
#include "text/chat_template/unicode.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <limits>

namespace plow::jinja {
namespace {

bool is_digit(char c) { return c >= '0' && c <= '9'; }
bool is_name_char(char c) {
  return is_digit(c) || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_' ||
         static_cast<unsigned char>(c) >= 0x80;
}

// "\r\n" and "\r" become "\n"; one newline at the very end is dropped (keep_trailing_newline is off).
std::string normalize_newlines(std::string_view source) {
  std::string out;
  out.reserve(source.size());
  for (size_t i = 0; i < source.size(); ++i) {
    if (source[i] != '\r') {
      out += source[i];
    } else {
      out += '\n';
      if (i + 1 < source.size() && source[i + 1] == '\n') ++i;
    }
  }
  if (out.ends_with('\n')) out.pop_back();
  return out;
}

constexpr std::string_view kOperators[] = {"//", "**", "==", "!=", ">=", "<=", "+", "-", "/",
                                           "*",  "%",  "~",  "[",  "]",  "(",  ")", "{", "}",
                                           ">",  "<",  "=",  ".",  ":",  "|",  ",", ";"};

class Lexer {
 public:
  explicit Lexer(std::string_view source) : storage_(normalize_newlines(source)), source_(storage_) {}

  std::vector<Token> run() {
    while (at_ < source_.size()) lex_text();
    push(TokenKind::kEnd);
    return std::move(tokens_);
  }

 private:
  [[noreturn]] void fail_here(std::string message) const { throw Failure{std::move(message), line_}; }

  [[noreturn]] void fail_character(size_t begin, size_t end) const {
    fail_here(fmt::format("unexpected character '{}'", source_.substr(begin, end - begin)));
  }

  Token& push(TokenKind kind) {
    tokens_.push_back({kind, line_, {}, 0, 0});
    return tokens_.back();
  }

  bool at(std::string_view what) const { return source_.substr(at_).starts_with(what); }

  void advance(size_t n) {
    line_ += static_cast<uint32_t>(std::count(source_.begin() + at_, source_.begin() + at_ + n, '\n'));
    at_ += n;
    line_starting_ = n > 0 && source_[at_ - 1] == '\n';
  }

  void skip_space() { advance(first_non_space(source_.substr(at_))); }

  // Length of a tag's closing `end` ("%}") here, with its sign and, for blocks, the newline that trim_blocks
  // removes; 0 when it is not here.
  size_t closing_length(std::string_view end, bool is_block) const {
    const std::string_view rest = source_.substr(at_);
    if (rest.starts_with('-') && rest.substr(1).starts_with(end)) {
      const size_t n = 1 + end.size();
      return n + first_non_space(rest.substr(n));
    }
    if (is_block && rest.starts_with('+') && rest.substr(1).starts_with(end)) return 1 + end.size();
    if (!rest.starts_with(end)) return 0;
    return end.size() + (is_block && rest.substr(end.size()).starts_with('\n') ? 1 : 0);
  }

  // The text before a tag, without what the tag's sign or lstrip_blocks removes from its end.
  size_t stripped_size(std::string_view text, char sign, bool is_variable) const {
    if (sign == '-') return end_of_last_non_space(text);
    if (sign == '+' || is_variable) return text.size();
    const size_t newline = text.rfind('\n');
    const size_t line_begin = newline == std::string_view::npos ? 0 : newline + 1;
    if (line_begin == 0 && !line_starting_) return text.size();
    return first_non_space(text.substr(line_begin)) == text.size() - line_begin ? line_begin : text.size();
  }

  char sign_at(size_t position) const {
    const char c = position < source_.size() ? source_[position] : '\0';
    return c == '-' || c == '+' ? c : '\0';
  }

  void add_data(std::string_view text) {
    if (!text.empty()) push(TokenKind::kData).text = text;
  }

  // Text up to the next tag, and that tag.
  void lex_text() {
    size_t tag = at_;
    do {
      tag = source_.find('{', tag);
      if (tag == std::string_view::npos || tag + 1 >= source_.size()) {
        add_data(source_.substr(at_));
        advance(source_.size() - at_);
        return;
      }
      const char next = source_[tag + 1];
      if (next == '{' || next == '%' || next == '#') break;
      ++tag;
    } while (true);

    const char type = source_[tag + 1];
    const char sign = sign_at(tag + 2);
    const std::string_view text = source_.substr(at_, tag - at_);
    add_data(text.substr(0, stripped_size(text, sign, type == '{')));
    advance(tag - at_);
    if (type == '#') return lex_comment(sign);
    if (type == '%' && lex_raw()) return;
    push(type == '{' ? TokenKind::kVariableBegin : TokenKind::kBlockBegin);
    advance(sign == '\0' ? 2 : 3);
    lex_tag(type == '{' ? "}}" : "%}", type != '{');
  }

  void lex_comment(char sign) {
    advance(sign == '\0' ? 2 : 3);
    size_t end = source_.find("#}", at_);
    if (end == std::string_view::npos) fail_here("a comment is not closed: '#}' is missing");
    if (end > at_ && sign_at(end - 1) != '\0') --end;
    advance(end - at_);
    advance(closing_length("#}", true));
  }

  // {% raw %} ... {% endraw %}; false when the tag here is another.
  bool lex_raw() {
    const size_t begin = raw_tag_length(at_, "raw", false);
    if (begin == 0) return false;
    advance(begin);
    for (size_t tag = source_.find("{%", at_); tag != std::string_view::npos;
         tag = source_.find("{%", tag + 1)) {
      const size_t length = raw_tag_length(tag, "endraw", true);
      if (length == 0) continue;
      const std::string_view text = source_.substr(at_, tag - at_);
      add_data(text.substr(0, stripped_size(text, sign_at(tag + 2), false)));
      advance(tag - at_);
      advance(length);
      return true;
    }
    fail_here("a raw block is not closed: {% endraw %} is missing");
  }

  // Length of the tag {% word %} at `begin`, or 0. `trims`: its end may have a '+', and takes a newline with
  // it.
  size_t raw_tag_length(size_t begin, std::string_view word, bool trims) {
    size_t i = begin + (sign_at(begin + 2) == '\0' ? 2 : 3);
    i += first_non_space(source_.substr(std::min(i, source_.size())));
    if (i >= source_.size() || !source_.substr(i).starts_with(word)) return 0;
    i += word.size();
    i += first_non_space(source_.substr(i));
    const size_t saved = at_;
    at_ = i;
    const size_t closing = at("+%}") && !trims ? 0 : closing_length("%}", trims);
    at_ = saved;
    return closing == 0 ? 0 : i + closing - begin;
  }

  // What stands between a tag's begin and its `end`.
  void lex_tag(std::string_view end, bool is_block) {
    std::vector<char> open;  // brackets that are not closed: inside them "}}" is two brackets
    const uint32_t tag_line = line_;
    while (true) {
      if (const size_t length = open.empty() ? closing_length(end, is_block) : 0; length > 0) {
        push(is_block ? TokenKind::kBlockEnd : TokenKind::kVariableEnd);
        return advance(length);
      }
      skip_space();
      if (open.empty() && closing_length(end, is_block) > 0) continue;
      if (at_ >= source_.size()) {
        throw Failure{fmt::format("a tag is not closed: '{}' is missing", end), tag_line};
      }
      if (!lex_number() && !lex_name() && !lex_string()) lex_operator(open);
    }
  }

  bool lex_name() {
    size_t n = 0;
    while (at_ + n < source_.size() && is_name_char(source_[at_ + n])) ++n;
    if (n == 0) return false;
    for (size_t i = at_; i < at_ + n;) {
      const size_t begin = i;
      const char32_t c = next_char(source_, i);
      if (c >= 0x80 && !is_alpha(c) && !is_numeric(c)) fail_character(begin, i);
    }
    push(TokenKind::kName).text = source_.substr(at_, n);
    advance(n);
    return true;
  }

  // Digits with single underscores between them, from `i`; returns the end.
  template <class IsDigit>
  size_t digits_end(size_t i, IsDigit is_wanted) const {
    while (i < source_.size()) {
      if (is_wanted(source_[i])) {
        ++i;
      } else if (source_[i] == '_' && i + 1 < source_.size() && is_wanted(source_[i + 1])) {
        i += 2;
      } else {
        break;
      }
    }
    return i;
  }

  bool lex_number() {
    if (!is_digit(source_[at_])) return false;
    return lex_float() || lex_integer();
  }

  bool lex_float() {
    if (at_ > 0 && source_[at_ - 1] == '.') return false;  // in `a.1.2` 1 is an index
    size_t i = digits_end(at_, is_digit);
    bool is_float = false;
    if (i + 1 < source_.size() && source_[i] == '.' && is_digit(source_[i + 1])) {
      i = digits_end(i + 1, is_digit);
      is_float = true;
    }
    if (i < source_.size() && (source_[i] == 'e' || source_[i] == 'E')) {
      const size_t exponent = i + 1 + (sign_at(i + 1) == '\0' ? 0 : 1);
      if (exponent < source_.size() && is_digit(source_[exponent])) {
        i = digits_end(exponent, is_digit);
        is_float = true;
      }
    }
    if (!is_float) return false;
    const std::string digits = without_underscores(i);
    Token& token = push(TokenKind::kFloat);
    const auto result = std::from_chars(digits.data(), digits.data() + digits.size(), token.real);
    if (result.ec == std::errc::result_out_of_range) {
      token.real = std::strtod(digits.c_str(), nullptr);  // infinity or zero, as in Python
    }
    advance(i - at_);
    return true;
  }

  bool lex_integer() {
    int base = 10;
    size_t end = at_;
    if (source_[at_] == '0' && at_ + 1 < source_.size()) {
      const char prefix = static_cast<char>(source_[at_ + 1] | 0x20);
      base = prefix == 'x' ? 16 : prefix == 'o' ? 8 : prefix == 'b' ? 2 : 10;
    }
    const auto is_base_digit = [base](char c) {
      const int digit = is_digit(c)                              ? c - '0'
                        : (c | 0x20) >= 'a' && (c | 0x20) <= 'f' ? (c | 0x20) - 'a' + 10
                                                                 : 99;
      return digit < base;
    };
    if (base != 10) {
      end = digits_end(at_ + 2, is_base_digit);
      if (end == at_ + 2) base = 10;
    }
    if (base == 10) {  // a leading zero stands alone
      end =
          source_[at_] == '0' ? digits_end(at_, [](char c) { return c == '0'; }) : digits_end(at_, is_digit);
    }
    const std::string digits = without_underscores(end).substr(base == 10 ? 0 : 2);
    Token& token = push(TokenKind::kInteger);
    const auto result = std::from_chars(digits.data(), digits.data() + digits.size(), token.integer, base);
    if (result.ec != std::errc()) fail_here("an integer is beyond 64 bits");
    advance(end - at_);
    return true;
  }

  std::string without_underscores(size_t end) const {
    std::string digits(source_.substr(at_, end - at_));
    std::erase(digits, '_');
    return digits;
  }

  bool lex_string() {
    const char quote = source_[at_];
    if (quote != '\'' && quote != '"') return false;
    size_t i = at_ + 1;
    while (i < source_.size() && source_[i] != quote) i += source_[i] == '\\' ? 2 : 1;
    if (i >= source_.size()) fail_here("a string is not closed");
    const std::string_view inside = source_.substr(at_ + 1, i - at_ - 1);
    Token& token = push(TokenKind::kString);
    std::string error;
    if (!decode_string_literal(inside, token.text, error)) fail_here(std::move(error));
    advance(i + 1 - at_);
    return true;
  }

  void lex_operator(std::vector<char>& open) {
    for (const std::string_view op : kOperators) {
      if (!at(op)) continue;
      if (op == "(") open.push_back(')');
      if (op == "[") open.push_back(']');
      if (op == "{") open.push_back('}');
      if (op == ")" || op == "]" || op == "}") {
        if (open.empty()) fail_here(fmt::format("unexpected '{}'", op));
        if (open.back() != op[0]) fail_here(fmt::format("unexpected '{}', expected '{}'", op, open.back()));
        open.pop_back();
      }
      push(TokenKind::kOperator).text = op;
      return advance(op.size());
    }
    size_t end = at_;
    next_char(source_, end);
    fail_character(at_, end);
  }

  std::string storage_;
  std::string_view source_;
  size_t at_ = 0;
  uint32_t line_ = 1;
  bool line_starting_ = true;  // what was read last ends with a newline
  std::vector<Token> tokens_;
};

}  // namespace

std::vector<Token> tokenize(std::string_view source) { return Lexer(source).run(); }

}  // namespace plow::jinja
