// The team of an ISA's blocks: PLOW_NVIDIA_ISA is its namespace.
#pragma once

// clang-format off: it says what PLOW_DEVICE and its like are before interp/device.h would
#include "isa/nvidia/prims.cuh"
// clang-format on
#include "isa/nvidia/geometry.h"

namespace plow::nvidia {

namespace geometry = PLOW_NVIDIA_ISA;

template <uint32_t kSlots>
struct TeamOf {
  using Type = TapeBlock<geometry::kThreads, kSlots>;
};
template <>
struct TeamOf<0> {
  using Type = Block<geometry::kThreads>;
};
using Team = TeamOf<geometry::kTapeSlots>::Type;

}  // namespace plow::nvidia
