#include "text/chat_template/parse_number.h"

#include "text/chat_template/budget.h"
#include "text/chat_template/unicode.h"

#include <charconv>
#include <cstdlib>
#include <limits>
#include <string>

namespace plow::jinja {
namespace {

std::string_view trimmed(std::string_view text) {
  text.remove_prefix(first_non_space(text));
  return text.substr(0, end_of_last_non_space(text));
}

// Single underscores between digits are dropped; false when there are others.
bool drop_underscores(std::string_view text, std::string& out) {
  for (size_t i = 0; i < text.size(); ++i) {
    if (text[i] != '_') {
      out += text[i];
    } else if (i == 0 || i + 1 == text.size() || text[i + 1] == '_' || text[i - 1] == '_') {
      return false;
    }
  }
  return true;
}

bool equals_ignoring_case(std::string_view text, std::string_view lower) {
  if (text.size() != lower.size()) return false;
  for (size_t i = 0; i < text.size(); ++i) {
    if ((text[i] | 0x20) != lower[i]) return false;
  }
  return true;
}

// Takes a prefix 0x, 0o or 0b that fits the base (0: any), and tells the base.
int take_prefix(std::string_view& digits, int64_t base) {
  if (digits.size() > 2 && digits[0] == '0') {
    const char letter = static_cast<char>(digits[1] | 0x20);
    const int of_letter = letter == 'x' ? 16 : letter == 'o' ? 8 : letter == 'b' ? 2 : 0;
    if (of_letter != 0 && (base == of_letter || base == 0)) {
      digits.remove_prefix(digits[2] == '_' ? 3 : 2);
      return of_letter;
    }
  }
  return base == 0 ? 10 : static_cast<int>(base);
}

}  // namespace

std::optional<int64_t> parse_integer(std::string_view text, int64_t base) {
  if (base != 0 && (base < 2 || base > 36)) return std::nullopt;
  std::string_view digits = trimmed(text);
  const bool negative = digits.starts_with('-');
  if (negative || digits.starts_with('+')) digits.remove_prefix(1);
  const int used_base = take_prefix(digits, base);
  std::string plain;
  if (digits.empty() || !drop_underscores(digits, plain)) return std::nullopt;
  uint64_t magnitude = 0;
  const auto result = std::from_chars(plain.data(), plain.data() + plain.size(), magnitude, used_base);
  if (result.ptr != plain.data() + plain.size()) return std::nullopt;
  constexpr uint64_t kMax = static_cast<uint64_t>(std::numeric_limits<int64_t>::max());
  if (result.ec == std::errc::result_out_of_range || magnitude > kMax + (negative ? 1 : 0)) {
    fail("an integer is beyond 64 bits");
  }
  if (result.ec != std::errc()) return std::nullopt;
  return negative ? static_cast<int64_t>(~magnitude + 1) : static_cast<int64_t>(magnitude);
}

std::optional<double> parse_real(std::string_view text) {
  std::string_view digits = trimmed(text);
  const bool negative = digits.starts_with('-');
  if (negative || digits.starts_with('+')) digits.remove_prefix(1);
  const double sign = negative ? -1.0 : 1.0;
  if (equals_ignoring_case(digits, "inf") || equals_ignoring_case(digits, "infinity")) {
    return sign * std::numeric_limits<double>::infinity();
  }
  if (equals_ignoring_case(digits, "nan")) return std::numeric_limits<double>::quiet_NaN();
  std::string plain;
  if (digits.empty() || digits[0] == '-' || digits[0] == '+' ||
      digits.find_first_not_of("0123456789.eE+-_") != std::string_view::npos ||
      !drop_underscores(digits, plain)) {
    return std::nullopt;
  }
  double value = 0;
  const auto result = std::from_chars(plain.data(), plain.data() + plain.size(), value);
  if (result.ptr != plain.data() + plain.size()) return std::nullopt;
  if (result.ec == std::errc::result_out_of_range)
    value = std::strtod(plain.c_str(), nullptr);
  else if (result.ec != std::errc())
    return std::nullopt;
  return sign * value;
}

}  // namespace plow::jinja
