// The interpreter of NVIDIA GPUs: one block a multiprocessor, which stays. Compiled once an ISA, with
// PLOW_NVIDIA_ISA set to its namespace.
// clang-format off: it says what PLOW_DEVICE and its like are before interp/device.h would
#include "isa/nvidia/carried.cuh"
// clang-format on
#include "interp/resident.h"
#include "isa/gpu/measure.h"
#include "ops/play_tape.h"
#include "ops/team_bodies.h"

namespace plow::nvidia {

// One thread, from launch to end. `shared`: the team's memory, then the tape's slots and its ring.
template <uint32_t kTapeSlots>
__device__ inline void work(const Resident& resident, unsigned char* shared) {
  if constexpr (kTapeSlots > 0) {
    using Team = TapeBlock<geometry::kThreads, kTapeSlots>;
    unsigned char* slots = shared + geometry::kTeamBytes;
    auto& ring = *reinterpret_cast<dev::RingOf<Team>*>(slots + kTapeSlots * dev::kPieceBytes);
    static_assert(geometry::kTeamBytes + kTapeSlots * dev::kPieceBytes + sizeof(ring) <= geometry::kSharedBytes);
    if (threadIdx.x == 0) {
      ring.order = ring.sent = ring.taken = ring.given_up = 0;
      dev::make_ring<Team>(ring, geometry::kThreads / geometry::kLanes);
    }
    __syncthreads();
    if (threadIdx.x >= geometry::kThreads) return dev::play_tape<Team>(resident, blockIdx.x, ring, slots);
    dev::serve<Team, dev::TeamBodies>(resident, blockIdx.x, shared, {&ring, slots});
  } else {
    dev::serve<Block<geometry::kThreads>, dev::TeamBodies>(resident, blockIdx.x, shared);
  }
}

extern "C" {

__global__ void __launch_bounds__(geometry::kThreads + geometry::kTapeThreads, 1)
    plow_resident(const Resident* resident) {
  extern __shared__ __align__(128) unsigned char shared[];
  static_assert(dev::product_team_bytes<Block<geometry::kThreads>>() + dev::kNearBytes <= geometry::kTeamBytes);
  work<geometry::kTapeSlots>(*resident, shared);
}

__global__ void plow_fill_random(unsigned char* to, uint64_t n, uint32_t element_bytes, float bound,
                                 uint64_t seed) {
  gpu::fill_random(to, n, element_bytes, bound, seed, uint64_t{blockIdx.x} * blockDim.x + threadIdx.x,
                   uint64_t{gridDim.x} * blockDim.x);
}

__global__ void __launch_bounds__(1024, 2) plow_read(const dev::WeightUnit* from, uint64_t n, uint32_t* sum) {
  const uint32_t own = gpu::read_units(from, n, uint64_t{blockIdx.x} * blockDim.x + threadIdx.x,
                                       uint64_t{gridDim.x} * blockDim.x);
  if (own == 0x9e3779b9u) atomicAdd(sum, own);
}

}  // extern "C"
}  // namespace plow::nvidia
