// What an object says of the numbers that it was built with: see isa/gpu/object.h. PLOW_NVIDIA_ISA is the
// namespace of its ISA.
#pragma once

// clang-format off: it says what PLOW_DEVICE and its like are before interp/device.h would
#include "isa/nvidia/prims.cuh"
// clang-format on
#include "isa/gpu/carried.h"
#include "isa/nvidia/geometry.h"

namespace plow::nvidia {

namespace geometry = PLOW_NVIDIA_ISA;

#define PLOW_CARRIED(name, value) static_cast<uint32_t>(value),
extern "C" __device__ extern const uint32_t plow_carried[] = {PLOW_CARRIED_LIST(geometry, PLOW_CARRIED)};
#undef PLOW_CARRIED

}  // namespace plow::nvidia
