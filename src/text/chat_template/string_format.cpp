// Python's "..." % values and "...".format(values).
#include "text/chat_template/builtins.h"
#include "text/chat_template/format_spec.h"
#include "text/chat_template/runtime.h"
#include "text/chat_template/unicode.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

namespace plow::jinja {
namespace {

bool is_digit(char c) { return c >= '0' && c <= '9'; }

// repr() or ascii() of a value as a string, or its str().
Value convert(Runtime& rt, const Value& v, char conversion) {
  if (conversion == 's') return to_string(rt, v);
  TextBuilder repr(rt.budget);
  append_repr(rt, repr, v);
  const Text text = repr.finish();
  if (conversion == 'r') return rt.heap.make_string(text);
  TextBuilder ascii(rt.budget);
  for (size_t at = 0; at < text.bytes.size();) {
    const size_t begin = at;
    const auto c = static_cast<uint32_t>(next_char(text.bytes, at));
    if (c < 0x80) {
      ascii.add(text, begin, at);
    } else {
      ascii.add_mapped(c <= 0xff     ? fmt::format("\\x{:02x}", c)
                       : c <= 0xffff ? fmt::format("\\u{:04x}", c)
                                     : fmt::format("\\U{:08x}", c),
                       text, begin, at);
    }
  }
  return rt.heap.make_string(ascii.finish());
}

class PercentFormatter {
 public:
  PercentFormatter(Runtime& rt, const Text& format, const Value& arguments)
      : rt_(rt), format_(format), out_(rt.budget), is_data_(format.has_data()) {
    if (arguments.is(Kind::kTuple)) {
      values_ = rt.heap.sequence(arguments).items;
    } else {
      values_ = {arguments};
      if (arguments.is(Kind::kDict)) mapping_ = arguments;
      is_container_ = arguments.is(Kind::kDict) || arguments.is(Kind::kList) || arguments.is(Kind::kRange);
    }
  }

  Value run() {
    const std::string_view bytes = format_.bytes;
    while (at_ < bytes.size()) {
      const size_t percent = std::min(bytes.find('%', at_), bytes.size());
      out_.add(format_, at_, percent);
      at_ = percent;
      if (at_ < bytes.size()) conversion();
    }
    if (next_ < values_.size() && !is_container_)
      fail("not all arguments converted during string formatting");
    Text text = out_.finish();
    text.markup = format_.markup;
    return rt_.heap.make_string(std::move(text));
  }

 private:
  char peek() const {
    if (at_ >= format_.bytes.size()) fail("incomplete format");
    return format_.bytes[at_];
  }

  Value next_value() {
    if (keyed_) {
      keyed_ = false;
      return key_value_;
    }
    if (next_ >= values_.size()) fail("not enough arguments for format string");
    return values_[next_++];
  }

  int64_t number_or_star(int64_t max) {
    if (peek() == '*') {
      ++at_;
      const Value v = next_value();
      const int64_t n = need_integer(rt_, v, "*");
      if (n > max || n < -max) fail("the width of a format is too large");
      return n;
    }
    int64_t n = 0;
    while (is_digit(peek())) {
      n = n * 10 + (peek() - '0');
      if (n > max) fail("the width of a format is too large");
      ++at_;
    }
    return n;
  }

  void key() {
    if (mapping_.is(Kind::kAbsent)) fail("format requires a mapping");
    const size_t begin = ++at_;
    int open = 1;
    while (open > 0) {
      if (peek() == '(') ++open;
      if (peek() == ')') --open;
      ++at_;
    }
    const std::string_view name = std::string_view(format_.bytes).substr(begin, at_ - 1 - begin);
    const Value* value = find_in_dict(rt_, mapping_, name);
    if (!value) fail(fmt::format("there is no key {} for a format", quote(name)));
    key_value_ = *value;
    keyed_ = true;
    next_ = values_.size();
  }

  void conversion() {
    ++at_;  // the percent sign
    if (peek() == '(') key();
    FormatSpec spec;
    spec.align = '>';
    bool zero = false;
    for (; std::string_view("#0- +").find(peek()) != std::string_view::npos; ++at_) {
      if (peek() == '#') spec.alternate = true;
      if (peek() == '0') zero = true;
      if (peek() == '-') spec.align = '<';
      if (peek() == '+' || (peek() == ' ' && spec.sign != '+')) spec.sign = peek();
    }
    constexpr int64_t kMaxWidth = 1'000'000;
    constexpr int64_t kMaxPrecision = 1000;
    spec.width = number_or_star(kMaxWidth);
    if (spec.width < 0) {
      spec.width = -spec.width;
      spec.align = '<';
    }
    if (peek() == '.') {
      ++at_;
      spec.precision = static_cast<int>(std::max<int64_t>(0, number_or_star(kMaxPrecision)));
    }
    while (peek() == 'h' || peek() == 'l' || peek() == 'L') ++at_;
    spec.type = peek();
    const size_t type_at = at_++;
    if (spec.type == '%') return out_.add(format_, type_at, at_);
    if (zero && spec.align != '<') {
      spec.zero = true;
      spec.fill = "0";
      spec.align = '=';
    }
    value(next_value(), spec);
  }

