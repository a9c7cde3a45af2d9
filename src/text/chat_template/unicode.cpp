#include "text/chat_template/unicode.h"

#include <utf8proc.h>

#include <algorithm>
#include <array>

namespace plow::jinja {
namespace {

struct SpecialCase {
  char32_t c;
  std::u32string_view upper;
  std::u32string_view title;
};

constexpr SpecialCase kSpecialCases[] = {
#define PLOW_SPECIAL_CASE(c, upper, title) {c, upper, title},
#include "text/chat_template/special_casing.def"
#undef PLOW_SPECIAL_CASE
};

const SpecialCase* find_special_case(char32_t c) {
  if (c < 0x80) return nullptr;
  const auto* end = std::end(kSpecialCases);
  const auto* found = std::lower_bound(std::begin(kSpecialCases), end, c,
                                       [](const SpecialCase& s, char32_t x) { return s.c < x; });
  return found != end && found->c == c ? found : nullptr;
}

utf8proc_category_t category(char32_t c) { return utf8proc_category(static_cast<utf8proc_int32_t>(c)); }

// Unicode's Case_Ignorable, by category and the word-internal punctuation.
bool is_case_ignorable(char32_t c) {
  switch (category(c)) {
    case UTF8PROC_CATEGORY_MN:
    case UTF8PROC_CATEGORY_ME:
    case UTF8PROC_CATEGORY_CF:
    case UTF8PROC_CATEGORY_LM:
    case UTF8PROC_CATEGORY_SK:
      return true;
    default:
      break;
  }
  constexpr std::u32string_view kWordInternal =
      U"'.:\u00b7\u0387\u055f\u05f4\u2018\u2019\u2024\u2027\ufe13\ufe52\ufe55\uff07\uff0e\uff1a";
  return kWordInternal.find(c) != std::u32string_view::npos;
}

// Unicode's Final_Sigma: a cased character before, none after, case-ignorable ones skipped.
bool is_final_sigma(std::string_view text, size_t at) {
  size_t before = at;
  bool cased_before = false;
  while (before > 0) {
    const char32_t c = previous_char(text, before);
    if (is_case_ignorable(c)) continue;
    cased_before = is_cased(c);
    break;
  }
  if (!cased_before) return false;
  size_t after = at;
  next_char(text, after);
  while (after < text.size()) {
    const char32_t c = next_char(text, after);
    if (!is_case_ignorable(c)) return !is_cased(c);
  }
  return true;
}

}  // namespace

bool is_valid_utf8(std::string_view bytes) {
  const auto* data = reinterpret_cast<const utf8proc_uint8_t*>(bytes.data());
  auto left = static_cast<utf8proc_ssize_t>(bytes.size());
  while (left > 0) {
    utf8proc_int32_t c = 0;
    const utf8proc_ssize_t n = utf8proc_iterate(data, left, &c);
    if (n <= 0) return false;
    data += n;
    left -= n;
  }
  return true;
}

char32_t next_char(std::string_view bytes, size_t& at) {
  const auto lead = static_cast<unsigned char>(bytes[at++]);
  if (lead < 0xc0) return lead;
  const int n_more = lead >= 0xf0 ? 3 : lead >= 0xe0 ? 2 : 1;
  char32_t c = lead & (0x3fu >> n_more);
  for (int i = 0; i < n_more && at < bytes.size(); ++i) {
    c = (c << 6) | (static_cast<unsigned char>(bytes[at++]) & 0x3fu);
  }
  return c;
}

char32_t previous_char(std::string_view bytes, size_t& at) {
  do {
    --at;
  } while (at > 0 && (static_cast<unsigned char>(bytes[at]) & 0xc0u) == 0x80u);
  size_t read = at;
  return next_char(bytes, read);
}

void append_utf8(std::string& out, char32_t c) {
  std::array<utf8proc_uint8_t, 4> bytes{};
  const utf8proc_ssize_t n = utf8proc_encode_char(static_cast<utf8proc_int32_t>(c), bytes.data());
  out.append(reinterpret_cast<const char*>(bytes.data()), static_cast<size_t>(n));
}

uint32_t count_chars(std::string_view bytes) {
  uint32_t n = 0;
  for (const char byte : bytes) n += (static_cast<unsigned char>(byte) & 0xc0u) != 0x80u;
  return n;
}

size_t char_offset(std::string_view bytes, size_t index) {
  size_t at = 0;
  while (index > 0 && at < bytes.size()) {
    ++at;
    while (at < bytes.size() && (static_cast<unsigned char>(bytes[at]) & 0xc0u) == 0x80u) ++at;
    --index;
  }
  return at;
}

bool is_space(char32_t c) {
  if (c < 0x80) return (c >= 0x09 && c <= 0x0d) || (c >= 0x1c && c <= 0x20);
  return c == 0x85 || category(c) == UTF8PROC_CATEGORY_ZS || c == 0x2028 || c == 0x2029;
}

bool is_printable(char32_t c) {
  if (c < 0x80) return c >= 0x20 && c != 0x7f;
  switch (category(c)) {
    case UTF8PROC_CATEGORY_CN:
    case UTF8PROC_CATEGORY_ZS:
    case UTF8PROC_CATEGORY_ZL:
    case UTF8PROC_CATEGORY_ZP:
    case UTF8PROC_CATEGORY_CC:
    case UTF8PROC_CATEGORY_CF:
    case UTF8PROC_CATEGORY_CS:
    case UTF8PROC_CATEGORY_CO:
      return false;
    default:
      return true;
  }
}

bool is_cased(char32_t c) { return is_upper(c) || is_lower(c) || category(c) == UTF8PROC_CATEGORY_LT; }
bool is_upper(char32_t c) { return utf8proc_isupper(static_cast<utf8proc_int32_t>(c)) != 0; }
bool is_lower(char32_t c) { return utf8proc_islower(static_cast<utf8proc_int32_t>(c)) != 0; }

bool is_alpha(char32_t c) {
  const utf8proc_category_t k = category(c);
  return k >= UTF8PROC_CATEGORY_LU && k <= UTF8PROC_CATEGORY_LO;
}

bool is_decimal(char32_t c) { return category(c) == UTF8PROC_CATEGORY_ND; }
bool is_numeric(char32_t c) {
  const utf8proc_category_t k = category(c);
  return k == UTF8PROC_CATEGORY_ND || k == UTF8PROC_CATEGORY_NL || k == UTF8PROC_CATEGORY_NO;
}

bool is_line_break(char32_t c) {
  return (c >= 0x0a && c <= 0x0d) || (c >= 0x1c && c <= 0x1e) || c == 0x85 || c == 0x2028 || c == 0x2029;
}

void append_upper(std::string& out, char32_t c) {
  if (const SpecialCase* special = find_special_case(c)) {
    for (const char32_t mapped : special->upper) append_utf8(out, mapped);
    return;
  }
  append_utf8(out, static_cast<char32_t>(utf8proc_toupper(static_cast<utf8proc_int32_t>(c))));
}

void append_title(std::string& out, char32_t c) {
  if (const SpecialCase* special = find_special_case(c)) {
    for (const char32_t mapped : special->title) append_utf8(out, mapped);
    return;
  }
  append_utf8(out, static_cast<char32_t>(utf8proc_totitle(static_cast<utf8proc_int32_t>(c))));
}

void append_lower(std::string& out, char32_t c, std::string_view text, size_t at) {
  constexpr char32_t kCapitalSigma = 0x3a3;
  constexpr char32_t kFinalSigma = 0x3c2;
  constexpr char32_t kCapitalDottedI = 0x130;  // the only one whose lower case has two characters
  if (c == kCapitalSigma && is_final_sigma(text, at)) {
    append_utf8(out, kFinalSigma);
  } else if (c == kCapitalDottedI) {
    out += "i\u0307";
  } else {
    append_utf8(out, static_cast<char32_t>(utf8proc_tolower(static_cast<utf8proc_int32_t>(c))));
  }
}

size_t first_non_space(std::string_view bytes) {
  size_t at = 0;
  while (at < bytes.size()) {
    size_t next = at;
    if (!is_space(next_char(bytes, next))) break;
    at = next;
  }
  return at;
}

size_t end_of_last_non_space(std::string_view bytes) {
  size_t at = bytes.size();
  while (at > 0) {
    size_t before = at;
    if (!is_space(previous_char(bytes, before))) break;
    at = before;
  }
  return at;
}

}  // namespace plow::jinja
