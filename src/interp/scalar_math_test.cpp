#include "interp/scalar_math.h"

#include "base/float16.h"

#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <random>

namespace plow::dev {
namespace {

constexpr long double kUnit = 0x1p-53L;

void expect_sin_cos(double x) {
  double sine = 0, cosine = 0;
  sin_cos_f64(x, &sine, &cosine);
  ASSERT_LE(std::fabs(sine - std::sin(static_cast<long double>(x))), 3 * kUnit) << x;
  ASSERT_LE(std::fabs(cosine - std::cos(static_cast<long double>(x))), 3 * kUnit) << x;
}

TEST(ScalarMath, SineAndCosineOfAnyAngleOfAPositionAreWithinThreeUnits) {
  std::mt19937_64 random(1);
  for (const double limit : {1e-9, 0.5, 1.0, 7.0, 1e3, 1e6, 0x1p30}) {
    std::uniform_real_distribution<double> angles(-limit, limit);
    for (int i = 0; i < 20000; ++i) expect_sin_cos(angles(random));
  }
  expect_sin_cos(0.0);
  // Next to a multiple of pi/2, where the reduction loses most.
  for (int64_t n = 1; n < 600'000'000; n = n * 3 + 1)
    for (const double step : {-0x1p-20, 0.0, 0x1p-20})
      expect_sin_cos(static_cast<double>(n) * 1.5707963267948966 + step);
}

TEST(ScalarMath, TheLogarithmIsWithinThreeUnits) {
  std::mt19937_64 random(2);
  for (const double limit : {1.001, 2.0, 1e6, 1e300}) {
    std::uniform_real_distribution<double> exponents(-std::log(limit), std::log(limit));
    for (int i = 0; i < 50000; ++i) {
      const double x = std::exp(exponents(random));
      const long double expected = std::log(static_cast<long double>(x));
      ASSERT_LE(std::fabs(log_f64(x) - expected), 3 * kUnit * std::max(1.0L, std::fabs(expected))) << x;
    }
  }
  EXPECT_EQ(log_f64(1.0), 0.0);
}

TEST(ScalarMath, EveryHalfIsTheFloatOfItsBits) {
  for (uint32_t bits = 0; bits < 0x10000; ++bits) {
    const float found = to_float(F16{static_cast<uint16_t>(bits)});
    const float expected = f16_to_float(static_cast<uint16_t>(bits));
    ASSERT_EQ(std::memcmp(&found, &expected, sizeof(found)), 0) << bits;
  }
}

}  // namespace
}  // namespace plow::dev