  void value(const Value& v, FormatSpec spec) {
    FormatSpec padding = spec;
    padding.fill = " ";
    if (padding.align == '=') padding.align = '>';
    switch (spec.type) {
      case 's':
      case 'r':
      case 'a': {
        Value string = convert(rt_, v, spec.type);
        if (format_.markup) string = escape_html(rt_, string);
        return append_padded(rt_, out_, rt_.heap.text(string), padding, is_data_);
      }
      case 'c':
        if (v.is(Kind::kString)) {
          if (rt_.heap.text(v).n_chars != 1) fail("%c requires int or char");
          return append_padded(rt_, out_, rt_.heap.text(v), padding, is_data_);
        }
        spec.precision = -1;
        need_integer(rt_, v, "%c");
        return number(v, spec, padding, false);
      case 'd':
      case 'i':
      case 'u':
      case 'o':
      case 'x':
      case 'X':
        return number(v, spec, padding, false);
      case 'e':
      case 'E':
      case 'f':
      case 'F':
      case 'g':
      case 'G':
        return number(v, spec, padding, true);
      default:
        fail(fmt::format("unsupported format character '{}'", spec.type));
    }
  }

  void number(const Value& v, FormatSpec spec, FormatSpec padding, bool is_real) {
    if (v.is(Kind::kUndefined)) fail_undefined(rt_, v);
    if (!is_number(v))
      fail(fmt::format("%{} format: a real number is required, not {}", spec.type, type_name(rt_, v)));
    TextBuilder piece(rt_.budget);
    if (spec.type == 'c') {
      append_formatted(rt_, piece, v, {.fill = " ", .type = 'c'}, is_data_);
    } else if (is_real) {
      piece.add(format_real(as_real(v), spec), v.data || is_data_);
    } else {
      if (v.is(Kind::kFloat) && std::string_view("oxX").find(spec.type) != std::string_view::npos) {
        fail(fmt::format("%{} format: an integer is required, not float", spec.type));
      }
      if (v.is(Kind::kFloat) && !(std::fabs(v.real) < 0x1p63)) fail("an integer is beyond 64 bits");
      // A precision is the least number of digits.
      const int64_t integer = v.is(Kind::kFloat) ? static_cast<int64_t>(v.real) : as_integer(v);
      if (spec.precision >= 0) {
        spec.zero = true;
        spec.fill = "0";
        spec.align = '=';
        spec.width =
            spec.precision + ((integer < 0 || spec.sign != '-') ? 1 : 0) +
            (spec.alternate && std::string_view("oxX").find(spec.type) != std::string_view::npos ? 2 : 0);
      }
      piece.add(format_integer(integer, spec), v.data || is_data_);
    }
    padding.precision = -1;
    append_padded(rt_, out_, piece.finish(), padding, is_data_);
  }

  Runtime& rt_;
  const Text& format_;
  TextBuilder out_;
  const bool is_data_;
  std::vector<Value> values_;
  Value mapping_;
  bool is_container_ = false;
  size_t next_ = 0;
  bool keyed_ = false;
  Value key_value_;
  size_t at_ = 0;
};

class BraceFormatter {
 public:
  BraceFormatter(Runtime& rt, const Text& format, const Arguments& arguments)
      : rt_(rt), format_(format), arguments_(arguments), is_data_(format.has_data()) {}

  Value run() {
    TextBuilder out(rt_.budget);
    expand(0, format_.bytes.size(), out, 2);
    Text text = out.finish();
    text.markup = format_.markup;
    return rt_.heap.make_string(std::move(text));
  }

 private:
  // The format's bytes [at, end) with their fields filled in. `levels`: fields inside a field's specification
  // count too, once.
  void expand(size_t at, size_t end, TextBuilder& out, int levels) {
    if (levels == 0) fail("Max string recursion exceeded");
    const std::string_view bytes = std::string_view(format_.bytes).substr(0, end);
    while (at < end) {
      const size_t brace = std::min(bytes.find_first_of("{}", at), end);
      out.add(format_, at, brace);
      if (brace == end) return;
      if (brace + 1 < end && bytes[brace + 1] == bytes[brace]) {
        out.add(format_, brace, brace + 1);
        at = brace + 2;
        continue;
      }
      if (bytes[brace] == '}') fail("Single '}' encountered in format string");
      at = field(brace + 1, end, out, levels);
    }
  }

