// Truth, length, iteration, attributes, items and slices.
#include "text/chat_template/builtins.h"
#include "text/chat_template/runtime.h"
#include "text/chat_template/unicode.h"

#include <fmt/format.h>

#include <algorithm>

namespace plow::jinja {
namespace {

// MAX_RANGE of jinja2's sandbox bounds how long a range that a template walks can be (globals.cpp checks it),
// so that a range can be made into a vector.
std::vector<Value> range_items(Runtime& rt, const Value& v) {
  const Range& range = rt.heap.range(v);
  const int64_t n = range.size();
  rt.budget.touch(static_cast<uint64_t>(n));
  std::vector<Value> items;
  items.reserve(static_cast<size_t>(n));
  for (int64_t i = 0; i < n; ++i) items.push_back(integer(range.at(i), v.data));
  return items;
}

std::vector<Value> characters(Runtime& rt, const Value& v) {
  const Text& text = rt.heap.text(v);
  std::vector<Value> items;
  items.reserve(text.n_chars);
  for (size_t at = 0; at < text.bytes.size();) {
    const size_t begin = at;
    next_char(text.bytes, at);
    items.push_back(substring(rt, text, begin, at));
  }
  return items;
}

// loop.NAME
Value loop_attribute(Runtime& rt, const Value& object, std::string_view name) {
  const Loop& loop = rt.heap.loop(object);
  const auto index = static_cast<int64_t>(loop.index0);
  const auto size = static_cast<int64_t>(loop.items.size());
  if (name == "index") return integer(index + 1);
  if (name == "index0") return integer(index);
  if (name == "revindex") return integer(size - index);
  if (name == "revindex0") return integer(size - index - 1);
  if (name == "first") return boolean(index == 0);
  if (name == "last") return boolean(index + 1 == size);
  if (name == "length") return integer(size);
  if (name == "depth") return integer(1);
  if (name == "depth0") return integer(0);
  if (name == "previtem") {
    if (index > 0) return loop.items[loop.index0 - 1];
    return rt.heap.make_undefined({{}, {}, "there is no previous item"});
  }
  if (name == "nextitem") {
    if (index + 1 < size) return loop.items[loop.index0 + 1];
    return rt.heap.make_undefined({{}, {}, "there is no next item"});
  }
  return {};
}

// Attributes that are no methods; absent when there is none of that name.
Value special_attribute(Runtime& rt, const Value& object, std::string_view name) {
  switch (object.kind) {
    case Kind::kNamespace: {
      const Value* value = find_in_dict(rt, object, name);
      return value ? *value : Value();
    }
    case Kind::kLoop:
      return loop_attribute(rt, object, name);
    case Kind::kTuple: {
      const Sequence& sequence = rt.heap.sequence(object);
      if (sequence.is_group && name == "grouper") return sequence.items[0];
      if (sequence.is_group && name == "list") return sequence.items[1];
      return {};
    }
    case Kind::kCycler: {
      const Cycler& cycler = rt.heap.cycler(object);
      return name == "current" ? cycler.items[cycler.at] : Value();
    }
    default:
      return {};
  }
}

// What getattr() finds; absent when it finds nothing.
Value python_attribute(Runtime& rt, const Value& object, std::string_view name) {
  const Value special = special_attribute(rt, object, name);
  if (!special.is(Kind::kAbsent)) return special;
  if (is_mutator(object.kind, name)) {
    return rt.heap.make_undefined({object, rt.heap.make_string(name), nullptr, true});
  }
  const Builtin* method = find_method(object.kind, name);
  return method ? rt.heap.make_method(object, *method) : Value();
}

Value missing(Runtime& rt, const Value& object, const Value& name) {
  return rt.heap.make_undefined({object, name});
}

// Python's rules for the bounds of a slice.
struct SliceBounds {
  int64_t start = 0;
  int64_t stop = 0;
  int64_t step = 1;
};

int64_t slice_index(Runtime& rt, const Value& v, int64_t absent) {
  if (v.is(Kind::kAbsent) || v.is(Kind::kNone)) return absent;
  if (!v.is(Kind::kInteger) && !v.is(Kind::kBool)) {
    if (v.is(Kind::kUndefined)) fail_undefined(rt, v);
    fail("slice indices must be integers or None");
  }
  return as_integer(v);
}

SliceBounds slice_bounds(Runtime& rt, int64_t size, const Value& start, const Value& stop,
                         const Value& step) {
  SliceBounds bounds;
  bounds.step = slice_index(rt, step, 1);
  if (bounds.step == 0) fail("slice step cannot be zero");
  const bool forward = bounds.step > 0;
  const auto clamp = [&](int64_t i) {
    if (i < 0) i += size;  // both are far from the ends of int64 or i stays negative
    if (i < 0) return forward ? int64_t{0} : int64_t{-1};
    return i >= size ? (forward ? size : size - 1) : i;
  };
  const bool has_start = !start.is(Kind::kAbsent) && !start.is(Kind::kNone);
  const bool has_stop = !stop.is(Kind::kAbsent) && !stop.is(Kind::kNone);
  bounds.start = has_start ? clamp(slice_index(rt, start, 0)) : (forward ? 0 : size - 1);
  bounds.stop = has_stop ? clamp(slice_index(rt, stop, 0)) : (forward ? size : -1);
  return bounds;
}

// Calls visit(i) for the indices of a slice, in its order.
template <class Visit>
void for_each_index(const SliceBounds& bounds, Visit visit) {
  int64_t i = bounds.start;
  while (bounds.step > 0 ? i < bounds.stop : i > bounds.stop) {
    visit(i);
    if (__builtin_add_overflow(i, bounds.step, &i)) return;
  }
}

Value string_slice(Runtime& rt, const Text& text, const SliceBounds& bounds) {
  rt.budget.touch(text.bytes.size());
  TextBuilder out(rt.budget);
  if (bounds.step == 1) {
    if (bounds.start < bounds.stop) {
      const size_t begin = char_offset(text.bytes, static_cast<size_t>(bounds.start));
      const size_t n = static_cast<size_t>(bounds.stop - bounds.start);
      out.add(text, begin, begin + char_offset(std::string_view(text.bytes).substr(begin), n));
    }
  } else {
    std::vector<size_t> offsets;
    offsets.reserve(text.n_chars + size_t{1});
    for (size_t at = 0; at < text.bytes.size();) {
      offsets.push_back(at);
      next_char(text.bytes, at);
    }
    offsets.push_back(text.bytes.size());
    for_each_index(bounds, [&](int64_t i) {
      out.add(text, offsets[static_cast<size_t>(i)], offsets[static_cast<size_t>(i) + 1]);
    });
  }
  Text result = out.finish();
  result.markup = text.markup;
  return rt.heap.make_string(std::move(result));
}

}  // namespace

std::string_view type_name(Runtime& rt, const Value& v) {
  switch (v.kind) {
    case Kind::kAbsent:
    case Kind::kUndefined:
      return "Undefined";
    case Kind::kNone:
      return "NoneType";
    case Kind::kBool:
      return "bool";
    case Kind::kInteger:
    case Kind::kBigInteger:
      return "int";
    case Kind::kFloat:
      return "float";
    case Kind::kString:
      return rt.heap.text(v).markup ? "Markup" : "str";
    case Kind::kList:
      return "list";
    case Kind::kTuple:
      return "tuple";
    case Kind::kDict:
      return "dict";
    case Kind::kView:
      return rt.heap.sequence(v).view;
    case Kind::kRange:
      return "range";
    case Kind::kIterator:
      return "generator";
    case Kind::kNamespace:
      return "Namespace";
    case Kind::kLoop:
      return "LoopContext";
    case Kind::kMacro:
      return "Macro";
    case Kind::kMethod:
    case Kind::kFunction:
      return "function";
    case Kind::kCycler:
      return "Cycler";
    case Kind::kJoiner:
      return "Joiner";
  }
  return "object";
}

std::string undefined_message(Runtime& rt, const Value& v) {
  const UndefinedInfo& info = rt.heap.undefined(v);
  if (info.hint) return info.hint;
  TextBuilder name(rt.budget);
  if (!info.name.is(Kind::kAbsent)) append_repr(rt, name, info.name);
  if (info.owner.is(Kind::kAbsent)) return fmt::format("{} is undefined", name.bytes());
  if (info.unsafe) {
    return fmt::format(
        "access to attribute {} of '{}' object is unsafe: templates cannot change the values they are given",
        name.bytes(), type_name(rt, info.owner));
  }
  const std::string owner =
      info.owner.is(Kind::kNone) ? "None" : fmt::format("{} object", type_name(rt, info.owner));
  if (!info.name.is(Kind::kString)) return fmt::format("{} has no element {}", owner, name.bytes());
  return fmt::format("'{}' has no attribute {}", owner, name.bytes());
}

void fail_undefined(Runtime& rt, const Value& v) { fail(undefined_message(rt, v)); }

bool truthy(Runtime& rt, const Value& v) {
  switch (v.kind) {
    case Kind::kAbsent:
    case Kind::kUndefined:
    case Kind::kNone:
      return false;
    case Kind::kBool:
      return v.boolean;
    case Kind::kInteger:
      return v.integer != 0;
    case Kind::kFloat:
      return v.real != 0;
    case Kind::kNamespace:
      return true;
    default: {
      const std::optional<int64_t> n = length(rt, v);
      return !n || *n != 0;
    }
  }
}

std::optional<int64_t> length(Runtime& rt, const Value& v) {
  switch (v.kind) {
    case Kind::kUndefined:
      return 0;
    case Kind::kString:
      return rt.heap.text(v).n_chars;
    case Kind::kList:
    case Kind::kTuple:
    case Kind::kView:
      return static_cast<int64_t>(rt.heap.sequence(v).items.size());
    case Kind::kDict:
      return static_cast<int64_t>(rt.heap.dict(v).entries.size());
    case Kind::kRange:
      return rt.heap.range(v).size();
    case Kind::kLoop:
      return static_cast<int64_t>(rt.heap.loop(v).items.size());
    default:
      return std::nullopt;
  }
}

int64_t need_length(Runtime& rt, const Value& v) {
  const std::optional<int64_t> n = length(rt, v);
  if (!n) fail(fmt::format("object of type '{}' has no len()", type_name(rt, v)));
  return *n;
}

bool is_iterable(const Value& v) {
  switch (v.kind) {
    case Kind::kUndefined:
    case Kind::kString:
    case Kind::kList:
    case Kind::kTuple:
    case Kind::kDict:
    case Kind::kView:
    case Kind::kRange:
    case Kind::kIterator:
      return true;
    default:
      return false;
  }
}

std::vector<Value> iterate(Runtime& rt, const Value& v) {
  switch (v.kind) {
    case Kind::kUndefined:
      return {};
    case Kind::kString:
      return characters(rt, v);
    case Kind::kList:
    case Kind::kTuple:
    case Kind::kView:
      rt.budget.touch(rt.heap.sequence(v).items.size());
      return rt.heap.sequence(v).items;
    case Kind::kRange:
      return range_items(rt, v);
    case Kind::kDict: {
      std::vector<Value> keys;
      rt.budget.touch(rt.heap.dict(v).entries.size());
      for (const auto& [key, value] : rt.heap.dict(v).entries) keys.push_back(key);
      return keys;
    }
    case Kind::kIterator: {
      Sequence& sequence = rt.heap.sequence(v);
      rt.budget.touch(sequence.items.size());
      std::vector<Value> rest(sequence.items.begin() + static_cast<int64_t>(sequence.next),
                              sequence.items.end());
      sequence.next = sequence.items.size();
      return rest;
    }
    default:
      fail(fmt::format("'{}' object is not iterable", type_name(rt, v)));
  }
}

void check_namespace_attribute(std::string_view name) {
  if (name.starts_with('_')) {
    fail(fmt::format(
        "a namespace cannot have the attribute '{}': names with an underscore in front are refused", name));
  }
}

Value substring(Runtime& rt, const Text& text, size_t begin, size_t end) {
  TextBuilder out(rt.budget);
  out.add(text, begin, end);
  Text result = out.finish();
  result.markup = text.markup;
  return rt.heap.make_string(std::move(result));
}

// jinja2's environment.getattr: the attribute, else the item.
Value get_attribute(Runtime& rt, const Value& object, std::string_view name) {
  if (object.is(Kind::kUndefined)) fail_undefined(rt, object);
  const Value attribute = name.starts_with('_') ? Value() : python_attribute(rt, object, name);
  if (!attribute.is(Kind::kAbsent)) return attribute;
  if (object.is(Kind::kDict)) {
    if (const Value* value = find_in_dict(rt, object, name)) return *value;
  }
  return missing(rt, object, rt.heap.make_string(name));
}

// jinja2's environment.getitem: the item, else, for a string, the attribute.
Value get_item(Runtime& rt, const Value& object, const Value& key) {
  if (object.is(Kind::kUndefined)) fail_undefined(rt, object);
  const bool is_index = key.is(Kind::kInteger) || key.is(Kind::kBool);
  if (object.is(Kind::kDict)) {
    if (const Value* value = find_in_dict(rt, object, key)) return *value;
  } else if (is_index && (object.is(Kind::kList) || object.is(Kind::kTuple) || object.is(Kind::kString) ||
                          object.is(Kind::kRange))) {
    const int64_t size = *length(rt, object);
    const int64_t index = as_integer(key) < 0 ? as_integer(key) + size : as_integer(key);
    if (index < 0 || index >= size) return missing(rt, object, key);
    if (object.is(Kind::kRange)) {
      const Range& range = rt.heap.range(object);
      return integer(range.at(index), object.data);
    }
    if (!object.is(Kind::kString)) return rt.heap.sequence(object).items[static_cast<size_t>(index)];
    return string_slice(rt, rt.heap.text(object), {index, index + 1, 1});
  }
  if (key.is(Kind::kString) && !rt.heap.bytes(key).starts_with('_')) {
    const Value attribute = python_attribute(rt, object, rt.heap.bytes(key));
    if (!attribute.is(Kind::kAbsent)) return attribute;
  }
  return missing(rt, object, key);
}

Value get_slice(Runtime& rt, const Value& object, const Value& start, const Value& stop, const Value& step) {
  if (object.is(Kind::kUndefined)) fail_undefined(rt, object);
  if (object.is(Kind::kString)) {
    const Text& text = rt.heap.text(object);
    return string_slice(rt, text, slice_bounds(rt, text.n_chars, start, stop, step));
  }
  if (!object.is(Kind::kList) && !object.is(Kind::kTuple) && !object.is(Kind::kRange)) {
    fail(object.is(Kind::kDict) ? "unhashable type: 'slice'"
                                : fmt::format("'{}' object is not subscriptable", type_name(rt, object)));
  }
  const std::vector<Value> items = iterate(rt, object);
  std::vector<Value> chosen;
  for_each_index(slice_bounds(rt, static_cast<int64_t>(items.size()), start, stop, step),
                 [&](int64_t i) { chosen.push_back(items[static_cast<size_t>(i)]); });
  Value result = rt.heap.make_list(std::move(chosen), object.is(Kind::kTuple) ? Kind::kTuple : Kind::kList);
  result.data = object.data;
  return result;
}

}  // namespace plow::jinja
