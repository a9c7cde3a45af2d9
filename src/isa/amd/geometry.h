// geometry.def as constants.
#pragma once

#include <stdint.h>

namespace plow::amd {

namespace gfx942 {
#define PLOW_GEOMETRY(Name, gfx942, gfx950) constexpr uint32_t k##Name = gfx942;
#include "isa/amd/geometry.def"
}  // namespace gfx942

namespace gfx950 {
#define PLOW_GEOMETRY(Name, gfx942, gfx950) constexpr uint32_t k##Name = gfx950;
#include "isa/amd/geometry.def"
}  // namespace gfx950

}  // namespace plow::amd