  // The field whose inside begins at `at`; returns what is behind its closing brace.
  size_t field(size_t at, size_t end, TextBuilder& out, int levels) {
    const std::string_view bytes = std::string_view(format_.bytes).substr(0, end);
    size_t close = at;
    for (int open = 1; open > 0; ++close) {
      if (close >= end) fail("expected '}' before end of string");
      if (bytes[close] == '{') ++open;
      if (bytes[close] == '}') --open;
    }
    --close;
    size_t name_end = at;
    bool in_brackets = false;
    while (name_end < close && (in_brackets || (bytes[name_end] != ':' && bytes[name_end] != '!'))) {
      if (bytes[name_end] == '[') in_brackets = true;
      if (bytes[name_end] == ']') in_brackets = false;
      ++name_end;
    }
    Value value = lookup(bytes.substr(at, name_end - at));
    size_t spec_begin = name_end;
    if (spec_begin < close && bytes[spec_begin] == '!') {
      if (spec_begin + 1 >= close) fail("end of string while looking for conversion specifier");
      const char conversion = bytes[spec_begin + 1];
      if (conversion != 'r' && conversion != 's' && conversion != 'a') {
        fail(fmt::format("Unknown conversion specifier '{}'", conversion));
      }
      value = convert(rt_, value, conversion);
      spec_begin += 2;
      if (spec_begin < close && bytes[spec_begin] != ':') fail("expected ':' after conversion specifier");
    }
    TextBuilder spec(rt_.budget);
    if (spec_begin < close) expand(spec_begin + 1, close, spec, levels - 1);
    append(value, spec.finish(), out);
    return close + 1;
  }

  void append(const Value& v, const Text& spec, TextBuilder& out) {
    TextBuilder piece(rt_.budget);
    if (spec.bytes.empty()) {
      append_str(rt_, piece, v);
    } else {
      append_formatted(rt_, piece, v, parse_format_spec(spec.bytes), spec.has_data() || is_data_);
    }
    if (!format_.markup) return out.add(piece.finish());
    const Value field = rt_.heap.make_string(piece.finish());
    out.add(rt_.heap.text(v.is(Kind::kString) && rt_.heap.text(v).markup ? field : escape_html(rt_, field)));
  }

  Value positional(size_t i) {
    if (i >= arguments_.positional.size()) {
      fail(fmt::format("Replacement index {} out of range for positional args tuple", i));
    }
    return arguments_.positional[i];
  }

  // `alone`: nothing follows the name. Only then may it be left out.
  Value first_value(std::string_view name, bool alone) {
    const bool is_number = !name.empty() && std::all_of(name.begin(), name.end(), is_digit);
    if (name.empty() && alone) {
      if (numbered_) fail("cannot switch from manual field specification to automatic field numbering");
      return positional(automatic_++);
    }
    if (is_number) {
      if (automatic_ > 0) fail("cannot switch from automatic field numbering to manual field specification");
      numbered_ = true;
      constexpr size_t kMaxDigits = 9;
      return positional(name.size() > kMaxDigits ? SIZE_MAX : std::stoul(std::string(name)));
    }
    for (const auto& [key, value] : arguments_.named) {
      if (key == name) return value;
    }
    fail(fmt::format("there is no argument {} for a format", quote(name)));
  }

  // "name.attribute[item]"
  Value lookup(std::string_view path) {
    const size_t first_end = std::min(path.find_first_of(".["), path.size());
    Value value = first_value(path.substr(0, first_end), first_end == path.size());
    path.remove_prefix(first_end);
    while (!path.empty()) {
      if (path[0] == '.') {
        const size_t end = std::min(path.find_first_of(".[", 1), path.size());
        if (end == 1) fail("Empty attribute in format string");
        value = get_attribute(rt_, value, path.substr(1, end - 1));
        path.remove_prefix(end);
        continue;
      }
      const size_t end = path.find(']');
      if (path[0] != '[' || end == std::string_view::npos || end == 1)
        fail("a field of a format is malformed");
      const std::string_view item = path.substr(1, end - 1);
      constexpr size_t kMaxDigits = 18;
      const bool is_index = item.size() <= kMaxDigits && std::all_of(item.begin(), item.end(), is_digit);
      value = get_item(rt_, value,
                       is_index ? integer(std::stoll(std::string(item))) : rt_.heap.make_string(item));
      path.remove_prefix(end + 1);
    }
    return value;
  }

  Runtime& rt_;
  const Text& format_;
  const Arguments& arguments_;
  const bool is_data_;
  size_t automatic_ = 0;
  bool numbered_ = false;
};

}  // namespace

Value format_percent(Runtime& rt, const Text& format, const Value& arguments) {
  return PercentFormatter(rt, format, arguments).run();
}

Value format_braces(Runtime& rt, const Text& format, const Arguments& arguments) {
  return BraceFormatter(rt, format, arguments).run();
}

}  // namespace plow::jinja
