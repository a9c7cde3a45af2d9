// Operations on strings that filters and methods share. Each keeps track of where every byte came from.
#pragma once

#include "text/chat_template/runtime.h"

#include <cstdint>
#include <vector>

namespace plow::jinja {

enum class Case {
  kUpper,
  kLower,
  kCapitalize,  // the first character as in a title, the rest lower
  kTitle,       // str.title: words are runs of cased characters
  kJinjaTitle,  // the filter: words begin behind spaces, '-' and opening brackets
  kSwap,
};
Value map_case(Runtime& rt, const Text& text, Case target);

// `chars`: a string of characters to strip; absent or None for white space.
Value strip(Runtime& rt, const Text& text, const Value& chars, bool left, bool right);

// At most `count` replacements, all when negative.
Value replace_text(Runtime& rt, const Text& text, const Text& from, const Text& to, int64_t count);

// str.splitlines without line ends. `with_last`: count as if a newline followed, so that "" is one line.
std::vector<ByteRange> split_lines(Runtime& rt, const Text& text, bool with_last);

enum class Justify { kLeft, kRight, kCenter };
Value justify(Runtime& rt, const Text& text, int64_t width, char fill, Justify side);

Value join(Runtime& rt, const Text& separator, const std::vector<Value>& strings);

}  // namespace plow::jinja
