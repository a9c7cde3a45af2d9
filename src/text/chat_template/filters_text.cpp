// Filters on strings.
#include "text/chat_template/builtins.h"
#include "text/chat_template/json.h"
#include "text/chat_template/runtime.h"
#include "text/chat_template/string_operations.h"
#include "text/chat_template/unicode.h"

#include <fmt/format.h>

#include <algorithm>

namespace plow::jinja {
namespace {

// soft_str: a string as it is, anything else by str().
const Text& soft_text(Runtime& rt, const Value& v) { return rt.heap.text(to_string(rt, v)); }

Value with_markup(Runtime& rt, const Text& text, bool markup) {
  TextBuilder copy(rt.budget);
  copy.add(text);
  Text result = copy.finish();
  result.markup = markup;
  return rt.heap.make_string(std::move(result));
}

Value upper(Runtime& rt, const Value& self, Arguments&) {
  return map_case(rt, soft_text(rt, self), Case::kUpper);
}
Value lower(Runtime& rt, const Value& self, Arguments&) {
  return map_case(rt, soft_text(rt, self), Case::kLower);
}
Value capitalize(Runtime& rt, const Value& self, Arguments&) {
  return map_case(rt, soft_text(rt, self), Case::kCapitalize);
}
Value title(Runtime& rt, const Value& self, Arguments&) {
  return map_case(rt, soft_text(rt, self), Case::kJinjaTitle);
}

Value trim(Runtime& rt, const Value& self, Arguments& args) {
  return strip(rt, soft_text(rt, self), args[0], true, true);
}

Value string(Runtime& rt, const Value& self, Arguments&) { return to_string(rt, self); }

Value replace(Runtime& rt, const Value& self, Arguments& args) {
  const int64_t count = args.has(2) && !args[2].is(Kind::kNone) ? need_integer(rt, args[2], "count") : -1;
  const Text& text = rt.heap.text(with_markup(rt, soft_text(rt, self), false));
  return replace_text(rt, text, soft_text(rt, args[0]), soft_text(rt, args[1]), count);
}

Value indent(Runtime& rt, const Value& self, Arguments& args) {
  TextBuilder width(rt.budget);
  if (args.has(0) && args[0].is(Kind::kString)) {
    width.add(rt.heap.text(args[0]));
  } else {
    const int64_t n = args.has(0) ? need_integer(rt, args[0], "width") : 4;
    width.add_repeated(' ', static_cast<size_t>(std::max<int64_t>(n, 0)));
  }
  const Text indention = width.finish();
  const bool first = args.has(1) && truthy(rt, args[1]);
  const bool blank = args.has(2) && truthy(rt, args[2]);
  const Text& text = need_string(rt, self, "what is indented");
  TextBuilder out(rt.budget);
  const std::vector<ByteRange> lines = split_lines(rt, text, true);
  for (size_t i = 0; i < lines.size(); ++i) {
    if (i > 0) out.add("\n", text.has_data());
    const bool is_empty = lines[i].begin == lines[i].end;
    if (i == 0 ? first : blank || !is_empty) out.add(indention);
    out.add(text, lines[i].begin, lines[i].end);
  }
  Text result = out.finish();
  result.markup = text.markup;
  return rt.heap.make_string(std::move(result));
}

Value center(Runtime& rt, const Value& self, Arguments& args) {
  constexpr int64_t kDefaultWidth = 80;
  return justify(rt, soft_text(rt, self), args.has(0) ? need_integer(rt, args[0], "width") : kDefaultWidth,
                 ' ', Justify::kCenter);
}

Value truncate(Runtime& rt, const Value& self, Arguments& args) {
  // Defaults of jinja2: 255 characters, and five more before anything is cut.
  const int64_t length = args.has(0) ? need_integer(rt, args[0], "length") : 255;
  const bool kill_words = args.has(1) && truthy(rt, args[1]);
  const Value end = args.has(2) ? args[2] : rt.heap.make_string("...");
  const int64_t leeway = args.has(3) && !args[3].is(Kind::kNone) ? need_integer(rt, args[3], "leeway") : 5;
  const Text& text = need_string(rt, self, "what is truncated");
  const Text& ending = need_string(rt, end, "end");
  if (length < ending.n_chars) fail(fmt::format("expected length >= {}, got {}", ending.n_chars, length));
  if (leeway < 0) fail(fmt::format("expected leeway >= 0, got {}", leeway));
  if (text.n_chars - leeway <= length) return self;
  size_t cut = char_offset(text.bytes, static_cast<size_t>(length - ending.n_chars));
  if (!kill_words) {
    const size_t space = std::string_view(text.bytes).substr(0, cut).rfind(' ');
    if (space != std::string_view::npos) cut = space;
  }
  TextBuilder out(rt.budget);
  out.add(text, 0, cut);
  out.add(ending);
  return rt.heap.make_string(out.finish());
}

Value wordcount(Runtime& rt, const Value& self, Arguments&) {
  const Text& text = soft_text(rt, self);
  rt.budget.touch(text.bytes.size());
  int64_t n = 0;
  bool in_word = false;
  for (size_t at = 0; at < text.bytes.size();) {
    const char32_t c = next_char(text.bytes, at);
    const bool is_word = c == '_' || is_alpha(c) || is_numeric(c);
    n += is_word && !in_word;
    in_word = is_word;
  }
  return integer(n, text.has_data());
}

Value format(Runtime& rt, const Value& self, Arguments& args) {
  if (!args.positional.empty() && !args.named.empty()) {
    fail("can't handle positional and keyword arguments at the same time");
  }
  const Text& text = soft_text(rt, self);
  if (args.named.empty()) return format_percent(rt, text, rt.heap.make_list(args.positional, Kind::kTuple));
  Dict dict;
  for (const auto& [name, value] : args.named) dict.entries.emplace_back(rt.heap.make_string(name), value);
  return format_percent(rt, text, rt.heap.make_dict(std::move(dict)));
}

Value escape(Runtime& rt, const Value& self, Arguments&) { return escape_html(rt, self); }

Value force_escape(Runtime& rt, const Value& self, Arguments&) {
  return escape_html(rt, with_markup(rt, soft_text(rt, self), false));
}

Value safe(Runtime& rt, const Value& self, Arguments&) { return with_markup(rt, soft_text(rt, self), true); }

void append_url_quoted(TextBuilder& out, const Text& text, bool in_query) {
  constexpr std::string_view kKept = "_.-~";  // and letters, digits, and '/' outside of a query
  for (size_t i = 0; i < text.bytes.size(); ++i) {
    const auto c = static_cast<unsigned char>(text.bytes[i]);
    const bool keep = (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') ||
                      (c < 0x80 && kKept.find(static_cast<char>(c)) != std::string_view::npos) ||
                      (c == '/' && !in_query);
    const std::string quoted = in_query && c == ' ' ? "+" : fmt::format("%{:02X}", c);
    out.add_mapped(keep ? std::string_view(text.bytes).substr(i, 1) : std::string_view(quoted), text, i,
                   i + 1);
  }
}

Value urlencode(Runtime& rt, const Value& self, Arguments&) {
  TextBuilder out(rt.budget);
  if (self.is(Kind::kString) || !is_iterable(self)) {
    append_url_quoted(out, soft_text(rt, self), false);
    return rt.heap.make_string(out.finish());
  }
  std::vector<std::pair<Value, Value>> pairs;
  if (self.is(Kind::kDict)) {
    pairs = rt.heap.dict(self).entries;
  } else {
    for (const Value& item : iterate(rt, self)) {
      const std::vector<Value> pair = iterate(rt, item);
      if (pair.size() != 2) fail("urlencode needs pairs");
      pairs.emplace_back(pair[0], pair[1]);
    }
  }
  for (size_t i = 0; i < pairs.size(); ++i) {
    if (i > 0) out.add("&", false);
    append_url_quoted(out, soft_text(rt, pairs[i].first), true);
    out.add("=", false);
    append_url_quoted(out, soft_text(rt, pairs[i].second), true);
  }
  return rt.heap.make_string(out.finish());
}

// transformers' tojson: json.dumps with ensure_ascii off and nothing escaped for HTML.
Value tojson(Runtime& rt, const Value& self, Arguments& args) {
  JsonStyle style;
  style.ensure_ascii = args.has(0) && truthy(rt, args[0]);
  style.sort_keys = args.has(3) && truthy(rt, args[3]);
  if (args.has(1) && args[1].is(Kind::kString)) {
    style.indent = rt.heap.bytes(args[1]);
  } else if (args.has(1) && !args[1].is(Kind::kNone)) {
    constexpr int64_t kMaxIndent = 1000;
    const int64_t n = need_integer(rt, args[1], "indent");
    if (n > kMaxIndent) fail("the indent of tojson is too large");
    style.indent = std::string(static_cast<size_t>(std::max<int64_t>(n, 0)), ' ');
  }
  if (style.indent) style.item_separator = ",";
  if (args.has(2) && !args[2].is(Kind::kNone)) {
    const std::vector<Value> separators = iterate(rt, args[2]);
    if (separators.size() != 2)
      fail("the separators of tojson are a pair: one between items, one behind keys");
    style.item_separator = need_string(rt, separators[0], "a separator").bytes;
    style.key_separator = need_string(rt, separators[1], "a separator").bytes;
  }
  return to_json(rt, self, style);
}

constexpr Builtin kFilters[] = {
    {"capitalize", "", capitalize},
    {"center", "width?", center},
    {"e", "", escape},
    {"escape", "", escape},
    {"forceescape", "", force_escape},
    {"format", "*", format},
    {"indent", "width? first? blank?", indent},
    {"lower", "", lower},
    {"replace", "old new count?", replace},
    {"safe", "", safe},
    {"string", "", string},
    {"title", "", title},
    {"tojson", "ensure_ascii? indent? separators? sort_keys?", tojson},
    {"trim", "chars?", trim},
    {"truncate", "length? killwords? end? leeway?", truncate},
    {"upper", "", upper},
    {"urlencode", "", urlencode},
    {"wordcount", "", wordcount},
};

}  // namespace

std::span<const Builtin> text_filters() { return kFilters; }

}  // namespace plow::jinja
