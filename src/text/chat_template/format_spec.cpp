#include "text/chat_template/format_spec.h"

#include "text/chat_template/unicode.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

namespace plow::jinja {
namespace {

// Widths and precisions beyond this are refused, so that a format cannot ask for gigabytes of digits.
constexpr int64_t kMaxPrecision = 1000;
constexpr int64_t kMaxWidth = 1'000'000;

bool is_align(char c) { return c == '<' || c == '>' || c == '^' || c == '='; }
bool is_digit(char c) { return c >= '0' && c <= '9'; }

int64_t take_number(std::string_view& text, int64_t max, std::string_view what) {
  int64_t n = 0;
  while (!text.empty() && is_digit(text[0])) {
    n = n * 10 + (text[0] - '0');
    if (n > max) fail(fmt::format("the {} of a format is too large", what));
    text.remove_prefix(1);
  }
  return n;
}

std::string group_digits(std::string_view digits, size_t every, char separator) {
  std::string result;
  for (size_t i = 0; i < digits.size(); ++i) {
    if (i > 0 && (digits.size() - i) % every == 0) result += separator;
    result += digits[i];
  }
  return result;
}

// sign + prefix + body, zeros between them up to the width when the format asks for it.
std::string assemble(bool negative, std::string_view prefix, std::string body, const FormatSpec& spec,
                     size_t n_whole, size_t group) {
  std::string head = negative ? "-" : spec.sign == '-' ? "" : std::string(1, spec.sign);
  head += prefix;
  std::string whole = body.substr(0, n_whole);
  const std::string rest = body.substr(n_whole);
  const auto grouped = [&] { return spec.grouping ? group_digits(whole, group, spec.grouping) : whole; };
  const bool pads_inside = spec.align == '=' || (spec.align == '\0' && spec.zero);
  const auto missing = [&] {
    return spec.width - static_cast<int64_t>(head.size() + grouped().size() + rest.size());
  };
  if (pads_inside && spec.fill == "0") {
    // Zeros are grouped too: each adds up to four thirds of a character, so half of what is missing is never
    // too many.
    for (int64_t n = missing(); n > 0; n = missing())
      whole.insert(0, n > 3 ? static_cast<size_t>(n / 2) : 1, '0');
  }
  std::string padding;
  for (int64_t n = pads_inside ? missing() : 0; n > 0; --n) padding += spec.fill;
  return head + padding + grouped() + rest;
}

}  // namespace

FormatSpec parse_format_spec(std::string_view text) {
  FormatSpec spec;
  const std::string_view whole = text;
  bool has_fill = false;
  if (!text.empty()) {
    size_t after_fill = 0;
    next_char(text, after_fill);
    if (after_fill < text.size() && is_align(text[after_fill])) {
      spec.fill = text.substr(0, after_fill);
      spec.align = text[after_fill];
      has_fill = true;
      text.remove_prefix(after_fill + 1);
    } else if (is_align(text[0])) {
      spec.align = text[0];
      text.remove_prefix(1);
    }
  }
  const auto take = [&text](std::string_view any) {
    if (text.empty() || any.find(text[0]) == std::string_view::npos) return '\0';
    const char c = text[0];
    text.remove_prefix(1);
    return c;
  };
  if (const char sign = take("+- ")) spec.sign = sign;
  spec.alternate = take("#") != '\0';
  if (take("0")) {
    spec.zero = true;
    if (spec.align == '\0' || !has_fill) spec.fill = "0";
  }
  spec.width = take_number(text, kMaxWidth, "width");
  spec.grouping = take(",_");
  if (take(".")) {
    if (text.empty() || !is_digit(text[0])) fail("Format specifier missing precision");
    spec.precision = static_cast<int>(take_number(text, kMaxPrecision, "precision"));
  }
  spec.type = take("bcdeEfFgGnosxX%");
  if (!text.empty()) fail(fmt::format("Invalid format specifier {}", quote(whole)));
  return spec;
}

void append_padded(Runtime& rt, TextBuilder& out, const Text& text, const FormatSpec& spec, bool data) {
  const int64_t n_chars = spec.precision < 0 ? text.n_chars : std::min<int64_t>(text.n_chars, spec.precision);
  const size_t end = char_offset(text.bytes, static_cast<size_t>(n_chars));
  const int64_t padding = std::max<int64_t>(0, spec.width - n_chars);
  const int64_t left = spec.align == '<' ? 0 : spec.align == '^' ? padding / 2 : padding;
  const auto pad = [&](int64_t n) {
    for (int64_t i = 0; i < n; ++i) out.add(spec.fill, data);
  };
  rt.budget.touch(static_cast<uint64_t>(padding));
  pad(left);
  out.add(text, 0, end);
  pad(padding - left);
}

std::string format_integer(int64_t value, const FormatSpec& spec) {
  const bool negative = value < 0;
  const uint64_t magnitude = negative ? ~static_cast<uint64_t>(value) + 1 : static_cast<uint64_t>(value);
  std::string prefix;
  std::string digits;
  switch (spec.type) {
    case 'x':
      digits = fmt::format("{:x}", magnitude);
      prefix = "0x";
      break;
    case 'X':
      digits = fmt::format("{:X}", magnitude);
      prefix = "0X";
      break;
    case 'o':
      digits = fmt::format("{:o}", magnitude);
      prefix = "0o";
      break;
    case 'b':
      digits = fmt::format("{:b}", magnitude);
      prefix = "0b";
      break;
    default:
      digits = fmt::format("{}", magnitude);
  }
  const size_t group = prefix.empty() ? 3 : 4;
  const size_t n = digits.size();
  return assemble(negative, spec.alternate ? prefix : "", std::move(digits), spec, n, group);
}

std::string format_real(double value, const FormatSpec& spec) {
  const bool negative = std::signbit(value) && !std::isnan(value);
  const double magnitude = std::fabs(value);
  const int precision = spec.precision < 0 ? 6 : spec.precision;
  std::string digits;
  switch (spec.type) {
    case 'f':
      digits = fmt::format("{:.{}f}", magnitude, precision);
      break;
    case 'F':
      digits = fmt::format("{:.{}F}", magnitude, precision);
      break;
    case 'e':
      digits = fmt::format("{:.{}e}", magnitude, precision);
      break;
    case 'E':
      digits = fmt::format("{:.{}E}", magnitude, precision);
      break;
    case 'g':
    case 'n':
      digits = fmt::format("{:.{}g}", magnitude, std::max(precision, 1));
      break;
    case 'G':
      digits = fmt::format("{:.{}G}", magnitude, std::max(precision, 1));
      break;
    case '%':
      digits = fmt::format("{:.{}f}%", magnitude * 100, precision);
      break;
    default:
      digits = spec.precision < 0 ? float_repr(magnitude)
                                  : fmt::format("{:.{}g}", magnitude, std::max(precision, 1));
      if (spec.precision >= 0 && std::isfinite(value) && digits.find_first_of(".e") == std::string::npos)
        digits += ".0";
  }
  const size_t n_whole = std::min(digits.find_first_not_of("0123456789"), digits.size());
  return assemble(negative, "", std::move(digits), spec, n_whole, 3);
}

void append_formatted(Runtime& rt, TextBuilder& out, const Value& v, const FormatSpec& spec, bool data) {
  const bool wants_integer =
      spec.type != '\0' && std::string_view("bcdoxX").find(spec.type) != std::string_view::npos;
  const bool wants_real =
      spec.type != '\0' && std::string_view("eEfFgGn%").find(spec.type) != std::string_view::npos;
  FormatSpec used = spec;
  const auto unknown = [&]() {
    fail(fmt::format("Unknown format code '{}' for object of type '{}'", spec.type, type_name(rt, v)));
  };
  TextBuilder piece(rt.budget);
  if (v.is(Kind::kString)) {
    if (spec.type != '\0' && spec.type != 's') unknown();
    if (spec.align == '=') fail("'=' alignment not allowed in string format specifier");
    if (spec.align == '\0') used.align = '<';
    return append_padded(rt, out, rt.heap.text(v), used, data);
  }
  if (!is_number(v)) fail(fmt::format("unsupported format string passed to {}.__format__", type_name(rt, v)));
  used.precision = -1;
  if (spec.align == '\0' || spec.align == '=') used.align = '>';
  const bool as_text = v.is(Kind::kBool) && spec.type == '\0' && spec.width == 0;
  if (as_text) {
    append_str(rt, piece, v);
  } else if (v.is(Kind::kFloat) || wants_real) {
    if (wants_integer || spec.type == 's') unknown();
    piece.add(format_real(as_real(v), spec), v.data || data);
  } else {
    if (spec.type == 's') unknown();
    if (spec.precision >= 0) fail("Precision not allowed in integer format specifier");
    if (spec.type == 'c') {
      const int64_t c = as_integer(v);
      if (c < 0 || c > 0x10ffff || (c >= 0xd800 && c <= 0xdfff)) fail("%c arg not in range(0x110000)");
      std::string character;
      append_utf8(character, static_cast<char32_t>(c));
      piece.add(character, v.data || data);
    } else {
      piece.add(format_integer(as_integer(v), spec), v.data || data);
    }
  }
  append_padded(rt, out, piece.finish(), used, data);
}

}  // namespace plow::jinja
