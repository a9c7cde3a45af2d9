// geometry.def as constants.
#pragma once

#include <stdint.h>

namespace plow::x86_64 {

#define PLOW_GEOMETRY(Name, value) constexpr uint32_t k##Name = value;
#include "isa/x86_64/geometry.def"

}  // namespace plow::x86_64
