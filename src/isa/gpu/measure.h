// Kernels' bodies for measuring with: weights from a seed, and reading memory. Device code; `thread` of
// `n_threads` counts those of the whole grid.
#pragma once

#include "ops/kv_append/body.h"
#include "ops/linear/team_product.h"

namespace plow::gpu {

// `n` values of bf16 (element_bytes 2) or f32, uniform in (-bound, bound).
PLOW_DEVICE void fill_random(unsigned char* to, uint64_t n, uint32_t element_bytes, float bound,
                             uint64_t seed, uint64_t thread, uint64_t n_threads) {
  for (uint64_t i = thread; i < n; i += n_threads) {
    // The finaliser of SplitMix64 (Steele, Lea, Flood, OOPSLA 2014).
    uint64_t z = seed + (i + 1) * 0x9e3779b97f4a7c15ull;
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9ull;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebull;
    z ^= z >> 31;
    const float value = bound * (static_cast<float>(z >> 40) * 0x1p-23f - 1.0f);
    if (element_bytes == 2) {
      dev::round_to(value, reinterpret_cast<dev::Bf16*>(to)[i]);
    } else {
      reinterpret_cast<float*>(to)[i] = value;
    }
  }
}

// Reads `n` units of 16 bytes. The result is to be used, lest the compiler leave the reading out.
PLOW_DEVICE uint32_t read_units(const dev::WeightUnit* from, uint64_t n, uint64_t thread,
                                uint64_t n_threads) {
  constexpr uint32_t kAtOnce = 8;
  uint32_t own = 0;
  for (uint64_t i = thread; i < n; i += kAtOnce * n_threads) {
    PLOW_UNROLL
    for (uint32_t j = 0; j < kAtOnce; ++j) {
      if (i + j * n_threads >= n) continue;
      const dev::WeightUnit unit = from[i + j * n_threads];
      own ^= unit.words[0] ^ unit.words[1] ^ unit.words[2] ^ unit.words[3];
    }
  }
  return own;
}

}  // namespace plow::gpu
