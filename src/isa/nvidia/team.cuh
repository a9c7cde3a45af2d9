// The team of an ISA's blocks: PLOW_NVIDIA_ISA is its namespace.
#pragma once

// clang-format off: it says what PLOW_DEVICE and its like are before interp/device.h would
#include "isa/nvidia/prims.cuh"
// clang-format on
#include "isa/nvidia/geometry.h"

namespace plow::nvidia {

namespace geometry = PLOW_NVIDIA_ISA;

// By its tape and the rows of its group's tiles: sm_90a has both, sm_120 neither.
template <uint32_t kSlots, uint32_t kRowsOfGroup>
struct TeamOf {
  using Type = GroupBlock<geometry::kThreads, kSlots>;
};
template <>
struct TeamOf<0, 0> {
  using Type = Block<geometry::kThreads>;
};
using Team = TeamOf<geometry::kTapeSlots, geometry::kGroupRows>::Type;

}  // namespace plow::nvidia
