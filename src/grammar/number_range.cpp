#include "grammar/number_range.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <string>
#include <vector>

namespace plow {
namespace {

using Expr = Grammar::Expr;

// A bound of a range of numbers that are not negative: digits before and after the point.
struct Decimal {
  std::string whole, fraction;
  bool exclusive = false;
};

Decimal decimal_of(double value, bool exclusive) {
  // Shortest digits that read back as the same double; without an exponent below kLargestBound.
  std::string text = fmt::format("{:.17f}", value);
  for (int digits = 0; digits < 17; ++digits) {
    const std::string shorter = fmt::format("{:.{}f}", value, digits);
    if (std::stod(shorter) != value) continue;
    text = shorter;
    break;
  }
  const size_t point = text.find('.');
  Decimal decimal{text.substr(0, point), point == std::string::npos ? "" : text.substr(point + 1), exclusive};
  while (!decimal.fraction.empty() && decimal.fraction.back() == '0') decimal.fraction.pop_back();
  return decimal;
}

// All numbers of one count of digits before the point, from `least` to `most`.
class RangeWriter {
 public:
  RangeWriter(Grammar& grammar, const Decimal& least, const Decimal& most, size_t fraction_digits)
      : grammar_(grammar), least_(least), most_(most), fraction_digits_(fraction_digits) {}

  // REQUIRES bounds of the same number of digits.
  Expr run() { return whole(0, true, true); }

 private:
  using Next = Expr (RangeWriter::*)(size_t, bool, bool);

  Expr digits(char first, char last) {
    ByteSet set;
    set.add_range(static_cast<uint8_t>(first), static_cast<uint8_t>(last));
    return grammar_.bytes(set);
  }
  // The digits that may stand at `i`, each with what may follow: at_least (at_most) says that all digits
  // before were those of the bound.
  void step(std::vector<Expr>& choices, size_t i, bool at_least, bool at_most, char low, char high,
            Next next) {
    const auto add = [&](char first, char last, bool on_least, bool on_most) {
      if (first <= last)
        choices.push_back(grammar_.sequence({digits(first, last), (this->*next)(i + 1, on_least, on_most)}));
    };
    if (low > high) return;
    if (low == high) return add(low, low, at_least, at_most);
    if (at_least) add(low, low, true, false);
    add(static_cast<char>(low + (at_least ? 1 : 0)), static_cast<char>(high - (at_most ? 1 : 0)), false,
        false);
    if (at_most) add(high, high, false, true);
  }

  Expr whole(size_t i, bool at_least, bool at_most) {
    if (i == least_.whole.size()) return point(at_least, at_most);
    std::vector<Expr> choices;
    step(choices, i, at_least, at_most, at_least ? least_.whole[i] : '0', at_most ? most_.whole[i] : '9',
         &RangeWriter::whole);
    return grammar_.choice(choices);
  }

  Expr point(bool at_least, bool at_most) {
    std::vector<Expr> choices;
    if (may_end(0, at_least, at_most)) choices.push_back(grammar_.empty());
    if (fraction_digits_ > 0) {
      std::vector<Expr> first;
      fraction_step(first, 0, at_least, at_most);
      choices.push_back(grammar_.sequence({grammar_.literal("."), grammar_.choice(first)}));
    }
    return grammar_.choice(choices);
  }

  // Whether the digits so far, with nothing but zeros behind them, are within the bounds.
  bool may_end(size_t i, bool at_least, bool at_most) const {
    const bool zeros_below = i >= least_.fraction.size(), zeros_above = i >= most_.fraction.size();
    if (at_least && (!zeros_below || least_.exclusive)) return false;
    return !(at_most && zeros_above && most_.exclusive);
  }

  void fraction_step(std::vector<Expr>& choices, size_t i, bool at_least, bool at_most) {
    const auto digit = [i](const std::string& fraction) { return i < fraction.size() ? fraction[i] : '0'; };
    step(choices, i, at_least, at_most, at_least ? digit(least_.fraction) : '0',
         at_most ? digit(most_.fraction) : '9', &RangeWriter::fraction);
  }

