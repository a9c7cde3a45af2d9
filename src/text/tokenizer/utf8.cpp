#include "text/tokenizer/utf8.h"

namespace plow {

namespace {

// The range that the second byte must lie in, by the first (table 3-7 of the Unicode standard: no overlong
// forms, no surrogates, nothing above U+10FFFF). Length 0: the byte begins no character.
struct Lead {
  uint32_t length;
  uint8_t low;
  uint8_t high;
};

Lead classify_lead(uint8_t byte) {
  if (byte < 0x80) return {1, 0, 0};
  if (byte < 0xc2) return {0, 0, 0};
  if (byte < 0xe0) return {2, 0x80, 0xbf};
  if (byte == 0xe0) return {3, 0xa0, 0xbf};
  if (byte == 0xed) return {3, 0x80, 0x9f};
  if (byte < 0xf0) return {3, 0x80, 0xbf};
  if (byte == 0xf0) return {4, 0x90, 0xbf};
  if (byte < 0xf4) return {4, 0x80, 0xbf};
  if (byte == 0xf4) return {4, 0x80, 0x8f};
  return {0, 0, 0};
}

}  // namespace

Utf8Prefix classify_utf8(std::string_view bytes) {
  using Kind = Utf8Prefix::Kind;
  const Lead lead = classify_lead(static_cast<uint8_t>(bytes[0]));
  if (lead.length == 0) return {Kind::kInvalid, 1};
  for (uint32_t i = 1; i < lead.length; ++i) {
    if (i == bytes.size()) return {Kind::kIncomplete, i};
    const auto byte = static_cast<uint8_t>(bytes[i]);
    const bool fits = i == 1 ? byte >= lead.low && byte <= lead.high : is_utf8_continuation(bytes[i]);
    if (!fits) return {Kind::kInvalid, i};
  }
  return {Kind::kCharacter, lead.length};
}

std::optional<size_t> first_invalid_utf8(std::string_view text) {
  size_t position = 0;
  while (position < text.size()) {
    if (static_cast<uint8_t>(text[position]) < 0x80) {
      ++position;
      continue;
    }
    const Utf8Prefix prefix = classify_utf8(text.substr(position));
    if (prefix.kind != Utf8Prefix::Kind::kCharacter) return position;
    position += prefix.bytes;
  }
  return std::nullopt;
}

void append_lossy_utf8(std::string& out, std::string_view bytes) {
  while (!bytes.empty()) {
    const Utf8Prefix prefix = classify_utf8(bytes);
    if (prefix.kind == Utf8Prefix::Kind::kCharacter) {
      out += bytes.substr(0, prefix.bytes);
    } else {
      out += kReplacementCharacter;
    }
    bytes.remove_prefix(prefix.bytes);
  }
}

}  // namespace plow
