// The interpreter's objects as they were built into this program, and what they say of themselves.
#pragma once

#include "abi/header.h"
#include "base/error.h"

#include <cstddef>
#include <span>

namespace plow::gpu {

// The ELF image of the interpreter for an ISA; empty when this program was built without (its compiler was
// not found).
std::span<const std::byte> interpreter_object(Isa isa);

// The kernels in it.
constexpr const char* kResidentKernel = "plow_resident";
constexpr const char* kFillKernel =
    "plow_fill_random";                           // (to, u64 values, u32 element bytes, f32 bound, u64 seed)
constexpr const char* kReadKernel = "plow_read";  // (from, u64 units of 16 bytes, u32* sum)

// Compares the numbers that the object was built with (geometry.def, sizes of what host and device share)
// with this program's. Errors (kVerification): names the first that differs; or the object carries none.
Status check_object(std::span<const std::byte> object, Isa isa);

}  // namespace plow::gpu
