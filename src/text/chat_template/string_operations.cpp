#include "text/chat_template/string_operations.h"

#include "text/chat_template/builtins.h"
#include "text/chat_template/unicode.h"

#include <algorithm>

namespace plow::jinja {
namespace {

// Behind these the filter `title` begins a word.
bool begins_word(char32_t c) {
  return c == '-' || c == '(' || c == '{' || c == '[' || c == '<' || is_space(c);
}

Value finish_like(Runtime& rt, TextBuilder& out, const Text& model) {
  Text text = out.finish();
  text.markup = model.markup;
  return rt.heap.make_string(std::move(text));
}

}  // namespace

Value map_case(Runtime& rt, const Text& text, Case target) {
  TextBuilder out(rt.budget);
  bool at_start = true;  // of the string, or of a word
  for (size_t at = 0; at < text.bytes.size();) {
    const size_t begin = at;
    const char32_t c = next_char(text.bytes, at);
    std::string mapped;
    switch (target) {
      case Case::kUpper:
        append_upper(mapped, c);
        break;
      case Case::kLower:
        append_lower(mapped, c, text.bytes, begin);
        break;
      case Case::kSwap:
        is_upper(c) ? append_lower(mapped, c, text.bytes, begin) : append_upper(mapped, c);
        break;
      case Case::kJinjaTitle:
        at_start ? append_upper(mapped, c) : append_lower(mapped, c, text.bytes, begin);
        at_start = begins_word(c);
        break;
      case Case::kTitle:
      case Case::kCapitalize:
        at_start ? append_title(mapped, c) : append_lower(mapped, c, text.bytes, begin);
        at_start = target == Case::kTitle && !is_cased(c);
        break;
    }
    out.add_mapped(mapped, text, begin, at);
  }
  return finish_like(rt, out, text);
}

Value strip(Runtime& rt, const Text& text, const Value& chars, bool left, bool right) {
  size_t begin = 0;
  size_t end = text.bytes.size();
  if (chars.is(Kind::kAbsent) || chars.is(Kind::kNone)) {
    if (left) begin = first_non_space(text.bytes);
    if (right) end = std::max(begin, end_of_last_non_space(text.bytes));
  } else {
    const std::string_view set = need_string(rt, chars, "the characters to strip").bytes;
    const auto strips = [&](size_t from, size_t to) {
      rt.budget.touch(set.size());
      return set.find(std::string_view(text.bytes).substr(from, to - from)) != std::string_view::npos;
    };
    while (left && begin < end) {
      size_t next = begin;
      next_char(text.bytes, next);
      if (!strips(begin, next)) break;
      begin = next;
    }
    while (right && end > begin) {
      size_t before = end;
      previous_char(text.bytes, before);
      if (!strips(before, end)) break;
      end = before;
    }
  }
  return substring(rt, text, begin, end);
}

Value replace_text(Runtime& rt, const Text& text, const Text& from, const Text& to, int64_t count) {
  TextBuilder out(rt.budget);
  size_t at = 0;
  for (size_t search = 0; count != 0;) {
    const size_t found = text.bytes.find(from.bytes, search);
    if (found == std::string::npos) break;
    out.add(text, at, found);
    out.add(to);
    at = found + from.bytes.size();
    search = at;
    --count;
    if (!from.bytes.empty()) continue;
    if (at >= text.bytes.size()) break;
    next_char(text.bytes, search);  // an empty string is found between any two characters
  }
  out.add(text, at, text.bytes.size());
  return finish_like(rt, out, text);
}

std::vector<ByteRange> split_lines(Runtime& rt, const Text& text, bool with_last) {
  rt.budget.touch(text.bytes.size());
  std::vector<ByteRange> lines;
  size_t begin = 0;
  for (size_t at = 0; at < text.bytes.size();) {
    const size_t end = at;
    const char32_t c = next_char(text.bytes, at);
    if (!is_line_break(c)) continue;
    if (c == '\r' && at < text.bytes.size() && text.bytes[at] == '\n') ++at;
    lines.push_back({static_cast<uint32_t>(begin), static_cast<uint32_t>(end)});
    begin = at;
  }
  const bool merges = text.bytes.ends_with('\r');  // the newline that follows belongs to it
  if (begin < text.bytes.size() || (with_last && !merges)) {
    lines.push_back({static_cast<uint32_t>(begin), static_cast<uint32_t>(text.bytes.size())});
  }
  return lines;
}

Value justify(Runtime& rt, const Text& text, int64_t width, char fill, Justify side) {
  const int64_t padding = std::max<int64_t>(0, std::max<int64_t>(0, width) - text.n_chars);
  // str.center puts the odd one to the left when the width is odd.
  const int64_t left = side == Justify::kLeft    ? 0
                       : side == Justify::kRight ? padding
                                                 : padding / 2 + (padding & width & 1);
  TextBuilder out(rt.budget);
  out.add_repeated(fill, static_cast<size_t>(left));
  out.add(text);
  out.add_repeated(fill, static_cast<size_t>(padding - left));
  return finish_like(rt, out, text);
}

Value join(Runtime& rt, const Text& separator, const std::vector<Value>& strings) {
  TextBuilder out(rt.budget);
  for (size_t i = 0; i < strings.size(); ++i) {
    if (i > 0) out.add(separator);
    out.add(rt.heap.text(strings[i]));
  }
  return rt.heap.make_string(out.finish());
}

}  // namespace plow::jinja
