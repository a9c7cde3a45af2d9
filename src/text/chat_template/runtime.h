// What Python's built-in operations do to the values of a template.
#pragma once

#include "text/chat_template/value.h"

#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace plow::jinja {

// The state of one rendering that every operation may need.
struct Runtime {
  explicit Runtime(const RenderLimits& limits) : budget(limits), heap(budget) {}
  Runtime(const Runtime&) = delete;

  Budget budget;
  Heap heap;
  std::optional<LocalTime> now;
};

// As in Python's messages: "str", "NoneType", "dict".
std::string_view type_name(Runtime& rt, const Value& v);

bool truthy(Runtime& rt, const Value& v);
bool is_number(const Value& v);      // bool, int or float: Python's Number
int64_t as_integer(const Value& v);  // REQUIRES bool or int
double as_real(const Value& v);      // REQUIRES bool, int or float

// str() and repr() (conversions.cpp).
void append_str(Runtime& rt, TextBuilder& out, const Value& v);
void append_repr(Runtime& rt, TextBuilder& out, const Value& v);
Value to_string(Runtime& rt, const Value& v);  // v itself when it is a string
std::string float_repr(double d);
std::string quote(std::string_view bytes);  // repr of a string, for messages

// == and so on (comparisons.cpp). `op` is one of < <= > >=.
bool equals(Runtime& rt, const Value& a, const Value& b);
bool ordered(Runtime& rt, Operator op, const Value& a, const Value& b);
bool contains(Runtime& rt, const Value& container, const Value& item);
bool is_hashable(Runtime& rt, const Value& v);
// The value of a key, or nullptr. A key that cannot be hashed is in no dict.
const Value* find_in_dict(Runtime& rt, const Value& dict, const Value& key);
const Value* find_in_dict(Runtime& rt, const Value& dict, std::string_view key);
void put_in_dict(Runtime& rt, Dict& dict, const Value& key, const Value& value);

// + - and so on (arithmetic.cpp).
Value binary(Runtime& rt, Operator op, const Value& a, const Value& b);
Value unary(Runtime& rt, Operator op, const Value& v);

// Containers (containers.cpp). Each throws what Python raises for a value that has none.
std::vector<Value> iterate(Runtime& rt, const Value& v);  // uses an iterator up
bool is_iterable(const Value& v);
std::optional<int64_t> length(Runtime& rt, const Value& v);
int64_t need_length(Runtime& rt, const Value& v);
Value get_attribute(Runtime& rt, const Value& object, std::string_view name);
Value get_item(Runtime& rt, const Value& object, const Value& key);
Value get_slice(Runtime& rt, const Value& object, const Value& start, const Value& stop, const Value& step);
// Names that begin with an underscore cannot be stored.
void check_namespace_attribute(std::string_view name);
Value substring(Runtime& rt, const Text& text, size_t begin, size_t end);  // bytes

// "'x' is undefined", as jinja2 words it.
std::string undefined_message(Runtime& rt, const Value& v);
[[noreturn]] void fail_undefined(Runtime& rt, const Value& v);

// Python's % on strings and str.format (string_format.cpp).
Value format_percent(Runtime& rt, const Text& format, const Value& arguments);
Value format_braces(Runtime& rt, const Text& format, const struct Arguments& arguments);

// markupsafe.escape: v as it is when it is Markup.
Value escape_html(Runtime& rt, const Value& v);

}  // namespace plow::jinja
