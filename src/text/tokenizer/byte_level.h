// The alphabet of byte-level BPE: every byte is one printable character, so a vocabulary of text can spell
// any bytes. Bytes that print in Latin-1 stand for themselves, the other 68 are U+0100 onwards in order
// (bytes_to_unicode() in GPT-2's encoder.py).
#pragma once

#include "text/tokenizer/utf8.h"

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace plow {

inline constexpr bool is_byte_level_printable(uint32_t byte) {
  return (byte >= '!' && byte <= '~') || (byte >= 0xa1 && byte <= 0xac) || byte >= 0xae;
}

// byte -> character
inline constexpr std::array<char16_t, 256> kByteToChar = [] {
  std::array<char16_t, 256> table = {};
  char16_t next = 0x100;
  for (uint32_t byte = 0; byte < 256; ++byte) {
    table[byte] = is_byte_level_printable(byte) ? static_cast<char16_t>(byte) : next++;
  }
  return table;
}();

// character -> byte, for characters below U+0144; -1: not of the alphabet.
inline constexpr std::array<int16_t, 0x144> kCharToByte = [] {
  std::array<int16_t, 0x144> table = {};
  for (auto& entry : table) entry = -1;
  for (uint32_t byte = 0; byte < 256; ++byte) table[kByteToChar[byte]] = static_cast<int16_t>(byte);
  return table;
}();

inline void append_byte_level(std::string& out, std::string_view bytes) {
  for (const char byte : bytes) append_utf8(out, kByteToChar[static_cast<uint8_t>(byte)]);
}

// The bytes that `piece` spells; none when it has a character that is not of the alphabet. REQUIRES valid
// UTF-8.
inline std::optional<std::string> byte_level_bytes(std::string_view piece) {
  std::string bytes;
  bytes.reserve(piece.size());
  for (size_t i = 0; i < piece.size();) {
    const CodePoint c = code_point_at(piece, i);
    if (c.value >= kCharToByte.size() || kCharToByte[c.value] < 0) return std::nullopt;
    bytes.push_back(static_cast<char>(kCharToByte[c.value]));
    i += c.bytes;
  }
  return bytes;
}

}  // namespace plow
