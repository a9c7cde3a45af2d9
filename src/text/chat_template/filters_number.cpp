// Filters on numbers.
#include "text/chat_template/builtins.h"
#include "text/chat_template/parse_number.h"
#include "text/chat_template/runtime.h"
#include "text/chat_template/sequence_operations.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cmath>

namespace plow::jinja {
namespace {

bool from_data(Runtime& rt, const Value& v) {
  return v.is(Kind::kString) ? rt.heap.text(v).has_data() : v.data;
}

Value abs(Runtime& rt, const Value& self, Arguments&) {
  if (self.is(Kind::kUndefined)) fail_undefined(rt, self);
  if (!is_number(self)) fail(fmt::format("bad operand type for abs(): '{}'", type_name(rt, self)));
  if (self.is(Kind::kFloat)) return real(std::fabs(self.real), self.data);
  return as_integer(self) < 0 ? unary(rt, Operator::kSubtract, self) : unary(rt, Operator::kAdd, self);
}

std::optional<Value> truncated(double d, bool data) {
  if (!std::isfinite(d)) return std::nullopt;
  if (!(std::fabs(d) < 0x1p63)) fail("an integer is beyond 64 bits");
  return integer(static_cast<int64_t>(d), data);
}

// int(value), else int(float(value)), else the default.
Value to_int(Runtime& rt, const Value& self, Arguments& args) {
  const bool data = from_data(rt, self);
  if (self.is(Kind::kUndefined)) fail_undefined(rt, self);
  const int64_t base = args.has(1) ? need_integer(rt, args[1], "base") : 10;
  std::optional<Value> result;
  if (self.is(Kind::kString)) {
    if (const auto parsed = parse_integer(rt.heap.bytes(self), base)) return integer(*parsed, data);
    if (const auto parsed = parse_real(rt.heap.bytes(self))) result = truncated(*parsed, data);
  } else if (self.is(Kind::kFloat)) {
    result = truncated(self.real, data);
    if (!result && std::isinf(self.real)) fail("cannot convert float infinity to integer");
  } else if (self.is(Kind::kBigInteger)) {
    result = self;
  } else if (is_number(self)) {
    result = integer(as_integer(self), data);
  }
  if (result) return *result;
  return args.has(0) ? args[0] : integer(0);
}

Value to_float(Runtime& rt, const Value& self, Arguments& args) {
  if (self.is(Kind::kUndefined)) fail_undefined(rt, self);
  if (is_number(self)) return real(as_real(self), self.data);
  if (self.is(Kind::kString) || self.is(Kind::kBigInteger)) {
    if (const auto parsed = parse_real(rt.heap.bytes(self))) return real(*parsed, from_data(rt, self));
  }
  return args.has(0) ? args[0] : real(0.0);
}

// Python's round(): the decimal that is nearest to the exact binary value, ties to even.
Value round_real(double d, int64_t precision, bool data) {
  constexpr int64_t kMaxDigits = 323;  // beyond it every double is itself, or below it zero
  if (!std::isfinite(d) || precision > kMaxDigits) return real(d, data);
  if (precision < -kMaxDigits) return real(std::copysign(0.0, d), data);
  if (precision >= 0) return real(std::strtod(fmt::format("{:.{}f}", d, precision).c_str(), nullptr), data);
  const double scale = std::pow(10.0, static_cast<double>(-precision));
  return real(std::nearbyint(d / scale) * scale, data);
}

Value round_integer(Runtime& rt, const Value& self, int64_t precision) {
  const int64_t value = as_integer(self);
  if (precision >= 0) return integer(value, self.data);
  constexpr int64_t kDigitsOf64Bits = 18;
  if (precision < -kDigitsOf64Bits) return integer(0, self.data);
  int64_t scale = 1;
  for (int64_t i = 0; i < -precision; ++i) scale *= 10;
  const int64_t remainder = ((value % scale) + scale) % scale;
  const int64_t below = value - remainder;
  const bool odd = (below / scale) % 2 != 0;
  const bool up = remainder > scale - remainder || (remainder == scale - remainder && odd);
  return up ? binary(rt, Operator::kAdd, integer(below, self.data), integer(scale))
            : integer(below, self.data);
}

Value round(Runtime& rt, const Value& self, Arguments& args) {
  const int64_t precision = args.has(0) ? need_integer(rt, args[0], "precision") : 0;
  const std::string method = args.has(1) ? need_string(rt, args[1], "method").bytes : "common";
  if (method != "common" && method != "ceil" && method != "floor")
    fail("method must be common, ceil or floor");
  if (self.is(Kind::kUndefined)) fail_undefined(rt, self);
  if (!is_number(self)) fail(fmt::format("type {} doesn't define __round__ method", type_name(rt, self)));
  if (method == "common") {
    return self.is(Kind::kFloat) ? round_real(self.real, precision, self.data)
                                 : round_integer(rt, self, precision);
  }
  // func(value * (10**precision)) / (10**precision), where func gives an integer.
  const Value scale = binary(rt, Operator::kPower, integer(10), integer(precision));
  const double scaled = as_real(binary(rt, Operator::kMultiply, self, scale));
  if (as_real(scale) == 0) fail("float division by zero");
  if (!std::isfinite(scaled)) fail("cannot round what is not finite");
  return real((method == "ceil" ? std::ceil(scaled) : std::floor(scaled)) / as_real(scale), self.data);
}

Value sum(Runtime& rt, const Value& self, Arguments& args) {
  Value total = args.has(1) ? args[1] : integer(0);
  if (total.is(Kind::kString)) fail("sum() can't sum strings");
  for (Value item : iterate(rt, self)) {
    if (args.has(0) && !args[0].is(Kind::kNone)) item = attribute_path(rt, item, args[0], {});
    total = binary(rt, Operator::kAdd, total, item);
  }
  return total;
}

constexpr Builtin kFilters[] = {
    {"abs", "", abs},
    {"float", "default?", to_float},
    {"int", "default? base?", to_int},
    {"round", "precision? method?", round},
    {"sum", "attribute? start?", sum},
};

}  // namespace

std::span<const Builtin> number_filters() { return kFilters; }

}  // namespace plow::jinja
