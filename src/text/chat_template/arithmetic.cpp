// The operators + - * / // % ** and the signs.
#include "text/chat_template/runtime.h"

#include <fmt/format.h>

#include <cmath>

namespace plow::jinja {
namespace {

std::string_view spelling(Operator op) {
  switch (op) {
    case Operator::kAdd:
      return "+";
    case Operator::kSubtract:
      return "-";
    case Operator::kMultiply:
      return "*";
    case Operator::kDivide:
      return "/";
    case Operator::kFloorDivide:
      return "//";
    case Operator::kModulo:
      return "%";
    default:
      return "** or pow()";
  }
}

[[noreturn]] void fail_operands(Runtime& rt, Operator op, const Value& a, const Value& b) {
  fail(fmt::format("unsupported operand type(s) for {}: '{}' and '{}'", spelling(op), type_name(rt, a),
                   type_name(rt, b)));
}

[[noreturn]] void fail_overflow() { fail("an integer is beyond 64 bits"); }

int64_t integer_power(int64_t base, int64_t exponent) {
  int64_t result = 1;
  while (true) {
    if ((exponent & 1) != 0 && __builtin_mul_overflow(result, base, &result)) fail_overflow();
    exponent >>= 1;
    if (exponent == 0) return result;
    if (__builtin_mul_overflow(base, base, &base)) fail_overflow();
  }
}

int64_t floor_divide(int64_t a, int64_t b) {
  if (b == 0) fail("integer division or modulo by zero");
  if (b == -1) {
    int64_t negated = 0;
    if (__builtin_sub_overflow(int64_t{0}, a, &negated)) fail_overflow();
    return negated;
  }
  return a / b - ((a % b != 0 && (a < 0) != (b < 0)) ? 1 : 0);
}

int64_t floor_modulo(int64_t a, int64_t b) {
  if (b == 0) fail("integer division or modulo by zero");
  if (b == -1) return 0;
  const int64_t remainder = a % b;
  return remainder != 0 && (remainder < 0) != (b < 0) ? remainder + b : remainder;
}

double real_modulo(double a, double b) {
  if (b == 0) fail("float modulo by zero");
  const double remainder = std::fmod(a, b);
  if (remainder == 0) return std::copysign(0.0, b);
  return (remainder < 0) != (b < 0) ? remainder + b : remainder;
}

double real_floor_divide(double a, double b) {
  if (b == 0) fail("float floor division by zero");
  // As Python computes it: from the remainder, so that a == b * (a // b) + a % b as nearly as can be.
  const double quotient = (a - real_modulo(a, b)) / b;
  if (quotient == 0) return std::copysign(0.0, a / b);
  const double floored = std::floor(quotient);
  return quotient - floored > 0.5 ? floored + 1 : floored;
}

double real_power(double a, double b) {
  if (a == 0 && b < 0) fail("0.0 cannot be raised to a negative power");
  const double result = std::pow(a, b);
  if (std::isnan(result) && !std::isnan(a) && !std::isnan(b)) fail("a power is a complex number");
  if (std::isinf(result) && !std::isinf(a) && !std::isinf(b)) fail("a power is too large for a float");
  return result;
}

Value integer_arithmetic(Operator op, int64_t a, int64_t b, bool data) {
  int64_t result = 0;
  switch (op) {
    case Operator::kAdd:
      if (__builtin_add_overflow(a, b, &result)) fail_overflow();
      return integer(result, data);
    case Operator::kSubtract:
      if (__builtin_sub_overflow(a, b, &result)) fail_overflow();
      return integer(result, data);
    case Operator::kMultiply:
      if (__builtin_mul_overflow(a, b, &result)) fail_overflow();
      return integer(result, data);
    case Operator::kDivide:
      if (b == 0) fail("division by zero");
      return real(static_cast<double>(static_cast<long double>(a) / static_cast<long double>(b)), data);
    case Operator::kFloorDivide:
      return integer(floor_divide(a, b), data);
    case Operator::kModulo:
      return integer(floor_modulo(a, b), data);
    default:
      if (b < 0) return real(real_power(static_cast<double>(a), static_cast<double>(b)), data);
      return integer(integer_power(a, b), data);
  }
}

Value real_arithmetic(Operator op, double a, double b, bool data) {
  switch (op) {
    case Operator::kAdd:
      return real(a + b, data);
    case Operator::kSubtract:
      return real(a - b, data);
    case Operator::kMultiply:
      return real(a * b, data);
    case Operator::kDivide:
      if (b == 0) fail("float division by zero");
      return real(a / b, data);
    case Operator::kFloorDivide:
      return real(real_floor_divide(a, b), data);
    case Operator::kModulo:
      return real(real_modulo(a, b), data);
    default:
      return real(real_power(a, b), data);
  }
}

Value concatenate(Runtime& rt, Value a, Value b) {
  const bool markup = rt.heap.text(a).markup || rt.heap.text(b).markup;
  if (markup) {
    a = escape_html(rt, a);
    b = escape_html(rt, b);
  }
  TextBuilder out(rt.budget);
  out.add(rt.heap.text(a));
  out.add(rt.heap.text(b));
  Text text = out.finish();
  text.markup = markup;
  return rt.heap.make_string(std::move(text));
}

bool is_sequence(const Value& v) { return v.is(Kind::kString) || v.is(Kind::kList) || v.is(Kind::kTuple); }

Value repeat(Runtime& rt, const Value& v, int64_t times) {
  times = std::max<int64_t>(times, 0);
  if (v.is(Kind::kString)) {
    const Text& text = rt.heap.text(v);
    TextBuilder out(rt.budget);
    for (int64_t i = 0; i < times && !text.bytes.empty(); ++i) out.add(text);
    Text result = out.finish();
    result.markup = text.markup;
    return rt.heap.make_string(std::move(result));
  }
  const std::vector<Value>& items = rt.heap.sequence(v).items;
  std::vector<Value> result;
  for (int64_t i = 0; i < times && !items.empty(); ++i) {
    rt.budget.touch(items.size());
    rt.budget.memory(items.size() * sizeof(Value));
    result.insert(result.end(), items.begin(), items.end());
  }
  return rt.heap.make_list(std::move(result), v.kind);
}

}  // namespace

Value binary(Runtime& rt, Operator op, const Value& a, const Value& b) {
  if (op == Operator::kModulo && a.is(Kind::kString)) return format_percent(rt, rt.heap.text(a), b);
  if (a.is(Kind::kUndefined)) fail_undefined(rt, a);
  if (b.is(Kind::kUndefined)) fail_undefined(rt, b);
  const bool data = a.data || b.data;
  if (is_number(a) && is_number(b)) {
    if (a.is(Kind::kFloat) || b.is(Kind::kFloat)) return real_arithmetic(op, as_real(a), as_real(b), data);
    return integer_arithmetic(op, as_integer(a), as_integer(b), data);
  }
  if (a.is(Kind::kBigInteger) || b.is(Kind::kBigInteger)) fail_overflow();
  if (op == Operator::kAdd && a.kind == b.kind && is_sequence(a)) {
    if (a.is(Kind::kString)) return concatenate(rt, a, b);
    std::vector<Value> items = rt.heap.sequence(a).items;
    const std::vector<Value>& more = rt.heap.sequence(b).items;
    items.insert(items.end(), more.begin(), more.end());
    return rt.heap.make_list(std::move(items), a.kind);
  }
  const auto is_count = [](const Value& v) { return v.is(Kind::kInteger) || v.is(Kind::kBool); };
  if (op == Operator::kMultiply && is_sequence(a) && is_count(b)) return repeat(rt, a, as_integer(b));
  if (op == Operator::kMultiply && is_sequence(b) && is_count(a)) return repeat(rt, b, as_integer(a));
  if (op == Operator::kAdd && a.is(Kind::kString)) {
    fail(fmt::format("can only concatenate str (not \"{}\") to str", type_name(rt, b)));
  }
  fail_operands(rt, op, a, b);
}

Value unary(Runtime& rt, Operator op, const Value& v) {
  if (v.is(Kind::kUndefined)) fail_undefined(rt, v);
  if (!is_number(v)) {
    fail(fmt::format("bad operand type for unary {}: '{}'", op == Operator::kAdd ? "+" : "-",
                     type_name(rt, v)));
  }
  if (v.is(Kind::kFloat)) return real(op == Operator::kAdd ? v.real : -v.real, v.data);
  return integer_arithmetic(op, 0, as_integer(v), v.data);
}

}  // namespace plow::jinja
