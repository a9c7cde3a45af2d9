// Equality, order and membership.
#include "text/chat_template/runtime.h"

#include <fmt/format.h>

#include <cmath>

namespace plow::jinja {
namespace {

std::string_view spelling(Operator op) {
  switch (op) {
    case Operator::kLess:
      return "<";
    case Operator::kLessEqual:
      return "<=";
    case Operator::kGreater:
      return ">";
    default:
      return ">=";
  }
}

// -1, 0, 1; 2 when one is not a number (NaN).
int compare_numbers(const Value& a, const Value& b) {
  if (!a.is(Kind::kFloat) && !b.is(Kind::kFloat)) {
    const int64_t x = as_integer(a);
    const int64_t y = as_integer(b);
    return x < y ? -1 : x > y ? 1 : 0;
  }
  // Exact also where a 64-bit integer is no double: long double has 64 bits of mantissa.
  const long double x =
      a.is(Kind::kFloat) ? static_cast<long double>(a.real) : static_cast<long double>(as_integer(a));
  const long double y =
      b.is(Kind::kFloat) ? static_cast<long double>(b.real) : static_cast<long double>(as_integer(b));
  if (std::isnan(x) || std::isnan(y)) return 2;
  return x < y ? -1 : x > y ? 1 : 0;
}

bool holds(Operator op, int order) {
  if (order == 2) return false;
  switch (op) {
    case Operator::kLess:
      return order < 0;
    case Operator::kLessEqual:
      return order <= 0;
    case Operator::kGreater:
      return order > 0;
    default:
      return order >= 0;
  }
}

bool equal_items(Runtime& rt, const std::vector<Value>& a, const std::vector<Value>& b) {
  if (a.size() != b.size()) return false;
  for (size_t i = 0; i < a.size(); ++i) {
    if (!equals(rt, a[i], b[i])) return false;
  }
  return true;
}

bool equal_dicts(Runtime& rt, const Value& a, const Value& b) {
  const Dict& left = rt.heap.dict(a);
  if (left.entries.size() != rt.heap.dict(b).entries.size()) return false;
  for (const auto& [key, value] : left.entries) {
    const Value* other = find_in_dict(rt, b, key);
    if (!other || !equals(rt, value, *other)) return false;
  }
  return true;
}

}  // namespace

bool is_number(const Value& v) { return v.is(Kind::kBool) || v.is(Kind::kInteger) || v.is(Kind::kFloat); }
int64_t as_integer(const Value& v) { return v.is(Kind::kBool) ? v.boolean : v.integer; }
double as_real(const Value& v) { return v.is(Kind::kFloat) ? v.real : static_cast<double>(as_integer(v)); }

bool equals(Runtime& rt, const Value& a, const Value& b) {
  const Budget::Depth depth(rt.budget);
  rt.budget.steps(1);
  if (is_number(a) && is_number(b)) return compare_numbers(a, b) == 0;
  if (a.kind != b.kind) return false;
  switch (a.kind) {
    case Kind::kUndefined:
    case Kind::kNone:
      return true;
    case Kind::kString:
    case Kind::kBigInteger:
      rt.budget.touch(rt.heap.bytes(a).size());
      return rt.heap.bytes(a) == rt.heap.bytes(b);
    case Kind::kList:
    case Kind::kTuple:
    case Kind::kView:
      return a.id == b.id || equal_items(rt, rt.heap.sequence(a).items, rt.heap.sequence(b).items);
    case Kind::kDict:
      return a.id == b.id || equal_dicts(rt, a, b);
    case Kind::kRange:
      return equal_items(rt, iterate(rt, a), iterate(rt, b));
    default:
      return a.id == b.id;
  }
}

bool ordered(Runtime& rt, Operator op, const Value& a, const Value& b) {
  const Budget::Depth depth(rt.budget);
  rt.budget.steps(1);
  if (a.is(Kind::kUndefined)) fail_undefined(rt, a);
  if (b.is(Kind::kUndefined)) fail_undefined(rt, b);
  if (is_number(a) && is_number(b)) return holds(op, compare_numbers(a, b));
  if (a.is(Kind::kString) && b.is(Kind::kString)) {
    // UTF-8 sorts as its code points do.
    rt.budget.touch(rt.heap.bytes(a).size());
    const int order = rt.heap.bytes(a).compare(rt.heap.bytes(b));
    return holds(op, order < 0 ? -1 : order > 0 ? 1 : 0);
  }
  if (a.kind == b.kind && (a.is(Kind::kList) || a.is(Kind::kTuple))) {
    const std::vector<Value>& x = rt.heap.sequence(a).items;
    const std::vector<Value>& y = rt.heap.sequence(b).items;
    for (size_t i = 0; i < std::min(x.size(), y.size()); ++i) {
      if (!equals(rt, x[i], y[i])) return ordered(rt, op, x[i], y[i]);
    }
    return holds(op, x.size() < y.size() ? -1 : x.size() > y.size() ? 1 : 0);
  }
  fail(fmt::format("'{}' not supported between instances of '{}' and '{}'", spelling(op), type_name(rt, a),
                   type_name(rt, b)));
}

bool is_hashable(Runtime& rt, const Value& v) {
  if (v.is(Kind::kList) || v.is(Kind::kDict) || v.is(Kind::kView)) return false;
  if (!v.is(Kind::kTuple)) return true;
  const Budget::Depth depth(rt.budget);
  for (const Value& item : rt.heap.sequence(v).items) {
    if (!is_hashable(rt, item)) return false;
  }
  return true;
}

const Value* find_in_dict(Runtime& rt, const Value& dict, const Value& key) {
  if (key.is(Kind::kString)) return find_in_dict(rt, dict, rt.heap.bytes(key));
  if (!is_hashable(rt, key)) return nullptr;
  for (const auto& [k, value] : rt.heap.dict(dict).entries) {
    if (equals(rt, k, key)) return &value;
  }
  return nullptr;
}

const Value* find_in_dict(Runtime& rt, const Value& dict, std::string_view key) {
  const Dict& d = rt.heap.dict(dict);
  rt.budget.touch(d.entries.size());
  for (const auto& [k, value] : d.entries) {
    if (k.is(Kind::kString) && rt.heap.bytes(k) == key) return &value;
  }
  return nullptr;
}

void put_in_dict(Runtime& rt, Dict& dict, const Value& key, const Value& value) {
  if (!is_hashable(rt, key)) fail(fmt::format("unhashable type: '{}'", type_name(rt, key)));
  for (auto& [k, old] : dict.entries) {
    if (equals(rt, k, key)) {
      old = value;
      return;
    }
  }
  rt.budget.memory(sizeof(dict.entries[0]));
  dict.entries.emplace_back(key, value);
}

bool contains(Runtime& rt, const Value& container, const Value& item) {
  if (container.is(Kind::kString)) {
    if (item.is(Kind::kUndefined)) fail_undefined(rt, item);
    if (!item.is(Kind::kString)) {
      fail(fmt::format("'in <string>' requires string as left operand, not {}", type_name(rt, item)));
    }
    rt.budget.touch(rt.heap.bytes(container).size());
    return rt.heap.bytes(container).find(rt.heap.bytes(item)) != std::string_view::npos;
  }
  if (container.is(Kind::kDict)) {
    if (!is_hashable(rt, item)) fail(fmt::format("unhashable type: '{}'", type_name(rt, item)));
    return find_in_dict(rt, container, item) != nullptr;
  }
  if (!is_iterable(container))
    fail(fmt::format("argument of type '{}' is not iterable", type_name(rt, container)));
  for (const Value& v : iterate(rt, container)) {
    if (equals(rt, v, item)) return true;
  }
  return false;
}

}  // namespace plow::jinja
