#include "text/chat_template/string_literal.h"

#include "text/chat_template/unicode.h"

#include <fmt/format.h>

#include <charconv>

namespace plow::jinja {
namespace {

// Characters of one-letter escapes, and what they stand for.
constexpr std::string_view kSimpleEscapes = "\\'\"abfnrtv";
constexpr std::string_view kSimpleValues = "\\'\"\a\b\f\n\r\t\v";

bool append_code_point(std::string_view digits, int base, std::string& out, std::string& error) {
  uint32_t c = 0;
  const auto result = std::from_chars(digits.data(), digits.data() + digits.size(), c, base);
  if (result.ec != std::errc() || result.ptr != digits.data() + digits.size()) {
    error = fmt::format("a string has a broken escape: '{}' are not digits", digits);
    return false;
  }
  if (c > 0x10ffff || (c >= 0xd800 && c <= 0xdfff)) {
    error = fmt::format("a string has an escape for {:#x}, which is not a character", c);
    return false;
  }
  append_utf8(out, c);
  return true;
}

}  // namespace

bool decode_string_literal(std::string_view inside, std::string& out, std::string& error) {
  size_t i = 0;
  while (i < inside.size()) {
    if (inside[i] != '\\' || i + 1 >= inside.size()) {
      out += inside[i++];
      continue;
    }
    const char c = inside[i + 1];
    i += 2;
    if (const size_t simple = kSimpleEscapes.find(c); simple != std::string_view::npos) {
      out += kSimpleValues[simple];
    } else if (c == '\n') {
      // a line that goes on
    } else if (c >= '0' && c <= '7') {
      size_t end = i;
      while (end < inside.size() && end < i + 2 && inside[end] >= '0' && inside[end] <= '7') ++end;
      if (!append_code_point(inside.substr(i - 1, end - i + 1), 8, out, error)) return false;
      i = end;
    } else if (c == 'x' || c == 'u' || c == 'U') {
      const size_t n = c == 'x' ? 2 : c == 'u' ? 4 : 8;
      const std::string_view digits = inside.substr(i, n);
      if (digits.size() < n) {
        error = fmt::format("a string has a truncated \\{} escape", c);
        return false;
      }
      if (!append_code_point(digits, 16, out, error)) return false;
      i += n;
    } else if (c == 'N') {
      error = "a string names a character (\\N{...}); write its number (\\u....)";
      return false;
    } else {
      out += '\\';
      out += c;  // Python keeps an escape it does not know (a first byte of UTF-8 is followed by the rest)
    }
  }
  return true;
}

}  // namespace plow::jinja
