// The interpreter of NVIDIA GPUs: one block a multiprocessor, which stays. Compiled once an ISA, with
// PLOW_NVIDIA_ISA set to its namespace.
// First: it says what device code is.
// clang-format off
#include "isa/nvidia/prims.cuh"
// clang-format on

#include "interp/resident.h"
#include "isa/nvidia/carried.h"
#include "isa/nvidia/geometry.h"
#include "ops/team_bodies.h"

namespace plow::nvidia {

namespace geometry = PLOW_NVIDIA_ISA;

extern "C" {

// See object.h.
__device__ extern const uint32_t plow_carried[] = {
#define PLOW_CARRIED(name, value) static_cast<uint32_t>(value),
    PLOW_CARRIED_LIST(geometry, PLOW_CARRIED)};
#undef PLOW_CARRIED

__global__ void __launch_bounds__(geometry::kThreads, 1) plow_resident(const Resident* resident) {
  extern __shared__ __align__(1024) unsigned char shared[];
  dev::serve<Block<geometry::kThreads>, dev::TeamBodies>(*resident, blockIdx.x, shared);
}

// Weights for measuring with, from a seed: `n` values of bf16 (element_bytes 2) or f32, uniform in (-bound,
// bound).
__global__ void plow_fill_random(unsigned char* to, unsigned long long n, uint32_t element_bytes, float bound,
                                 unsigned long long seed) {
  const unsigned long long step = static_cast<unsigned long long>(gridDim.x) * blockDim.x;
  for (unsigned long long i = static_cast<unsigned long long>(blockIdx.x) * blockDim.x + threadIdx.x; i < n;
       i += step) {
    // The finaliser of SplitMix64 (Steele, Lea, Flood, OOPSLA 2014).
    unsigned long long z = seed + (i + 1) * 0x9e3779b97f4a7c15ull;
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9ull;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebull;
    z ^= z >> 31;
    const float value = bound * (static_cast<float>(z >> 40) * 0x1p-23f - 1.0f);
    if (element_bytes == 2) {
      dev::round_to(value, reinterpret_cast<dev::Bf16*>(to)[i]);
    } else {
      reinterpret_cast<float*>(to)[i] = value;
    }
  }
}

// Reads `n` units of 16 bytes; the sum keeps the compiler from leaving it out.
__global__ void __launch_bounds__(1024, 2)
    plow_read(const dev::WeightUnit* from, unsigned long long n, uint32_t* sum) {
  constexpr uint32_t kAtOnce = 8;
  const unsigned long long step = static_cast<unsigned long long>(gridDim.x) * blockDim.x;
  uint32_t own = 0;
  for (unsigned long long i = static_cast<unsigned long long>(blockIdx.x) * blockDim.x + threadIdx.x; i < n;
       i += kAtOnce * step) {
#pragma unroll
    for (uint32_t j = 0; j < kAtOnce; ++j) {
      if (i + j * step >= n) continue;
      const dev::WeightUnit unit = from[i + j * step];
      own ^= unit.words[0] ^ unit.words[1] ^ unit.words[2] ^ unit.words[3];
    }
  }
  if (own == 0x9e3779b9u) atomicAdd(sum, own);
}

}  // extern "C"
}  // namespace plow::nvidia
