// str() and repr(), as Python 3 prints.
#include "text/chat_template/builtins.h"
#include "text/chat_template/runtime.h"
#include "text/chat_template/unicode.h"

#include <fmt/format.h>

#include <charconv>
#include <cmath>

namespace plow::jinja {
namespace {

// What repr writes for a character inside quotes; empty when it stays as it is.
std::string repr_escape(char32_t c, char quote_mark) {
  if (c == static_cast<char32_t>(quote_mark)) return fmt::format("\\{}", quote_mark);
  if (c == '\\') return "\\\\";
  if (c == '\n') return "\\n";
  if (c == '\r') return "\\r";
  if (c == '\t') return "\\t";
  if (is_printable(c)) return {};
  const auto value = static_cast<uint32_t>(c);
  if (value <= 0xff) return fmt::format("\\x{:02x}", value);
  return value <= 0xffff ? fmt::format("\\u{:04x}", value) : fmt::format("\\U{:08x}", value);
}

char quote_mark_for(std::string_view bytes) {
  return bytes.find('\'') != std::string_view::npos && bytes.find('"') == std::string_view::npos ? '"' : '\'';
}

void append_string_repr(TextBuilder& out, const Text& text) {
  const bool all_data = text.data.size() == 1 && text.data[0].end - text.data[0].begin == text.bytes.size();
  const char mark = quote_mark_for(text.bytes);
  if (text.markup) out.add("Markup(", all_data);
  out.add(std::string_view(&mark, 1), all_data);
  size_t plain = 0;  // start of what is copied as it is
  for (size_t at = 0; at < text.bytes.size();) {
    const size_t begin = at;
    const std::string escape = repr_escape(next_char(text.bytes, at), mark);
    if (escape.empty()) continue;
    out.add(text, plain, begin);
    out.add_mapped(escape, text, begin, at);
    plain = at;
  }
  out.add(text, plain, text.bytes.size());
  out.add(std::string_view(&mark, 1), all_data);
  if (text.markup) out.add(")", all_data);
}

void append_items(Runtime& rt, TextBuilder& out, const std::vector<Value>& items, bool data) {
  for (size_t i = 0; i < items.size(); ++i) {
    if (i > 0) out.add(", ", data);
    append_repr(rt, out, items[i]);
  }
}

void append_dict_repr(Runtime& rt, TextBuilder& out, const Value& v) {
  out.add("{", v.data);
  bool first = true;
  for (const auto& [key, value] : rt.heap.dict(v).entries) {
    if (!first) out.add(", ", v.data);
    first = false;
    append_repr(rt, out, key);
    out.add(": ", v.data);
    append_repr(rt, out, value);
  }
  out.add("}", v.data);
}

void append_sequence_repr(Runtime& rt, TextBuilder& out, const Value& v) {
  const Sequence& sequence = rt.heap.sequence(v);
  if (v.is(Kind::kTuple)) {
    out.add("(", v.data);
    append_items(rt, out, sequence.items, v.data);
    out.add(sequence.items.size() == 1 ? ",)" : ")", v.data);
    return;
  }
  if (sequence.view) out.add(fmt::format("{}(", sequence.view), v.data);
  out.add("[", v.data);
  append_items(rt, out, sequence.items, v.data);
  out.add(sequence.view ? "])" : "]", v.data);
}

std::string range_repr(const Range& range) {
  return range.step == 1 ? fmt::format("range({}, {})", range.start, range.stop)
                         : fmt::format("range({}, {}, {})", range.start, range.stop, range.step);
}

}  // namespace

// The shortest digits that read back as the same double, with an exponent below 1e-4 and from 1e16 on.
std::string float_repr(double d) {
  if (std::isnan(d)) return "nan";
  if (std::isinf(d)) return d < 0 ? "-inf" : "inf";
  char buffer[32];
  const auto end = std::to_chars(buffer, buffer + sizeof(buffer), d, std::chars_format::scientific).ptr;
  const std::string_view scientific(buffer, static_cast<size_t>(end - buffer));
  const size_t e = scientific.find('e');
  int exponent = 0;
  const char* digits = scientific.data() + e + (scientific[e + 1] == '+' ? 2 : 1);
  std::from_chars(digits, end, exponent);
  constexpr int kFirstExponent = 16;
  if (exponent >= -4 && exponent < kFirstExponent) {
    char fixed[64];
    const auto fixed_end = std::to_chars(fixed, fixed + sizeof(fixed), d, std::chars_format::fixed).ptr;
    std::string result(fixed, fixed_end);
    if (result.find('.') == std::string::npos) result += ".0";
    return result;
  }
  return std::string(scientific);
}

std::string quote(std::string_view bytes) {
  const char mark = quote_mark_for(bytes);
  std::string result(1, mark);
  for (size_t at = 0; at < bytes.size();) {
    const size_t begin = at;
    const std::string escape = repr_escape(next_char(bytes, at), mark);
    result += escape.empty() ? bytes.substr(begin, at - begin) : escape;
  }
  return result + mark;
}

void append_repr(Runtime& rt, TextBuilder& out, const Value& v) {
  const Budget::Depth depth(rt.budget);
  switch (v.kind) {
    case Kind::kAbsent:
    case Kind::kUndefined:
      return out.add("Undefined", false);
    case Kind::kNone:
      return out.add("None", v.data);
    case Kind::kBool:
      return out.add(v.boolean ? "True" : "False", v.data);
    case Kind::kInteger:
      return out.add(fmt::format("{}", v.integer), v.data);
    case Kind::kBigInteger:
      return out.add(rt.heap.text(v));
    case Kind::kFloat:
      return out.add(float_repr(v.real), v.data);
    case Kind::kString:
      return append_string_repr(out, rt.heap.text(v));
    case Kind::kList:
    case Kind::kTuple:
    case Kind::kView:
      return append_sequence_repr(rt, out, v);
    case Kind::kDict:
      return append_dict_repr(rt, out, v);
    case Kind::kRange:
      return out.add(range_repr(rt.heap.range(v)), v.data);
    case Kind::kNamespace:
      out.add("<Namespace ", false);
      append_dict_repr(rt, out, v);
      return out.add(">", false);
    case Kind::kLoop:
      return out.add(
          fmt::format("<LoopContext {}/{}>", rt.heap.loop(v).index0 + 1, rt.heap.loop(v).items.size()),
          false);
    default:
      return out.add(fmt::format("<{}>", type_name(rt, v)), false);  // Python prints an address
  }
}

void append_str(Runtime& rt, TextBuilder& out, const Value& v) {
  if (v.is(Kind::kString)) return out.add(rt.heap.text(v));
  if (v.is(Kind::kUndefined)) return;
  append_repr(rt, out, v);
}

Value to_string(Runtime& rt, const Value& v) {
  if (v.is(Kind::kString)) return v;
  TextBuilder out(rt.budget);
  append_str(rt, out, v);
  return rt.heap.make_string(out.finish());
}

Value escape_html(Runtime& rt, const Value& v) {
  const Value string = to_string(rt, v);
  const Text& text = rt.heap.text(string);
  if (text.markup) return string;
  TextBuilder out(rt.budget);
  size_t plain = 0;
  for (size_t i = 0; i < text.bytes.size(); ++i) {
    const char c = text.bytes[i];
    const std::string_view escaped = c == '&'    ? "&amp;"
                                     : c == '<'  ? "&lt;"
                                     : c == '>'  ? "&gt;"
                                     : c == '\'' ? "&#39;"
                                     : c == '"'  ? "&#34;"
                                                 : "";
    if (escaped.empty()) continue;
    out.add(text, plain, i);
    out.add_mapped(escaped, text, i, i + 1);
    plain = i + 1;
  }
  out.add(text, plain, text.bytes.size());
  Text result = out.finish();
  result.markup = true;
  return rt.heap.make_string(std::move(result));
}

}  // namespace plow::jinja
