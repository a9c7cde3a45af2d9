// Python's format specifications: the part behind the colon in "{:>8.2f}", and the one behind the percent
// sign in "%8.2f".
#pragma once

#include "text/chat_template/runtime.h"

#include <cstdint>
#include <string>
#include <string_view>

namespace plow::jinja {

struct FormatSpec {
  std::string fill = " ";  // one character
  char align = '\0';       // < > ^ =, or none given
  char sign = '-';         // - + or space
  bool alternate = false;  // '#': a prefix before other bases
  bool zero = false;
  int64_t width = 0;
  char grouping = '\0';  // , or _
  int precision = -1;    // none given
  char type = '\0';      // none given
};

// Throws Failure for what Python refuses.
FormatSpec parse_format_spec(std::string_view text);

// format(v, spec). `data`: mark as data what belongs to no value (padding), because the format itself is
// data.
void append_formatted(Runtime& rt, TextBuilder& out, const Value& v, const FormatSpec& spec, bool data);

// The pieces that % needs. `text` is cut to the precision and padded to the width, to the right unless align
// is '<'.
void append_padded(Runtime& rt, TextBuilder& out, const Text& text, const FormatSpec& spec, bool data);
// Digits of a number with sign, prefix, grouping and zero padding. REQUIRES an int, bool or float, and a type
// that fits.
std::string format_integer(int64_t value, const FormatSpec& spec);
std::string format_real(double value, const FormatSpec& spec);

}  // namespace plow::jinja
