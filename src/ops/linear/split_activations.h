// f32 activations for matrix units that take bf16.
#pragma once

#include "interp/team.h"

namespace plow::dev {

// Eight consecutive activations as three sets of eight bf16 whose sums they are: the leading 8 bits of each,
// the next 8 and the last 8. Every product of one with a bf16 weight is exact in f32.
constexpr uint32_t kSplit = 3;
struct SplitActivations {
  uint32_t words[kSplit][4];
};

PLOW_DEVICE SplitActivations split(const float (&x)[8]) {
  SplitActivations result = {};
  PLOW_UNROLL
  for (uint32_t i = 0; i < 8; ++i) {
    float rest = x[i];
    PLOW_UNROLL
    for (uint32_t part = 0; part < kSplit; ++part) {
      uint32_t bits;
      __builtin_memcpy(&bits, &rest, sizeof(bits));
      bits &= 0xffff0000u;
      rest -= bits_to<float>(bits);
      result.words[part][i / 2] |= i % 2 == 0 ? bits >> 16 : bits;
    }
  }
  return result;
}

}  // namespace plow::dev
