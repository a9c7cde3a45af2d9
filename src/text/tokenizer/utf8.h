// Code points of UTF-8 text. The tokenizer checks its input once (first_invalid_utf8); after that the fast
// functions, which REQUIRE valid UTF-8, are used.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace plow {

struct CodePoint {
  char32_t value = 0;
  uint32_t bytes = 0;  // 1 to 4
};

// The number of bytes of the character that begins with `lead`. REQUIRES that `lead` begins a character.
inline uint32_t utf8_length(char lead) {
  const auto byte = static_cast<uint8_t>(lead);
  if (byte < 0x80) return 1;
  if (byte < 0xe0) return 2;
  return byte < 0xf0 ? 3 : 4;
}

inline bool is_utf8_continuation(char byte) { return (static_cast<uint8_t>(byte) & 0xc0) == 0x80; }

// The character at `text[position]`. REQUIRES valid UTF-8 and that a character begins there.
inline CodePoint code_point_at(std::string_view text, size_t position) {
  const auto byte = [&](size_t i) { return static_cast<uint32_t>(static_cast<uint8_t>(text[position + i])); };
  const uint32_t length = utf8_length(text[position]);
  switch (length) {
    case 1:
      return {byte(0), 1};
    case 2:
      return {(byte(0) & 0x1f) << 6 | (byte(1) & 0x3f), 2};
    case 3:
      return {(byte(0) & 0x0f) << 12 | (byte(1) & 0x3f) << 6 | (byte(2) & 0x3f), 3};
    default:
      return {(byte(0) & 0x07) << 18 | (byte(1) & 0x3f) << 12 | (byte(2) & 0x3f) << 6 | (byte(3) & 0x3f), 4};
  }
}

// The character that ends just before `position`. REQUIRES valid UTF-8 and position > 0.
inline CodePoint code_point_before(std::string_view text, size_t position) {
  size_t begin = position - 1;
  while (begin > 0 && is_utf8_continuation(text[begin])) --begin;
  return code_point_at(text, begin);
}

// REQUIRES valid UTF-8.
inline bool is_one_character(std::string_view text) {
  return !text.empty() && utf8_length(text[0]) == text.size();
}

inline void append_utf8(std::string& out, char32_t c) {
  const auto put = [&](uint32_t byte) { out.push_back(static_cast<char>(byte)); };
  if (c < 0x80) {
    put(c);
  } else if (c < 0x800) {
    put(0xc0 | c >> 6);
    put(0x80 | (c & 0x3f));
  } else if (c < 0x10000) {
    put(0xe0 | c >> 12);
    put(0x80 | (c >> 6 & 0x3f));
    put(0x80 | (c & 0x3f));
  } else {
    put(0xf0 | c >> 18);
    put(0x80 | (c >> 12 & 0x3f));
    put(0x80 | (c >> 6 & 0x3f));
    put(0x80 | (c & 0x3f));
  }
}

// What stands at the front of bytes that may not be UTF-8 (Unicode 16.0, section 3.9, table 3-7 and "maximal
// subpart").
struct Utf8Prefix {
  enum class Kind { kCharacter, kInvalid, kIncomplete };
  Kind kind = Kind::kCharacter;
  uint32_t bytes =
      0;  // of the character; of the maximal subpart that one U+FFFD replaces; of what is there so far
};

// REQUIRES that `bytes` is not empty.
Utf8Prefix classify_utf8(std::string_view bytes);

// The offset of the first byte that belongs to no character; none when all of `text` is valid.
std::optional<size_t> first_invalid_utf8(std::string_view text);

// Appends `bytes` to `out`, each maximal subpart that is no character as U+FFFD.
void append_lossy_utf8(std::string& out, std::string_view bytes);

inline constexpr std::string_view kReplacementCharacter = "\xef\xbf\xbd";  // U+FFFD

}  // namespace plow
