// Passes of a team over a row of logits: 16-byte loads, eight of a thread's on their way at once. A logit
// that is not a number counts as minus infinity.
#pragma once

#include "interp/team.h"
#include "interp/vector_math.h"

namespace plow::dev {

constexpr uint32_t kBatchFours = 8;
constexpr uint32_t kBatch = 4 * kBatchFours;

// A thread's batch begins at the four of logits `first`; its next four is as many fours further as the team
// has threads. So tokens ascend with i.
template <class B>
PLOW_DEVICE uint32_t batch_token(uint32_t first, uint32_t i) {
  return 4 * (first + i / 4 * B::n_threads()) + i % 4;
}

// Values after the last are `beyond`.
template <class B>
PLOW_DEVICE void load_batch(const float* values, uint32_t vocab, uint32_t first, float beyond,
                            float (&x)[kBatch]) {
  PLOW_UNROLL
  for (uint32_t j = 0; j < kBatchFours; ++j) {
    const uint32_t c = batch_token<B>(first, 4 * j);
    if (c + 4 <= vocab) {
      const Quad four = load_four(values + c, 4);
      PLOW_UNROLL
      for (uint32_t i = 0; i < 4; ++i) x[4 * j + i] = four.value[i];
    } else {
      PLOW_UNROLL
      for (uint32_t i = 0; i < 4; ++i) x[4 * j + i] = c + i < vocab ? values[c + i] : beyond;
    }
  }
}

// Calls f(first, x) for each of the thread's batches of logits.
template <class B, class F>
PLOW_DEVICE void each_batch(const float* logits, uint32_t vocab, const F& f) {
  for (uint32_t first = B::thread(); 4 * first < vocab; first += kBatchFours * B::n_threads()) {
    float x[kBatch];
    load_batch<B>(logits, vocab, first, -__builtin_inff(), x);
    f(first, x);
  }
}

// Stores a batch where there are logits, and up to the end of the last four.
template <class B>
PLOW_DEVICE void store_batch(float* to, uint32_t vocab, uint32_t first, const float (&x)[kBatch]) {
  PLOW_UNROLL
  for (uint32_t j = 0; j < kBatchFours; ++j) {
    const uint32_t c = batch_token<B>(first, 4 * j);
    if (c < vocab) store_four(to + c, Quad{{x[4 * j], x[4 * j + 1], x[4 * j + 2], x[4 * j + 3]}}, 4);
  }
}

// Zero without its sign, so that the two are equal in every order.
PLOW_DEVICE float number(float x) { return x == x ? x + 0.0f : -__builtin_inff(); }

// e^x for x up to 0, within 4 u for x above -30 and 8 u above -86; e^-86 below and of a NaN. Half as many
// instructions as exp(), and a row of logits has a hundred thousand. Coefficients fitted as those of
// vector_math.h: e^r on [-ln 2 / 2, ln 2 / 2], to 1.6 u.
template <class B>
PLOW_DEVICE float exp_below_zero(float x) {
  static constexpr float kExp[] = {
      1, 0x1.fffff6p-1f, 0x1.fffdc6p-2f, 0x1.555a6ap-3f, 0x1.573a54p-5f, 0x1.0fa852p-7f};
  constexpr float kRounder = 0x1.8p23f;  // what is added to it is rounded to an integer, in its lowest bits
  x = B::max(x, -86.0f);
  const float shifted = B::fma(x, 0x1.715476p+0f, kRounder);  // log2 e
  const float n = B::sub(shifted, kRounder);
  const float power = polynomial<B>(kExp, B::fma(n, -0x1.62e430p-1f, x));  // ln 2
  uint32_t bits, exponent;
  __builtin_memcpy(&bits, &power, sizeof(bits));
  __builtin_memcpy(&exponent, &shifted, sizeof(exponent));
  return bits_to<float>(bits + (exponent << 23));
}

struct LogitStats {
  float largest;   // minus infinity where no logit is above it
  double sum;      // of e^(l - largest)
  float own;       // the largest that this thread saw,
  uint32_t batch;  // and its first batch that has it
};

// In one pass: sums are relative to the largest so far and made smaller when a larger one comes.
template <class B>
PLOW_DEVICE LogitStats logit_stats(const float* logits, uint32_t vocab, unsigned char* shared) {
  constexpr uint32_t kChains = 4;  // that do not wait for each other
  LogitStats stats{-__builtin_inff(), 0, -__builtin_inff(), 0};
  each_batch<B>(logits, vocab, [&](uint32_t first, const float(&x)[kBatch]) {
    float most[kChains], part[kChains];
    PLOW_UNROLL
    for (uint32_t i = 0; i < kChains; ++i) most[i] = -__builtin_inff(), part[i] = 0;
    PLOW_UNROLL
    for (uint32_t i = 0; i < kBatch; ++i) most[i % kChains] = B::max(x[i], most[i % kChains]);  // no NaN
    const float largest = B::max(B::max(most[0], most[1]), B::max(most[2], most[3]));
    if (largest == -__builtin_inff()) return;
    if (largest > stats.own) {
      stats.sum *= static_cast<double>(exp_below_zero<B>(B::sub(stats.own, largest)));
      stats.own = largest;
      stats.batch = first;
    }
    PLOW_UNROLL
    for (uint32_t i = 0; i < kBatch; ++i)
      part[i % kChains] = B::add(part[i % kChains], exp_below_zero<B>(B::sub(x[i], stats.own)));
    stats.sum += static_cast<double>(B::add(B::add(part[0], part[1]), B::add(part[2], part[3])));
  });
  stats.largest = reduce_team<B>(stats.own, Largest{}, shared);
  if (stats.largest == -__builtin_inff()) return stats;
  stats.sum *= static_cast<double>(exp_below_zero<B>(B::sub(stats.own, stats.largest)));
  stats.sum = reduce_team<B>(stats.sum, Sum{}, shared);
  return stats;
}

// The first token with the largest logit. REQUIRES one above minus infinity.
template <class B>
PLOW_DEVICE uint32_t first_token(const float* logits, uint32_t vocab, const LogitStats& stats,
                                 unsigned char* shared) {
  uint32_t token = ~0u;
  if (stats.own == stats.largest) {
    float x[kBatch];
    load_batch<B>(logits, vocab, stats.batch, -__builtin_inff(), x);
    PLOW_UNROLL
    for (uint32_t i = kBatch; i-- > 0;) {
      if (x[i] == stats.largest) token = batch_token<B>(stats.batch, i);
    }
  }
  return ~reduce_team<B>(~token, Largest{}, shared);
}

}  // namespace plow::dev
