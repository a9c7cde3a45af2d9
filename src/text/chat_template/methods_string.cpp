// Methods of str.
#include "text/chat_template/builtins.h"
#include "text/chat_template/runtime.h"
#include "text/chat_template/string_operations.h"
#include "text/chat_template/unicode.h"

#include <fmt/format.h>

#include <algorithm>

namespace plow::jinja {
namespace {

const Text& text_of(Runtime& rt, const Value& self) { return rt.heap.text(self); }

Value upper(Runtime& rt, const Value& self, Arguments&) {
  return map_case(rt, text_of(rt, self), Case::kUpper);
}
Value lower(Runtime& rt, const Value& self, Arguments&) {
  return map_case(rt, text_of(rt, self), Case::kLower);
}
Value title(Runtime& rt, const Value& self, Arguments&) {
  return map_case(rt, text_of(rt, self), Case::kTitle);
}
Value swapcase(Runtime& rt, const Value& self, Arguments&) {
  return map_case(rt, text_of(rt, self), Case::kSwap);
}
Value capitalize(Runtime& rt, const Value& self, Arguments&) {
  return map_case(rt, text_of(rt, self), Case::kCapitalize);
}

Value strip_both(Runtime& rt, const Value& self, Arguments& args) {
  return strip(rt, text_of(rt, self), args[0], true, true);
}
Value strip_left(Runtime& rt, const Value& self, Arguments& args) {
  return strip(rt, text_of(rt, self), args[0], true, false);
}
Value strip_right(Runtime& rt, const Value& self, Arguments& args) {
  return strip(rt, text_of(rt, self), args[0], false, true);
}

Value substring_list(Runtime& rt, const Text& text, const std::vector<ByteRange>& ranges) {
  std::vector<Value> parts;
  for (const ByteRange& range : ranges) parts.push_back(substring(rt, text, range.begin, range.end));
  return rt.heap.make_list(std::move(parts));
}

ByteRange range_of(size_t begin, size_t end) {
  return {static_cast<uint32_t>(begin), static_cast<uint32_t>(end)};
}

// Words between runs of white space; the last holds the rest when there were `limit` cuts (never, when
// negative).
std::vector<ByteRange> words_from_left(std::string_view bytes, int64_t limit) {
  std::vector<ByteRange> words;
  size_t at = first_non_space(bytes);
  while (at < bytes.size()) {
    if (limit-- == 0) {
      words.push_back(range_of(at, bytes.size()));
      break;
    }
    const size_t begin = at;
    size_t end = at;
    while (end < bytes.size()) {
      size_t next = end;
      if (is_space(next_char(bytes, next))) break;
      end = next;
    }
    words.push_back(range_of(begin, end));
    at = end + first_non_space(bytes.substr(end));
  }
  return words;
}

std::vector<ByteRange> words_from_right(std::string_view bytes, int64_t limit) {
  std::vector<ByteRange> words;
  size_t at = end_of_last_non_space(bytes);
  while (at > 0) {
    if (limit-- == 0) {
      words.push_back(range_of(0, at));
      break;
    }
    size_t begin = at;
    while (begin > 0) {
      size_t before = begin;
      if (is_space(previous_char(bytes, before))) break;
      begin = before;
    }
    words.push_back(range_of(begin, at));
    at = end_of_last_non_space(bytes.substr(0, begin));
  }
  std::reverse(words.begin(), words.end());
  return words;
}

std::vector<ByteRange> cut_from_left(std::string_view bytes, std::string_view separator, int64_t limit) {
  std::vector<ByteRange> parts;
  size_t at = 0;
  for (size_t found = bytes.find(separator); limit != 0 && found != std::string_view::npos; --limit) {
    parts.push_back(range_of(at, found));
    at = found + separator.size();
    found = bytes.find(separator, at);
  }
  parts.push_back(range_of(at, bytes.size()));
  return parts;
}

std::vector<ByteRange> cut_from_right(std::string_view bytes, std::string_view separator, int64_t limit) {
  std::vector<ByteRange> parts;
  size_t end = bytes.size();
  for (size_t found = bytes.rfind(separator); limit != 0 && found != std::string_view::npos; --limit) {
    parts.push_back(range_of(found + separator.size(), end));
    end = found;
    found = bytes.substr(0, end).rfind(separator);
  }
  parts.push_back(range_of(0, end));
  std::reverse(parts.begin(), parts.end());
  return parts;
}

Value split_at(Runtime& rt, const Value& self, const Arguments& args, bool from_left) {
  const Text& text = text_of(rt, self);
  const int64_t limit = args.has(1) ? need_integer(rt, args[1], "maxsplit") : -1;
  rt.budget.touch(text.bytes.size());
  if (!args.has(0) || args[0].is(Kind::kNone)) {
    return substring_list(
        rt, text, from_left ? words_from_left(text.bytes, limit) : words_from_right(text.bytes, limit));
  }
  const std::string_view separator = need_string(rt, args[0], "sep").bytes;
  if (separator.empty()) fail("empty separator");
  return substring_list(
      rt, text,
      from_left ? cut_from_left(text.bytes, separator, limit) : cut_from_right(text.bytes, separator, limit));
}
Value split(Runtime& rt, const Value& self, Arguments& args) { return split_at(rt, self, args, true); }
Value rsplit(Runtime& rt, const Value& self, Arguments& args) { return split_at(rt, self, args, false); }

Value splitlines(Runtime& rt, const Value& self, Arguments& args) {
  const Text& text = text_of(rt, self);
  std::vector<ByteRange> lines = split_lines(rt, text, false);
  if (args.has(0) && truthy(rt, args[0])) {  // keepends
    for (size_t i = 0; i < lines.size(); ++i) {
      lines[i].end = i + 1 < lines.size() ? lines[i + 1].begin : static_cast<uint32_t>(text.bytes.size());
    }
  }
  return substring_list(rt, text, lines);
}

Value partition_at(Runtime& rt, const Value& self, const Arguments& args, bool first) {
  const Text& text = text_of(rt, self);
  const std::string_view separator = need_string(rt, args[0], "the separator").bytes;
  if (separator.empty()) fail("empty separator");
  rt.budget.touch(text.bytes.size());
  const size_t found = first ? text.bytes.find(separator) : text.bytes.rfind(separator);
  const bool has = found != std::string::npos;
  const size_t begin = has ? found : (first ? text.bytes.size() : 0);
  const size_t end = has ? found + separator.size() : begin;
  return rt.heap.make_list({substring(rt, text, 0, begin), substring(rt, text, begin, end),
                            substring(rt, text, end, text.bytes.size())},
                           Kind::kTuple);
}
Value partition(Runtime& rt, const Value& self, Arguments& args) {
  return partition_at(rt, self, args, true);
}
Value rpartition(Runtime& rt, const Value& self, Arguments& args) {
  return partition_at(rt, self, args, false);
}

Value replace(Runtime& rt, const Value& self, Arguments& args) {
  const Text& text = text_of(rt, self);
  need_string(rt, args[0], "what is replaced");
  need_string(rt, args[1], "the replacement");
  const Value to = text.markup ? escape_html(rt, args[1]) : args[1];
  return replace_text(rt, text, rt.heap.text(args[0]), rt.heap.text(to),
                      args.has(2) ? need_integer(rt, args[2], "count") : -1);
}

Value join_method(Runtime& rt, const Value& self, Arguments& args) {
  std::vector<Value> strings = iterate(rt, args[0]);
  const bool markup = text_of(rt, self).markup;
  for (size_t i = 0; i < strings.size(); ++i) {
    if (!strings[i].is(Kind::kString) && !markup) {
      fail(fmt::format("sequence item {}: expected str instance, {} found", i, type_name(rt, strings[i])));
    }
    if (markup) strings[i] = escape_html(rt, strings[i]);
  }
  return join(rt, text_of(rt, self), strings);
}

// The bytes between the characters that `start` and `end` name, as slices do.
ByteRange window(Runtime& rt, const Text& text, const Value& start, const Value& end) {
  const auto index = [&](const Value& v, int64_t absent) {
    if (v.is(Kind::kAbsent) || v.is(Kind::kNone)) return absent;
    int64_t i = need_integer(rt, v, "an index");
    if (i < 0) i += text.n_chars;
    return std::max<int64_t>(i, 0);
  };
  rt.budget.touch(text.bytes.size());
  const int64_t first = index(start, 0);
  const int64_t last = std::min<int64_t>(index(end, text.n_chars), text.n_chars);
  if (first > last) return range_of(1, 0);  // nothing is found in it, not even the empty string
  return range_of(char_offset(text.bytes, static_cast<size_t>(first)),
                  char_offset(text.bytes, static_cast<size_t>(last)));
}

Value has_affix(Runtime& rt, const Value& self, const Arguments& args, bool at_start) {
  const Text& text = text_of(rt, self);
  const ByteRange range = window(rt, text, args[1], args[2]);
  if (range.begin > range.end) return boolean(false);
  const std::string_view inside = std::string_view(text.bytes).substr(range.begin, range.end - range.begin);
  const auto fits = [&](const Value& affix) {
    const std::string_view bytes = need_string(rt, affix, "what the string is to start or end with").bytes;
    return at_start ? inside.starts_with(bytes) : inside.ends_with(bytes);
  };
  if (!args[0].is(Kind::kTuple)) return boolean(fits(args[0]));
  const std::vector<Value> affixes = iterate(rt, args[0]);
  return boolean(std::any_of(affixes.begin(), affixes.end(), fits));
}
Value startswith(Runtime& rt, const Value& self, Arguments& args) { return has_affix(rt, self, args, true); }
Value endswith(Runtime& rt, const Value& self, Arguments& args) { return has_affix(rt, self, args, false); }

// Index of the first or last place, -1 when there is none.
int64_t find_place(Runtime& rt, const Value& self, const Arguments& args, bool first) {
  const Text& text = text_of(rt, self);
  const std::string_view wanted = need_string(rt, args[0], "what is searched").bytes;
  const ByteRange range = window(rt, text, args[1], args[2]);
  if (range.begin > range.end) return -1;
  const std::string_view inside = std::string_view(text.bytes).substr(range.begin, range.end - range.begin);
  const size_t found = first ? inside.find(wanted) : inside.rfind(wanted);
  if (found == std::string_view::npos) return -1;
  return count_chars(std::string_view(text.bytes).substr(0, range.begin + found));
}
Value place(Runtime& rt, const Value& self, int64_t index) {
  return integer(index, text_of(rt, self).has_data());
}
Value needed_place(Runtime& rt, const Value& self, int64_t index) {
  if (index < 0) fail("substring not found");
  return place(rt, self, index);
}
Value find(Runtime& rt, const Value& self, Arguments& args) {
  return place(rt, self, find_place(rt, self, args, true));
}
Value rfind(Runtime& rt, const Value& self, Arguments& args) {
  return place(rt, self, find_place(rt, self, args, false));
}
Value index(Runtime& rt, const Value& self, Arguments& args) {
  return needed_place(rt, self, find_place(rt, self, args, true));
}
Value rindex(Runtime& rt, const Value& self, Arguments& args) {
  return needed_place(rt, self, find_place(rt, self, args, false));
}

Value count(Runtime& rt, const Value& self, Arguments& args) {
  const Text& text = text_of(rt, self);
  const std::string_view wanted = need_string(rt, args[0], "what is counted").bytes;
  const ByteRange range = window(rt, text, args[1], args[2]);
  if (range.begin > range.end) return integer(0, text.has_data());
  const std::string_view inside = std::string_view(text.bytes).substr(range.begin, range.end - range.begin);
  if (wanted.empty()) return integer(int64_t{1} + count_chars(inside), text.has_data());
  int64_t n = 0;
  for (size_t at = inside.find(wanted); at != std::string_view::npos;
       at = inside.find(wanted, at + wanted.size()))
    ++n;
  return integer(n, text.has_data());
}

Value removeprefix(Runtime& rt, const Value& self, Arguments& args) {
  const Text& text = text_of(rt, self);
  const std::string_view prefix = need_string(rt, args[0], "the prefix").bytes;
  return substring(rt, text, text.bytes.starts_with(prefix) ? prefix.size() : 0, text.bytes.size());
}
Value removesuffix(Runtime& rt, const Value& self, Arguments& args) {
  const Text& text = text_of(rt, self);
  const std::string_view suffix = need_string(rt, args[0], "the suffix").bytes;
  return substring(rt, text, 0, text.bytes.size() - (text.bytes.ends_with(suffix) ? suffix.size() : 0));
}

Value format(Runtime& rt, const Value& self, Arguments& args) {
  return format_braces(rt, text_of(rt, self), args);
}

Value justify_to(Runtime& rt, const Value& self, const Arguments& args, Justify side) {
  char fill = ' ';
  if (args.has(1)) {
    const std::string& bytes = need_string(rt, args[1], "the fill character").bytes;
    if (bytes.size() != 1) fail("the fill character must be one ASCII character");
    fill = bytes[0];
  }
  return justify(rt, text_of(rt, self), need_integer(rt, args[0], "the width"), fill, side);
}
Value ljust(Runtime& rt, const Value& self, Arguments& args) {
  return justify_to(rt, self, args, Justify::kLeft);
}
Value rjust(Runtime& rt, const Value& self, Arguments& args) {
  return justify_to(rt, self, args, Justify::kRight);
}
Value center(Runtime& rt, const Value& self, Arguments& args) {
  return justify_to(rt, self, args, Justify::kCenter);
}

Value zfill(Runtime& rt, const Value& self, Arguments& args) {
  const Text& text = text_of(rt, self);
  const int64_t zeros =
      std::max<int64_t>(text.n_chars, need_integer(rt, args[0], "the width")) - text.n_chars;
  const size_t sign = text.bytes.starts_with('-') || text.bytes.starts_with('+') ? 1 : 0;
  TextBuilder out(rt.budget);
  out.add(text, 0, sign);
  out.add_repeated('0', static_cast<size_t>(zeros));
  out.add(text, sign, text.bytes.size());
  return rt.heap.make_string(out.finish());
}

constexpr Builtin kMethods[] = {
    {"capitalize", "/", capitalize},
    {"center", "/width fillchar?", center},
    {"count", "/sub start? end?", count},
    {"endswith", "/suffix start? end?", endswith},
    {"find", "/sub start? end?", find},
    {"format", "*", format},
    {"index", "/sub start? end?", index},
    {"join", "/iterable", join_method},
    {"ljust", "/width fillchar?", ljust},
    {"lower", "/", lower},
    {"lstrip", "/chars?", strip_left},
    {"partition", "/sep", partition},
    {"removeprefix", "/prefix", removeprefix},
    {"removesuffix", "/suffix", removesuffix},
    {"replace", "/old new count?", replace},
    {"rfind", "/sub start? end?", rfind},
    {"rindex", "/sub start? end?", rindex},
    {"rjust", "/width fillchar?", rjust},
    {"rpartition", "/sep", rpartition},
    {"rsplit", "sep? maxsplit?", rsplit},
    {"rstrip", "/chars?", strip_right},
    {"split", "sep? maxsplit?", split},
    {"splitlines", "keepends?", splitlines},
    {"startswith", "/prefix start? end?", startswith},
    {"strip", "/chars?", strip_both},
    {"swapcase", "/", swapcase},
    {"title", "/", title},
    {"upper", "/", upper},
    {"zfill", "/width", zfill},
};

}  // namespace

std::span<const Builtin> string_methods() { return kMethods; }

}  // namespace plow::jinja
