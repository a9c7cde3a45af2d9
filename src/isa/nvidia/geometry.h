// geometry.def as constants.
#pragma once

#include <stdint.h>

namespace plow::nvidia {

namespace sm_90a {
#define PLOW_GEOMETRY(Name, sm_90a, sm_120) constexpr uint32_t k##Name = sm_90a;
#include "isa/nvidia/geometry.def"
}  // namespace sm_90a

namespace sm_120 {
#define PLOW_GEOMETRY(Name, sm_90a, sm_120) constexpr uint32_t k##Name = sm_120;
#include "isa/nvidia/geometry.def"
}  // namespace sm_120

}  // namespace plow::nvidia
