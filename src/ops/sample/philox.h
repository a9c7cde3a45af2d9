// Philox4x32-10, the counter-based generator of sampling: the same seed and position give the same bits on
// every device and in every batch. Plain C++ without the standard library, for host and device.
//
// Source: J. Salmon, M. Moraes, R. Dror, D. Shaw, "Parallel random numbers: as easy as 1, 2, 3", SC 2011,
// section 3.3; constants and known answers from the authors' Random123 library.
#pragma once

#include <stdint.h>

namespace plow {

struct PhiloxBlock {
  uint32_t word[4];
};

constexpr PhiloxBlock philox4x32_10(PhiloxBlock counter, uint32_t key0, uint32_t key1) {
  constexpr uint32_t kMultiplier0 = 0xD2511F53u, kMultiplier1 = 0xCD9E8D57u;
  constexpr uint32_t kWeyl0 = 0x9E3779B9u, kWeyl1 = 0xBB67AE85u;
  for (int round = 0; round < 10; ++round) {
    const uint64_t product0 = static_cast<uint64_t>(kMultiplier0) * counter.word[0];
    const uint64_t product1 = static_cast<uint64_t>(kMultiplier1) * counter.word[2];
    counter = {
        {static_cast<uint32_t>(product1 >> 32) ^ counter.word[1] ^ key0, static_cast<uint32_t>(product1),
         static_cast<uint32_t>(product0 >> 32) ^ counter.word[3] ^ key1, static_cast<uint32_t>(product0)}};
    key0 += kWeyl0;
    key1 += kWeyl1;
  }
  return counter;
}

// The draw for the token at `position` of its sequence: a number in [0, 1) with 24 bits, so that float and
// double hold the same number. Key: the seed, low word first; counter: the position, then zeros; the upper 24
// bits of the first word are used.
constexpr float sample_uniform(uint64_t seed, uint32_t position) {
  const PhiloxBlock block =
      philox4x32_10({{position, 0, 0, 0}}, static_cast<uint32_t>(seed), static_cast<uint32_t>(seed >> 32));
  return static_cast<float>(block.word[0] >> 8) * 0x1p-24f;
}

}  // namespace plow
