#include "text/tokenizer/unicode.h"

#include "base/check.h"
#include "text/tokenizer/utf8.h"

#include <fmt/format.h>
#include <utf8proc.h>

#include <algorithm>
#include <array>
#include <cstdlib>
#include <iterator>
#include <memory>
#include <span>
#include <utility>

namespace plow {

namespace {

struct CodePointRange {
  char32_t first;
  char32_t last;
};

struct NewCodePoints {
  char32_t first;
  char32_t last;
  std::string_view category;
  bool han;
};

struct LowercaseRange {
  char32_t first;
  char32_t last;
  int32_t distance;
};

#include "text/tokenizer/unicode_tables.inc"

template <class Range>
const Range* find_range(std::span<const Range> ranges, char32_t c) {
  const auto found = std::lower_bound(ranges.begin(), ranges.end(), c,
                                      [](const Range& r, char32_t value) { return r.last < value; });
  return found != ranges.end() && found->first <= c ? &*found : nullptr;
}

template <class Range, size_t kCount>
bool contains(const Range (&ranges)[kCount], char32_t c) {
  return find_range(std::span<const Range>(ranges), c) != nullptr;
}

utf8proc_category_t category(char32_t c) { return utf8proc_category(static_cast<utf8proc_int32_t>(c)); }

bool is_mark_category(utf8proc_category_t k) {
  return k == UTF8PROC_CATEGORY_MN || k == UTF8PROC_CATEGORY_MC || k == UTF8PROC_CATEGORY_ME;
}

// A mark that utf8proc does not know yet joins the cluster before it as every mark does: U+0301 stands in for
// it.
utf8proc_int32_t grapheme_stand_in(char32_t c) {
  const auto* added = find_range(std::span<const NewCodePoints>(kNewCodePoints), c);
  return static_cast<utf8proc_int32_t>(added != nullptr && added->category[0] == 'M' ? 0x301 : c);
}

bool is_ascii_punctuation(char32_t c) {
  return (c >= '!' && c <= '/') || (c >= ':' && c <= '@') || (c >= '[' && c <= '`') || (c >= '{' && c <= '~');
}

}  // namespace

bool is_white_space(char32_t c) {
  if (c < 0x80) return c == ' ' || (c >= '\t' && c <= '\r');
  return c == 0x85 || c == 0xa0 || c == 0x1680 || (c >= 0x2000 && c <= 0x200a) || c == 0x2028 ||
         c == 0x2029 || c == 0x202f || c == 0x205f || c == 0x3000;
}

bool is_number(char32_t c) {
  if (c < 0x80) return c >= '0' && c <= '9';
  const auto k = category(c);
  return k == UTF8PROC_CATEGORY_ND || k == UTF8PROC_CATEGORY_NL || k == UTF8PROC_CATEGORY_NO ||
         contains(kNewNumbers, c);
}

bool is_word(char32_t c) {
  if (c < 0x80) return (c >= '0' && c <= '9') || (c >= 'A' && c <= 'Z') || (c >= 'a' && c <= 'z') || c == '_';
  const auto in_class = [](std::string_view k) {
    return k[0] == 'L' || k[0] == 'M' || k == "Nd" || k == "Nl" || k == "Pc";
  };
  if (const auto* added = find_range(std::span<const NewCodePoints>(kNewCodePoints), c)) {
    return in_class(added->category);
  }
  // Join_Control, and the symbols that are Alphabetic (UTS 18, annex C: \w; Other_Alphabetic in
  // PropList.txt).
  const bool other = c == 0x200c || c == 0x200d || (c >= 0x24b6 && c <= 0x24e9) ||
                     (c >= 0x1f130 && c <= 0x1f149) || (c >= 0x1f150 && c <= 0x1f169) ||
                     (c >= 0x1f170 && c <= 0x1f189);
  return other || in_class(utf8proc_category_string(static_cast<utf8proc_int32_t>(c)));
}

bool is_mark(char32_t c) {
  if (c < 0x300) return false;
  if (c == 0x1cf2 || c == 0x1cf3) return true;  // Mc until Unicode 12.0
  return is_mark_category(category(c)) && !contains(kNormalizedSince9, c);
}

bool is_punctuation(char32_t c) {
  if (c < 0x80) return is_ascii_punctuation(c);
  if (c == 0x166d || c == 0x111c9) return true;  // Po until Unicode 12.0 and 11.0
  switch (category(c)) {
    case UTF8PROC_CATEGORY_PC:
    case UTF8PROC_CATEGORY_PD:
    case UTF8PROC_CATEGORY_PS:
    case UTF8PROC_CATEGORY_PE:
    case UTF8PROC_CATEGORY_PI:
    case UTF8PROC_CATEGORY_PF:
    case UTF8PROC_CATEGORY_PO:
      return !contains(kClassifiedSince8, c);
    default:
      return false;
  }
}

bool is_other(char32_t c) {
  switch (category(c)) {
    case UTF8PROC_CATEGORY_CC:
    case UTF8PROC_CATEGORY_CO:
      return true;
    case UTF8PROC_CATEGORY_CF:
      return !contains(kClassifiedSince8, c);
    default:
      return false;
  }
}

bool is_nonspacing_mark(char32_t c) {
  if (c < 0x300) return false;
  if (c == 0x1734) return true;  // Mc since Unicode 14.0
  if (c == 0x1885 || c == 0x1886 || c == 0xa9bd || c == 0x111c9)
    return false;  // not Mn before 9.0, 11.0, 11.0
  return category(c) == UTF8PROC_CATEGORY_MN && !contains(kClassifiedSince8, c);
}

void append_lowercase(std::string& out, char32_t c) {
  if (c < 0x80) {
    out.push_back(static_cast<char>(c >= 'A' && c <= 'Z' ? c + 32 : c));
  } else if (c == 0x130) {
    out += "i\xcc\x87";  // SpecialCasing.txt: i and a combining dot above
  } else if (const auto* range = find_range(std::span<const LowercaseRange>(kNewCapitals), c)) {
    append_utf8(out, static_cast<char32_t>(static_cast<int32_t>(c) + range->distance));
  } else {
    append_utf8(out, static_cast<char32_t>(utf8proc_tolower(static_cast<utf8proc_int32_t>(c))));
  }
}

namespace {

std::string normalized_part(std::string_view text, int options) {
  utf8proc_uint8_t* mapped = nullptr;
  const auto length = utf8proc_map(reinterpret_cast<const utf8proc_uint8_t*>(text.data()),
                                   static_cast<utf8proc_ssize_t>(text.size()), &mapped,
                                   static_cast<utf8proc_option_t>(options));
  const std::unique_ptr<utf8proc_uint8_t, decltype(&std::free)> owner(mapped, &std::free);
  // Valid UTF-8 has no way to fail but for memory.
  PLOW_CHECK(length >= 0, "utf8proc: {}", utf8proc_errmsg(length));
  return {reinterpret_cast<const char*>(mapped), static_cast<size_t>(length)};
}

}  // namespace

std::string normalized(std::string_view text, NormalForm form) {
  const bool compose = form == NormalForm::kNfc || form == NormalForm::kNfkc;
  const bool compatible = form == NormalForm::kNfkc || form == NormalForm::kNfkd;
  // Below U+0300 nothing composes; below U+00A0 nothing decomposes either. 0xcc leads U+0300, 0xc2 leads
  // U+0080.
  const uint8_t first_lead = form == NormalForm::kNfc ? 0xcc : 0xc2;
  if (std::none_of(text.begin(), text.end(), [&](char b) { return static_cast<uint8_t>(b) >= first_lead; })) {
    return std::string(text);
  }
  const int options = UTF8PROC_STABLE | (compose ? UTF8PROC_COMPOSE : UTF8PROC_DECOMPOSE) |
                      (compatible ? UTF8PROC_COMPAT : 0);
  std::string out;
  out.reserve(text.size());
  size_t part = 0;
  for (size_t i = 0; i < text.size();) {
    const CodePoint c = code_point_at(text, i);
    if (c.value >= 0x300 && contains(kNormalizedSince9, c.value)) {
      out += normalized_part(text.substr(part, i - part), options);
      out += text.substr(i, c.bytes);
      part = i + c.bytes;
    }
    i += c.bytes;
  }
  out += normalized_part(text.substr(part), options);
  return out;
}

size_t grapheme_length(std::string_view text) {
  CodePoint next = code_point_at(text, 0);
  size_t length = next.bytes;
  utf8proc_int32_t previous = grapheme_stand_in(next.value);
  utf8proc_int32_t state = 0;
  while (length < text.size()) {
    next = code_point_at(text, length);
    const utf8proc_int32_t current = grapheme_stand_in(next.value);
    if (utf8proc_grapheme_break_stateful(previous, current, &state)) break;
    length += next.bytes;
    previous = current;
  }
  return length;
}

std::string newer_code_points(std::string_view name) {
  constexpr std::pair<std::string_view, std::string_view> kLongNames[] = {{"letter", "l"},
                                                                          {"number", "n"},
                                                                          {"mark", "m"},
                                                                          {"punctuation", "p"},
                                                                          {"punct", "p"},
                                                                          {"symbol", "s"},
                                                                          {"uppercaseletter", "lu"},
                                                                          {"lowercaseletter", "ll"},
                                                                          {"digit", "nd"},
                                                                          {"assigned", "any"},
                                                                          {"decimalnumber", "nd"},
                                                                          {"otherletter", "lo"}};
  for (const auto& [long_name, short_name] : kLongNames) {
    if (name == long_name) name = short_name;
  }
  const auto matches = [&](const NewCodePoints& range) {
    const std::string_view k = range.category;
    if (name == "han") return range.han;
    if (name == "word") return k[0] == 'L' || k[0] == 'M' || k == "Nd" || k == "Pc";
    if (name == "any") return true;
    if (name == "notother") return k[0] != 'C';
    if (name.empty() || name.size() > 2 || (name[0] | 0x20) != (k[0] | 0x20)) return false;
    return name.size() == 1 || name[1] == k[1];
  };
  std::string ranges;
  for (const NewCodePoints& range : kNewCodePoints) {
    if (!matches(range)) continue;
    ranges += fmt::format("\\x{{{:x}}}", static_cast<uint32_t>(range.first));
    if (range.last != range.first) ranges += fmt::format("-\\x{{{:x}}}", static_cast<uint32_t>(range.last));
  }
  return ranges;
}

}  // namespace plow
