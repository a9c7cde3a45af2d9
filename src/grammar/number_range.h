// Numbers between two bounds as expressions, digit by digit.
#pragma once

#include "grammar/grammar.h"

#include <optional>

namespace plow {

struct NumberBound {
  double value;
  bool exclusive;  // the bound itself is not in the range
};

// Bounds from here on cannot be written with the digits that numbers have here.
constexpr double kLargestBound = 1e15;

// Whole numbers within the bounds, without exponents, of at most 15 digits. Matches nothing when there is
// none. REQUIRES bounds between -kLargestBound and kLargestBound.
Grammar::Expr integers_within(Grammar& grammar, std::optional<NumberBound> least,
                              std::optional<NumberBound> most);
// Numbers within the bounds, without exponents, with at most 6 digits behind the point or as many as a bound
// has, so that an excluded bound is not what a double rounds them to.
Grammar::Expr numbers_within(Grammar& grammar, std::optional<NumberBound> least,
                             std::optional<NumberBound> most);

}  // namespace plow
