// What an object says of the numbers that it was built with: see isa/gpu/object.h. PLOW_AMD_ISA is the
// namespace of its ISA. For device code only.
#pragma once

// clang-format off: it says what PLOW_DEVICE and its like are before interp/device.h would
#include "isa/amd/prims.h"
// clang-format on
#include "isa/amd/geometry.h"
#include "isa/gpu/carried.h"

namespace plow::amd {

namespace geometry = PLOW_AMD_ISA;

#define PLOW_CARRIED(name, value) static_cast<uint32_t>(value),
extern "C" __attribute__((used, visibility("protected")))
const PLOW_CONSTANT uint32_t plow_carried[] = {PLOW_CARRIED_LIST(geometry, PLOW_CARRIED)};
#undef PLOW_CARRIED

}  // namespace plow::amd
