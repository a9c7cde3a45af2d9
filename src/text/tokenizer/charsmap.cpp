#include "text/tokenizer/charsmap.h"

#include "text/tokenizer/unicode.h"
#include "text/tokenizer/utf8.h"

#include <cstring>

namespace plow {

namespace {

// Fields of a Darts-clone unit (darts.h, class DoubleArrayUnit).
bool has_leaf(uint32_t unit) { return (unit >> 8 & 1) != 0; }
uint32_t value_of(uint32_t unit) { return unit & 0x7fffffffu; }
uint32_t label_of(uint32_t unit) { return unit & 0x800000ffu; }
uint32_t offset_of(uint32_t unit) { return unit >> 10 << ((unit & 1u << 9) >> 6); }

// Clusters of this many bytes or more are looked up character by character.
constexpr size_t kLongCluster = 6;

}  // namespace

Result<Charsmap> Charsmap::open(std::string_view bytes) {
  uint32_t trie_bytes = 0;
  if (bytes.size() < sizeof(trie_bytes))
    return input_error("the precompiled charsmap is shorter than its header");
  std::memcpy(&trie_bytes, bytes.data(), sizeof(trie_bytes));
  bytes.remove_prefix(sizeof(trie_bytes));
  if (trie_bytes > bytes.size() || trie_bytes % sizeof(uint32_t) != 0 || trie_bytes == 0) {
    return input_error("the trie of the precompiled charsmap does not fit into it");
  }
  Charsmap map;
  map.units_.resize(trie_bytes / sizeof(uint32_t));
  std::memcpy(map.units_.data(), bytes.data(), trie_bytes);
  map.replacements_ = bytes.substr(trie_bytes);
  if (first_invalid_utf8(map.replacements_)) return input_error("the precompiled charsmap is not UTF-8");
  return map;
}

std::optional<std::string_view> Charsmap::find(std::string_view text) const {
  uint32_t position = offset_of(units_[0]);
  for (const char c : text) {
    const auto byte = static_cast<uint8_t>(c);
    if (byte == 0) break;
    position ^= byte;
    if (position >= units_.size()) break;
    const uint32_t unit = units_[position];
    if (label_of(unit) != byte) break;
    position ^= offset_of(unit);
    if (!has_leaf(unit)) continue;
    if (position >= units_.size()) break;
    const uint32_t begin = value_of(units_[position]);
    if (begin >= replacements_.size() || is_utf8_continuation(replacements_[begin])) break;
    return replacements_.substr(begin, replacements_.find('\0', begin) - begin);
  }
  return std::nullopt;
}

std::string Charsmap::apply(std::string_view text) const {
  std::string out;
  out.reserve(text.size());
  while (!text.empty()) {
    const std::string_view cluster = text.substr(0, grapheme_length(text));
    text.remove_prefix(cluster.size());
    if (cluster.size() < kLongCluster) {
      if (const auto replacement = find(cluster)) {
        out += *replacement;
        continue;
      }
    }
    for (size_t i = 0; i < cluster.size();) {
      const std::string_view character = cluster.substr(i, utf8_length(cluster[i]));
      out += find(character).value_or(character);
      i += character.size();
    }
  }
  return out;
}

}  // namespace plow