  Expr fraction(size_t i, bool at_least, bool at_most) {
    if (!at_least && !at_most)
      return grammar_.repeat(digits('0', '9'), 0, static_cast<uint32_t>(fraction_digits_ - i));
    std::vector<Expr> choices;
    if (may_end(i, at_least, at_most)) choices.push_back(grammar_.empty());
    if (i < fraction_digits_) fraction_step(choices, i, at_least, at_most);
    return grammar_.choice(choices);
  }

  Grammar& grammar_;
  const Decimal &least_, &most_;
  const size_t fraction_digits_;
};

bool below(const std::string& a, const std::string& b) {  // of whole parts
  return a.size() != b.size() ? a.size() < b.size() : a < b;
}

// Numbers that are not negative.
Expr magnitudes(Grammar& grammar, const Decimal& least, const Decimal& most, size_t fraction_digits) {
  std::vector<Expr> choices;
  for (size_t n = least.whole.size(); n <= most.whole.size(); ++n) {
    const Decimal lowest{n == 1 ? "0" : "1" + std::string(n - 1, '0'), "", false};
    const Decimal highest{std::string(n, '9'), std::string(fraction_digits, '9'), false};
    const Decimal& from = below(least.whole, lowest.whole) ? lowest : least;
    const Decimal& to = below(highest.whole, most.whole) ? highest : most;
    choices.push_back(RangeWriter(grammar, from, to, fraction_digits).run());
  }
  return grammar.choice(choices);
}

Expr within(Grammar& grammar, std::optional<NumberBound> least, std::optional<NumberBound> most,
            size_t digits, size_t whole_digits) {
  const NumberBound zero{0, false};
  const double end = std::pow(10.0, static_cast<double>(whole_digits));  // no number is so large
  const NumberBound low = least.value_or(NumberBound{-end, true}),
                    high = most.value_or(NumberBound{end, true});
  const auto decimal = [&](const NumberBound& bound) {
    return decimal_of(std::abs(bound.value), bound.exclusive);
  };
  std::vector<Expr> choices;
  if (low.value <= high.value && high.value >= 0)
    choices.push_back(magnitudes(grammar,
                                 decimal(low.value > 0    ? low
                                         : low.value == 0 ? low
                                                          : zero),
                                 decimal(high), digits));
  if (low.value <= high.value && low.value < 0) {
    // Minus zero is left out.
    const NumberBound nearest = high.value < 0 ? high : NumberBound{0, true};
    choices.push_back(grammar.sequence(
        {grammar.literal("-"), magnitudes(grammar, decimal(nearest), decimal(low), digits)}));
  }
  return grammar.choice(choices);
}

}  // namespace

Expr integers_within(Grammar& grammar, std::optional<NumberBound> least, std::optional<NumberBound> most) {
  const auto whole = [](std::optional<NumberBound>& bound, double direction) {
    if (!bound) return;
    double value = direction > 0 ? std::ceil(bound->value) : std::floor(bound->value);
    if (value == bound->value && bound->exclusive) value += direction;
    bound = NumberBound{value, false};
  };
  whole(least, 1);
  whole(most, -1);
  constexpr size_t kDigits = 15;
  return within(grammar, least, most, 0, kDigits);
}

Expr numbers_within(Grammar& grammar, std::optional<NumberBound> least, std::optional<NumberBound> most) {
  size_t digits = 6, whole_digits = 9;
  for (const auto& bound : {least, most}) {
    if (!bound) continue;
    const Decimal decimal = decimal_of(std::abs(bound->value), false);
    digits = std::max(digits, decimal.fraction.size());
    whole_digits = std::max(whole_digits, decimal.whole.size());
  }
  return within(grammar, least, most, digits, whole_digits);
}

}  // namespace plow
