// geometry.def as constants.
#pragma once

#include <stdint.h>

namespace plow::nvidia {

// Numbers in which the parts agree.
constexpr uint32_t kKvBlockTokens = 64;
constexpr uint32_t kMaxHeadDim = 512;

namespace sm_90a {
#define PLOW_GEOMETRY(Name, sm_90a, sm_120) constexpr uint32_t k##Name = sm_90a;
#include "isa/nvidia/geometry.def"
}  // namespace sm_90a

namespace sm_120 {
#define PLOW_GEOMETRY(Name, sm_90a, sm_120) constexpr uint32_t k##Name = sm_120;
#include "isa/nvidia/geometry.def"
}  // namespace sm_120

static_assert(sm_90a::kKvBlockTokens == kKvBlockTokens && sm_120::kKvBlockTokens == kKvBlockTokens);
static_assert(sm_90a::kMaxHeadDim == kMaxHeadDim && sm_120::kMaxHeadDim == kMaxHeadDim);

}  // namespace plow::nvidia
