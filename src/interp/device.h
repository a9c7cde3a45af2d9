// What device code is written in: plain C++ that g++, nvcc and clang for AMD GPUs compile alike. No
// containers, no exceptions, nothing of the standard library. Every function has internal linkage: the same
// source is compiled several times with different instruction sets, and a linker that merged those copies
// would run AVX-512 code on a machine that has none (isa/x86_64/linkage_test.cmake checks).
#pragma once

#include "abi/tensor.h"

#include <stddef.h>
#include <stdint.h>

// An instruction set that needs more (__device__, say) defines it before it includes anything of interp/ or
// ops/.
#ifndef PLOW_DEVICE
#define PLOW_DEVICE static inline
#endif
// The same for an operator's whole body.
#ifndef PLOW_DEVICE_BODY
#define PLOW_DEVICE_BODY PLOW_DEVICE
#endif
// A function that is called and not inlined where that is the ISA's to choose: long, and used from several places or
// rarely.
#ifndef PLOW_DEVICE_CALL
#define PLOW_DEVICE_CALL PLOW_DEVICE_BODY
#endif
// Before such a function, or before its template: it needs most registers, and keeps few of its caller's.
#ifndef PLOW_KEEPS_FEW_REGISTERS
#define PLOW_KEEPS_FEW_REGISTERS
#endif
// PLOW_DEVICE for member functions.
#ifndef PLOW_DEVICE_MEMBER
#define PLOW_DEVICE_MEMBER inline
#endif
// Before a loop: unroll it wholly, or n times.
#ifndef PLOW_UNROLL
#define PLOW_UNROLL
#define PLOW_UNROLL_BY(n)
#endif

namespace plow::dev {

// The two 16-bit formats as types, so that loads can be overloaded. The bits are those of base/float16.h.
struct Bf16 {
  uint16_t bits;
};
struct F16 {
  uint16_t bits;
};

template <class T>
PLOW_DEVICE T bits_to(uint32_t bits) {
  static_assert(sizeof(T) == sizeof(bits));
  T value;
  __builtin_memcpy(&value, &bits, sizeof(value));
  return value;
}

PLOW_DEVICE uint32_t min_u32(uint32_t a, uint32_t b) { return a < b ? a : b; }
PLOW_DEVICE uint32_t max_u32(uint32_t a, uint32_t b) { return a > b ? a : b; }
PLOW_DEVICE uint32_t ceil_div(uint32_t a, uint32_t b) { return a / b + (a % b != 0 ? 1 : 0); }

PLOW_DEVICE float to_float(float value) { return value; }
PLOW_DEVICE float to_float(Bf16 value) { return bits_to<float>(static_cast<uint32_t>(value.bits) << 16); }
// Without a branch: the exponent is moved by a product, which is exact and makes a subnormal number normal.
PLOW_DEVICE float to_float(F16 value) {
  const uint32_t sign = static_cast<uint32_t>(value.bits & 0x8000u) << 16;
  const float magnitude = bits_to<float>(static_cast<uint32_t>(value.bits & 0x7fffu) << 13) * 0x1p112f;
  uint32_t bits;
  __builtin_memcpy(&bits, &magnitude, sizeof(bits));
  const uint32_t special = (value.bits & 0x7c00u) == 0x7c00u ? 0x7f800000u : 0;
  return bits_to<float>(bits | special | sign);
}

}  // namespace plow::dev
