// sin, cos and log of double for instruction sets whose compiler brings no library of mathematics. Bodies
// call them a few times a row. Error bounds are what scalar_math tests hold them to, u = 2^-53.
#pragma once

#include "interp/device.h"

namespace plow::dev {

// Taylor's series at 0; on [-pi/4, pi/4] the first term that is left out is below 2^-61 of the sum.
PLOW_DEVICE double sine_series(double r) {
  const double z = r * r;
  double sum = 0;
  // (-1)^i / (2i + 1)!, from i = 8 down to 1, by the ratio of neighbours.
  for (int i = 8; i > 0; --i) sum = (1 + sum) * z * (-1.0 / static_cast<double>(2 * i * (2 * i + 1)));
  return __builtin_fma(r, sum, r);
}
PLOW_DEVICE double cosine_series(double r) {
  const double z = r * r;
  double sum = 0;
  for (int i = 9; i > 0; --i) sum = (1 + sum) * z * (-1.0 / static_cast<double>(2 * i * (2 * i - 1)));
  return 1 + sum;
}

// Both within 3 u of 1 for |x| <= 2^30. REQUIRES that.
PLOW_DEVICE void sin_cos_f64(double x, double* sine, double* cosine) {
  // pi/2 as a sum of three doubles (Cody and Waite 1980). The quotient n has at most 30 bits, so x - n *
  // first is a multiple of 2^-52 below 1: exact.
  constexpr double kFirst = 0x1.921fb54442d18p+0, kSecond = 0x1.1a62633145c07p-54,
                   kThird = -0x1.f1976b7ed8fbcp-110;
  const double n = __builtin_rint(x * 0x1.45f306dc9c883p-1);  // 2 / pi
  double r = __builtin_fma(-n, kFirst, x);
  r = __builtin_fma(-n, kSecond, r);
  r = __builtin_fma(-n, kThird, r);
  const double s = sine_series(r), c = cosine_series(r);
  const int quadrant = static_cast<int>(n) & 3;
  *sine = quadrant == 0 ? s : quadrant == 1 ? c : quadrant == 2 ? -s : -c;
  *cosine = quadrant == 0 ? c : quadrant == 1 ? -s : quadrant == 2 ? -c : s;
}

// Within 3 u of the value, or of 1 near 1. REQUIRES a positive normal number.
PLOW_DEVICE double log_f64(double x) {
  uint64_t bits;
  __builtin_memcpy(&bits, &x, sizeof(bits));
  // x = 2^e m, m in [sqrt(1/2), sqrt 2).
  constexpr uint64_t kSqrtHalf = 0x3fe6a09e667f3bcdull;
  const auto e = static_cast<int32_t>(static_cast<int64_t>(bits - kSqrtHalf) >> 52);
  bits -= static_cast<uint64_t>(static_cast<int64_t>(e)) << 52;
  double m;
  __builtin_memcpy(&m, &bits, sizeof(m));
  // log m = 2 artanh s = 2 (s + s^3 / 3 + s^5 / 5 + ...), |s| below 0.172.
  const double s = (m - 1) / (m + 1), z = s * s;
  double sum = 0;
  for (int i = 10; i > 0; --i) sum = (sum + 1.0 / static_cast<double>(2 * i + 1)) * z;
  const double log_m = 2 * __builtin_fma(s, sum, s);
  // ln 2 in two parts, the first with 11 zero bits at its end, so that e times it is exact.
  return __builtin_fma(static_cast<double>(e), 0x1.62e42fefa3800p-1,
                       __builtin_fma(static_cast<double>(e), 0x1.ef35793c76730p-45, log_m));
}

}  // namespace plow::dev
