// Quantities that carry their unit in their type, so that bytes are not added to nanoseconds. A quantity
// divided by its rate is a time; nothing else gives one.
#pragma once

#include <compare>

namespace plow {

template <class Unit>
struct Quantity {
  double value = 0;

  constexpr Quantity() = default;
  constexpr explicit Quantity(double v) : value(v) {}

  constexpr auto operator<=>(const Quantity&) const = default;
  constexpr Quantity& operator+=(Quantity other) { return value += other.value, *this; }
  friend constexpr Quantity operator+(Quantity a, Quantity b) { return Quantity(a.value + b.value); }
  friend constexpr Quantity operator-(Quantity a, Quantity b) { return Quantity(a.value - b.value); }
  friend constexpr Quantity operator*(Quantity a, double factor) { return Quantity(a.value * factor); }
  friend constexpr Quantity operator*(double factor, Quantity a) { return a * factor; }
  friend constexpr double operator/(Quantity a, Quantity b) { return a.value / b.value; }
};

using Nanoseconds = Quantity<struct NanosecondUnit>;
using Bytes = Quantity<struct ByteUnit>;
using Flops = Quantity<struct FlopUnit>;
using Elements = Quantity<struct ElementUnit>;  // that a row-wise body writes
using Runs = Quantity<struct RunUnit>;          // rows, or groups of a row, that a row-wise body begins

// So many units a nanosecond (for bytes: GB/s).
template <class Q>
struct PerNs {
  double value = 0;
};
template <class Q>
constexpr Nanoseconds operator/(Q amount, PerNs<Q> rate) {
  return Nanoseconds(amount.value / rate.value);
}

// So many nanoseconds each.
template <class Q>
struct NsPer {
  double value = 0;
};
template <class Q>
constexpr Nanoseconds operator*(Q amount, NsPer<Q> price) {
  return Nanoseconds(amount.value * price.value);
}

}  // namespace plow
