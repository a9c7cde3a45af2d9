// Tests: what may follow `is`.
#include "text/chat_template/builtins.h"
#include "text/chat_template/runtime.h"
#include "text/chat_template/unicode.h"

#include <fmt/format.h>

namespace plow::jinja {
namespace {

Value is_defined(Runtime&, const Value& self, Arguments&) { return boolean(!self.is(Kind::kUndefined)); }
Value is_undefined(Runtime&, const Value& self, Arguments&) { return boolean(self.is(Kind::kUndefined)); }
Value is_none(Runtime&, const Value& self, Arguments&) { return boolean(self.is(Kind::kNone)); }
Value is_boolean(Runtime&, const Value& self, Arguments&) { return boolean(self.is(Kind::kBool)); }
Value is_true(Runtime&, const Value& self, Arguments&) {
  return boolean(self.is(Kind::kBool) && self.boolean);
}
Value is_false(Runtime&, const Value& self, Arguments&) {
  return boolean(self.is(Kind::kBool) && !self.boolean);
}
Value is_integer(Runtime&, const Value& self, Arguments&) {
  return boolean(self.is(Kind::kInteger) || self.is(Kind::kBigInteger));
}
Value is_float(Runtime&, const Value& self, Arguments&) { return boolean(self.is(Kind::kFloat)); }
Value is_number_test(Runtime&, const Value& self, Arguments&) {
  return boolean(is_number(self) || self.is(Kind::kBigInteger));
}
Value is_string(Runtime&, const Value& self, Arguments&) { return boolean(self.is(Kind::kString)); }
Value is_mapping(Runtime&, const Value& self, Arguments&) { return boolean(self.is(Kind::kDict)); }
Value is_iterable_test(Runtime&, const Value& self, Arguments&) {
  return boolean(is_iterable(self) || self.is(Kind::kLoop));
}
// Has a length and items: what Python subscripts. Undefined has both methods, the second of which fails when
// it is called.
Value is_sequence(Runtime&, const Value& self, Arguments&) {
  switch (self.kind) {
    case Kind::kUndefined:
    case Kind::kString:
    case Kind::kList:
    case Kind::kTuple:
    case Kind::kDict:
    case Kind::kRange:
      return boolean(true);
    default:
      return boolean(false);
  }
}
Value is_callable(Runtime&, const Value& self, Arguments&) {
  switch (self.kind) {
    case Kind::kUndefined:  // Undefined has __call__, which raises
    case Kind::kMacro:
    case Kind::kMethod:
    case Kind::kFunction:
    case Kind::kLoop:
    case Kind::kJoiner:
      return boolean(true);
    default:
      return boolean(false);
  }
}
Value is_escaped(Runtime& rt, const Value& self, Arguments&) {
  return boolean(self.is(Kind::kString) && rt.heap.text(self).markup);
}

Value remainder_is(Runtime& rt, const Value& self, const Value& divisor, int64_t wanted) {
  return boolean(equals(rt, binary(rt, Operator::kModulo, self, divisor), integer(wanted)));
}
Value is_odd(Runtime& rt, const Value& self, Arguments&) { return remainder_is(rt, self, integer(2), 1); }
Value is_even(Runtime& rt, const Value& self, Arguments&) { return remainder_is(rt, self, integer(2), 0); }
Value is_divisible(Runtime& rt, const Value& self, Arguments& args) {
  return remainder_is(rt, self, args[0], 0);
}

// str.islower and str.isupper: some character is cased, and none has the other case.
Value has_case(Runtime& rt, const Value& self, bool (*other)(char32_t)) {
  const Value string = to_string(rt, self);
  const std::string_view bytes = rt.heap.bytes(string);
  rt.budget.touch(bytes.size());
  bool any_cased = false;
  for (size_t at = 0; at < bytes.size();) {
    const char32_t c = next_char(bytes, at);
    if (other(c)) return boolean(false);
    any_cased |= is_cased(c);
  }
  return boolean(any_cased);
}
Value is_lower_test(Runtime& rt, const Value& self, Arguments&) { return has_case(rt, self, is_upper); }
Value is_upper_test(Runtime& rt, const Value& self, Arguments&) { return has_case(rt, self, is_lower); }

Value equal(Runtime& rt, const Value& self, Arguments& args) { return boolean(equals(rt, self, args[0])); }
Value not_equal(Runtime& rt, const Value& self, Arguments& args) {
  return boolean(!equals(rt, self, args[0]));
}
Value less(Runtime& rt, const Value& self, Arguments& args) {
  return boolean(ordered(rt, Operator::kLess, self, args[0]));
}
Value less_equal(Runtime& rt, const Value& self, Arguments& args) {
  return boolean(ordered(rt, Operator::kLessEqual, self, args[0]));
}
Value greater(Runtime& rt, const Value& self, Arguments& args) {
  return boolean(ordered(rt, Operator::kGreater, self, args[0]));
}
Value greater_equal(Runtime& rt, const Value& self, Arguments& args) {
  return boolean(ordered(rt, Operator::kGreaterEqual, self, args[0]));
}
Value is_in(Runtime& rt, const Value& self, Arguments& args) { return boolean(contains(rt, args[0], self)); }

// Identity. Numbers and strings are the same object in Python when they are equal and small; equality is the
// nearest.
Value same_as(Runtime& rt, const Value& self, Arguments& args) {
  const bool by_value =
      self.is(Kind::kNone) || self.is(Kind::kBool) || self.is(Kind::kInteger) || self.is(Kind::kString);
  return boolean(self.kind == args[0].kind && (by_value ? equals(rt, self, args[0]) : self.id == args[0].id));
}

Value is_filter(Runtime& rt, const Value& self, Arguments&) {
  return boolean(self.is(Kind::kString) && find_filter(rt.heap.bytes(self)) != nullptr);
}
Value is_test(Runtime& rt, const Value& self, Arguments&) {
  return boolean(self.is(Kind::kString) && find_test(rt.heap.bytes(self)) != nullptr);
}

constexpr Builtin kTests[] = {
    {"!=", "other", not_equal},
    {"<", "other", less},
    {"<=", "other", less_equal},
    {"==", "other", equal},
    {">", "other", greater},
    {">=", "other", greater_equal},
    {"boolean", "", is_boolean},
    {"callable", "", is_callable},
    {"defined", "", is_defined},
    {"divisibleby", "num", is_divisible},
    {"eq", "other", equal},
    {"equalto", "other", equal},
    {"escaped", "", is_escaped},
    {"even", "", is_even},
    {"false", "", is_false},
    {"filter", "", is_filter},
    {"float", "", is_float},
    {"ge", "other", greater_equal},
    {"greaterthan", "other", greater},
    {"gt", "other", greater},
    {"in", "seq", is_in},
    {"integer", "", is_integer},
    {"iterable", "", is_iterable_test},
    {"le", "other", less_equal},
    {"lessthan", "other", less},
    {"lower", "", is_lower_test},
    {"lt", "other", less},
    {"mapping", "", is_mapping},
    {"ne", "other", not_equal},
    {"none", "", is_none},
    {"number", "", is_number_test},
    {"odd", "", is_odd},
    {"sameas", "other", same_as},
    {"sequence", "", is_sequence},
    {"string", "", is_string},
    {"test", "", is_test},
    {"true", "", is_true},
    {"undefined", "", is_undefined},
    {"upper", "", is_upper_test},
};

}  // namespace

std::span<const Builtin> tests() { return kTests; }

}  // namespace plow::jinja
