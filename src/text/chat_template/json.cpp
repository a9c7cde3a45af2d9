#include "text/chat_template/json.h"

#include "text/chat_template/unicode.h"

#include <boost/json/array.hpp>
#include <boost/json/object.hpp>
#include <fmt/format.h>

#include <algorithm>
#include <cmath>

namespace plow::jinja {
namespace {

Value string_from_json(Runtime& rt, std::string_view bytes, bool data) {
  if (!is_valid_utf8(bytes)) fail("a string of the conversation is not UTF-8");
  return rt.heap.make_string(bytes, data);
}

Value marked(Value v, bool data) {
  v.data = data;
  return v;
}

class JsonWriter {
 public:
  JsonWriter(Runtime& rt, const JsonStyle& style) : rt_(rt), style_(style), out_(rt.budget) {}

  Value run(const Value& v) {
    write(v, 0);
    return rt_.heap.make_string(out_.finish());
  }

 private:
  void write(const Value& v, size_t level) {
    const Budget::Depth depth(rt_.budget);
    switch (v.kind) {
      case Kind::kNone:
        return out_.add("null", v.data);
      case Kind::kBool:
        return out_.add(v.boolean ? "true" : "false", v.data);
      case Kind::kInteger:
      case Kind::kBigInteger:
        return append_repr(rt_, out_, v);
      case Kind::kFloat:
        return out_.add(float_json(v.real), v.data);
      case Kind::kString:
        return write_string(rt_.heap.text(v));
      case Kind::kList:
      case Kind::kTuple:
        return write_list(v, level);
      case Kind::kDict:
        return write_dict(v, level);
      default:
        fail(fmt::format("Object of type {} is not JSON serializable", type_name(rt_, v)));
    }
  }

  static std::string float_json(double d) {
    if (std::isnan(d)) return "NaN";
    if (std::isinf(d)) return d < 0 ? "-Infinity" : "Infinity";
    return float_repr(d);
  }

  // What a character becomes inside quotes; empty when it stays as it is.
  std::string escape(char32_t c) const {
    switch (c) {
      case '"':
        return "\\\"";
      case '\\':
        return "\\\\";
      case '\n':
        return "\\n";
      case '\r':
        return "\\r";
      case '\t':
        return "\\t";
      case '\f':
        return "\\f";
      case '\b':
        return "\\b";
      default:
        break;
    }
    if (c >= 0x20 && (c < 0x7f || !style_.ensure_ascii)) return {};
    const auto value = static_cast<uint32_t>(c);
    if (value <= 0xffff) return fmt::format("\\u{:04x}", value);
    const uint32_t above = value - 0x10000;
    return fmt::format("\\u{:04x}\\u{:04x}", 0xd800 + (above >> 10), 0xdc00 + (above & 0x3ff));
  }

  void write_string(const Text& text) {
    const bool all_data = text.data.size() == 1 && text.data[0].end - text.data[0].begin == text.bytes.size();
    out_.add("\"", all_data);
    size_t plain = 0;
    for (size_t at = 0; at < text.bytes.size();) {
      const size_t begin = at;
      const std::string escaped = escape(next_char(text.bytes, at));
      if (escaped.empty()) continue;
      out_.add(text, plain, begin);
      out_.add_mapped(escaped, text, begin, at);
      plain = at;
    }
    out_.add(text, plain, text.bytes.size());
    out_.add("\"", all_data);
  }

  void new_line(size_t level, bool data) {
    if (!style_.indent) return;
    out_.add("\n", data);
    for (size_t i = 0; i < level; ++i) out_.add(*style_.indent, data);
  }

  void write_list(const Value& v, size_t level) {
    const std::vector<Value>& items = rt_.heap.sequence(v).items;
    if (items.empty()) return out_.add("[]", v.data);
    out_.add("[", v.data);
    for (size_t i = 0; i < items.size(); ++i) {
      if (i > 0) out_.add(style_.item_separator, v.data);
      new_line(level + 1, v.data);
      write(items[i], level + 1);
    }
    new_line(level, v.data);
    out_.add("]", v.data);
  }

  void write_key(const Value& key) {
    if (key.is(Kind::kString)) return write_string(rt_.heap.text(key));
    if (!is_number(key) && !key.is(Kind::kNone) && !key.is(Kind::kBigInteger)) {
      fail(fmt::format("keys must be str, int, float, bool or None, not {}", type_name(rt_, key)));
    }
    out_.add("\"", key.data);
    write(key, 0);
    out_.add("\"", key.data);
  }

  void write_dict(const Value& v, size_t level) {
    auto entries = rt_.heap.dict(v).entries;
    if (entries.empty()) return out_.add("{}", v.data);
    if (style_.sort_keys) {
      std::stable_sort(entries.begin(), entries.end(), [this](const auto& a, const auto& b) {
        return ordered(rt_, Operator::kLess, a.first, b.first);
      });
    }
    out_.add("{", v.data);
    bool first = true;
    for (const auto& [key, value] : entries) {
      if (!first) out_.add(style_.item_separator, v.data);
      first = false;
      new_line(level + 1, v.data);
      write_key(key);
      out_.add(style_.key_separator, v.data);
      write(value, level + 1);
    }
    new_line(level, v.data);
    out_.add("}", v.data);
  }

  Runtime& rt_;
  const JsonStyle& style_;
  TextBuilder out_;
};

}  // namespace

Value from_json(Runtime& rt, const boost::json::value& json, bool data) {
  const Budget::Depth depth(rt.budget);
  switch (json.kind()) {
    case boost::json::kind::null:
      return marked(none(), data);
    case boost::json::kind::bool_:
      return marked(boolean(json.get_bool()), data);
    case boost::json::kind::int64:
      return integer(json.get_int64(), data);
    case boost::json::kind::uint64: {
      const uint64_t value = json.get_uint64();
      if (value <= static_cast<uint64_t>(INT64_MAX)) return integer(static_cast<int64_t>(value), data);
      Value big = rt.heap.make_string(fmt::format("{}", value), data);
      big.kind = Kind::kBigInteger;
      return big;
    }
    case boost::json::kind::double_:
      return real(json.get_double(), data);
    case boost::json::kind::string:
      return string_from_json(rt, json.get_string(), data);
    case boost::json::kind::array: {
      std::vector<Value> items;
      for (const boost::json::value& item : json.get_array()) items.push_back(from_json(rt, item, data));
      return marked(rt.heap.make_list(std::move(items)), data);
    }
    case boost::json::kind::object: {
      Dict dict;  // the keys of an object are distinct
      for (const auto& [key, value] : json.get_object()) {
        const Value name = string_from_json(rt, key, data);
        dict.entries.emplace_back(name, from_json(rt, value, data));
      }
      return marked(rt.heap.make_dict(std::move(dict)), data);
    }
  }
  return none();
}

Value to_json(Runtime& rt, const Value& v, const JsonStyle& style) { return JsonWriter(rt, style).run(v); }

}  // namespace plow::jinja
