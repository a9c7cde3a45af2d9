#include "isa/x86_64/interpreter.h"

#include <gtest/gtest.h>

#include <cmath>
#include <vector>

namespace plow {
namespace {

constexpr double kUlp = 0x1p-24;

struct Case {
  uint32_t function;
  double (*value)(double);
  float low, high;
  double relative;  // bound, in units of 2^-24
  double absolute;  // where results are subnormal or vanish
};

const Case kCases[] = {
    {0, [](double x) { return std::exp(x); }, -87.0f, 88.7f, 4, 0},
    {0, [](double x) { return std::exp(x); }, -120.0f, -87.0f, 4, 0x1p-149},
    {1, [](double x) { return std::tanh(x); }, -20.0f, 20.0f, 4, 0},
    {1, [](double x) { return std::tanh(x); }, -1e-3f, 1e-3f, 4, 0},
    {2, [](double x) { return 1 / (1 + std::exp(-x)); }, -80.0f, 80.0f, 6, 0},
    {3, [](double x) { return 0.5 * std::erfc(-x / std::sqrt(2.0)); }, -12.0f, 12.0f, 16, 0},
    {3, [](double x) { return 0.5 * std::erfc(-x / std::sqrt(2.0)); }, -40.0f, -12.0f, 16, 0x1p-105},
};

// The largest error over a grid of 16 * 40000 points, in units of the bound.
double worst_error(const Interpreter& interpreter, const Case& c) {
  constexpr int kPoints = 16 * 40000;
  double worst = 0;
  for (int i = 0; i < kPoints; i += 16) {
    float x[16], y[16];
    for (int j = 0; j < 16; ++j) {
      x[j] = c.low + (c.high - c.low) * static_cast<float>(i + j) / static_cast<float>(kPoints);
    }
    interpreter.vector_math(c.function, x, y);
    for (int j = 0; j < 16; ++j) {
      const double exact = c.value(static_cast<double>(x[j]));
      const double bound = c.relative * kUlp * std::abs(exact) + c.absolute;
      if (bound > 0) worst = std::max(worst, std::abs(static_cast<double>(y[j]) - exact) / bound);
    }
  }
  return worst;
}

TEST(VectorMath, IsWithinItsBoundsOfDouble) {
  for (IsaLevel level : available_isa_levels()) {
    for (const Case& c : kCases) {
      const double worst = worst_error(x86_64_interpreter(level), c);
      EXPECT_LE(worst, 1) << isa_level_name(level) << ", function " << c.function << " on " << c.low << " .. "
                          << c.high;
      RecordProperty("worst", std::to_string(worst * c.relative));
    }
  }
}

TEST(VectorMath, EndsOfTheRangeAreRight) {
  const float infinity = INFINITY;
  float x[16] = {0, -0.0f, 89, 1000, infinity, -104, -1000, -infinity};
  float y[16];
  for (IsaLevel level : available_isa_levels()) {
    const Interpreter& interpreter = x86_64_interpreter(level);
    interpreter.vector_math(0, x, y);
    const float exp[] = {1, 1, infinity, infinity, infinity, 0, 0, 0};
    for (int i = 0; i < 8; ++i) EXPECT_EQ(y[i], exp[i]) << "exp " << x[i];
    interpreter.vector_math(1, x, y);
    const float tanh[] = {0, 0, 1, 1, 1, -1, -1, -1};
    for (int i = 0; i < 8; ++i) EXPECT_EQ(y[i], tanh[i]) << "tanh " << x[i];
    interpreter.vector_math(2, x, y);
    const float logistic[] = {0.5f, 0.5f, 1, 1, 1, 0, 0, 0};
    for (int i = 0; i < 8; ++i) EXPECT_NEAR(y[i], logistic[i], 1e-38f) << "logistic " << x[i];
  }
}

}  // namespace
}  // namespace plow
