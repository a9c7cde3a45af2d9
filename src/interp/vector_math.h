// exp, tanh, the logistic function and the normal distribution function on Vec. Polynomials were fitted by us
// (Lawson's iteration on Chebyshev nodes, in double, coefficients then rounded to float); the error bounds
// below are what vector_math tests hold them to, against double, u = 2^-24.
#pragma once

#include "interp/prims.h"

namespace plow::dev {

// p[0] + p[1] x + ... + p[n - 1] x^(n - 1)
template <class I, int n>
PLOW_DEVICE typename I::Vec polynomial(const float (&p)[n], typename I::Vec x) {
  typename I::Vec sum = I::set(p[n - 1]);
  for (int i = n - 2; i >= 0; --i) sum = I::fma(sum, x, I::set(p[i]));
  return sum;
}

// e^x, within 4 u of the value; infinity above 88.73, and gradual underflow down to 0 below -103.98. A NaN
// gives 0 or infinity.
template <class I>
PLOW_DEVICE typename I::Vec exp(typename I::Vec x) {
  using Vec = typename I::Vec;
  // (e^r - 1 - r) / r^2 on [-ln 2 / 2, ln 2 / 2], to 0.05 u.
  static constexpr float kTail[] = {0x1.fffffcp-2f, 0x1.555492p-3f, 0x1.5558f2p-5f, 0x1.1239e4p-7f,
                                    0x1.6a2430p-10f};
  x = I::max(I::min(x, I::set(89.0f)), I::set(-105.0f));
  const Vec n = I::round(I::mul(x, I::set(0x1.715476p+0f)));  // log2 e
  // ln 2 in two parts, the first with 9 zero bits at its end, so that n * first is exact.
  Vec r = I::fma(n, I::set(-0x1.62e400p-1f), x);
  r = I::fma(n, I::set(-0x1.7f7d1cp-20f), r);
  const Vec tail = polynomial<I>(kTail, r);
  const Vec e = I::add(I::fma(I::mul(r, r), tail, r), I::set(1.0f));
  // 2^n in two factors: n may be as low as -151 and as high as 128, beyond the exponents of one.
  const Vec half = I::round(I::mul(n, I::set(0.5f)));
  return I::times_power(I::times_power(e, half), I::sub(n, half));
}

// tanh x, within 4 u.
template <class I>
PLOW_DEVICE typename I::Vec tanh(typename I::Vec x) {
  using Vec = typename I::Vec;
  // (tanh x / x - 1) / x^2 in x^2, on [0, 0.625], to 0.08 u.
  static constexpr float kSmall[] = {-0x1.555532p-2f, 0x1.110726p-3f, -0x1.b83c58p-5f, 0x1.522692p-6f,
                                     -0x1.75e1a8p-8f};
  const Vec t = I::abs(x), z = I::mul(x, x), one = I::set(1.0f);
  const Vec small = I::fma(I::mul(x, z), polynomial<I>(kSmall, z), x);
  const Vec large = I::sub(one, I::div(I::set(2.0f), I::add(exp<I>(I::add(t, t)), one)));
  return I::select(I::less(t, I::set(0.625f)), small, I::copy_sign(large, x));
}

// 1 / (1 + e^-x), within 6 u.
template <class I>
PLOW_DEVICE typename I::Vec logistic(typename I::Vec x) {
  const typename I::Vec one = I::set(1.0f);
  return I::div(one, I::add(one, exp<I>(I::sub(I::zero(), x))));
}

// (1 + erf(x / sqrt 2)) / 2, within 16 u of the value for x > -12, and 0 within the smallest normal number
// below.
template <class I>
PLOW_DEVICE typename I::Vec normal_cdf(typename I::Vec x) {
  using Vec = typename I::Vec;
  // erf(t) / t - 1 in t^2, on [0, 0.9], to 0.2 u.
  static constexpr float kErf[] = {0x1.06eba6p-3f,  -0x1.8126fap-2f, 0x1.ce1ddp-4f,
                                   -0x1.b6bee2p-6f, 0x1.4876c6p-8f,  -0x1.3f4f66p-11f};
  // erfc(t) e^(t^2) / s in s = 2 / (2 + t), t on [0.9, 10.2], to 0.3 u.
  static constexpr float kErfc[] = {0x1.20df5cp-2f, 0x1.20ba1cp-2f, 0x1.fb3ed6p-3f,  0x1.672294p-3f,
                                    0x1.2097dcp-4f, 0x1.13dfc4p-4f, -0x1.b4d6c8p-3f, 0x1.6c0646p-4f};
  const Vec half = I::set(0.5f), one = I::set(1.0f);
  const Vec t = I::min(I::mul(I::abs(x), I::set(0x1.6a09e6p-1f)), I::set(10.2f));  // 1 / sqrt 2
  const Vec z = I::mul(t, t);
  const Vec erf = I::copy_sign(I::fma(t, polynomial<I>(kErf, z), t), x);
  const Vec small = I::fma(half, erf, half);
  const Vec s = I::div(I::set(2.0f), I::add(t, I::set(2.0f)));
  // x^2 / 2 with its rounding error: e^-z must not lose the bits that z lost. 1/sqrt 2 is itself rounded, so
  // start from x.
  const Vec y = I::min(I::abs(x), I::set(14.42f));
  const Vec square = I::mul(y, y), lost = I::fma(y, y, I::sub(I::zero(), square));
  const Vec e = exp<I>(I::mul(square, I::set(-0.5f)));
  const Vec corrected = I::fma(e, I::mul(lost, I::set(-0.5f)), e);
  const Vec tail = I::mul(I::mul(half, s), I::mul(polynomial<I>(kErfc, s), corrected));
  const Vec large = I::select(I::less(x, I::zero()), tail, I::sub(one, tail));
  return I::select(I::less(t, I::set(0.9f)), small, large);
}

}  // namespace plow::dev
