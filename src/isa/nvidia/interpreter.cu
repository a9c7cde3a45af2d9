// The interpreter of NVIDIA GPUs: one block a multiprocessor, which stays. Compiled once an ISA, with
// PLOW_NVIDIA_ISA set to its namespace.
// clang-format off: it says what PLOW_DEVICE and its like are before interp/device.h would
#include "isa/nvidia/team.cuh"
// clang-format on
#include "interp/resident.h"
#include "isa/gpu/measure.h"
#include "isa/nvidia/body.cuh"
#include "isa/nvidia/carried.cuh"
#include "ops/attention/matrix_pass.h"
#include "ops/play_tape.h"
#include "ops/product_team_body.h"

namespace plow::nvidia {

// As dev::TeamBodies, which says what is required.
struct LinkedBodies {
  template <class B>
  static __device__ void run(const BodyContext& ctx, const Packet& packet, uint32_t row_tile) {
    switch (static_cast<Op>(packet.body)) {
#define PLOW_TEAM_PRODUCT(Name, text)
#define PLOW_TEAM_ATTENTION(Name, text)                                                               \
  case Op::k##Name:                                                                                   \
    if (dev::attends_by_matrices<B>(ctx, packet)) attention_matrices_body(ctx, packet, row_tile);     \
    return text##_body(ctx, packet, row_tile);
#define PLOW_TEAM_BODY(Name, text) \
  case Op::k##Name:                \
    return text##_body(ctx, packet, row_tile);
#include "ops/team_bodies.def"
      default:
        if (dev::is_for_group<B>(ctx, packet)) return group_product_body(ctx, packet, row_tile);
        product_body(ctx, packet, row_tile);
    }
  }
};

// One thread, from launch to end. `shared`: the team's memory, then the tape's slots and its ring.
template <class B>
__device__ inline void work(const Resident& resident, unsigned char* shared) {
  if constexpr (dev::HasTape<B>) {
    unsigned char* slots = shared + geometry::kTeamBytes;
    auto& ring = *reinterpret_cast<dev::RingOf<B>*>(slots + B::kTapeSlots * dev::kPieceBytes);
    static_assert(geometry::kTeamBytes + B::kTapeSlots * dev::kPieceBytes + sizeof(ring) <= geometry::kSharedBytes);
    if (threadIdx.x == 0) {
      ring.order = ring.sent = ring.taken = ring.given_up = 0;
      dev::make_ring<B>(ring);
    }
    __syncthreads();
    if (threadIdx.x >= geometry::kThreads) return dev::play_tape<B>(resident, blockIdx.x, ring, slots);
    dev::serve<B, LinkedBodies>(resident, blockIdx.x, shared, {&ring, slots});
  } else {
    dev::serve<B, LinkedBodies>(resident, blockIdx.x, shared);
  }
}

extern "C" {

__global__ void __launch_bounds__(geometry::kThreads + geometry::kTapeThreads, 1)
    plow_resident(const Resident* resident) {
  extern __shared__ __align__(128) unsigned char shared[];
  static_assert(dev::product_team_bytes<Team>() + dev::kNearBytes <= geometry::kTeamBytes);
  static_assert(dev::matrix_pass_bytes<Team>() + dev::kNearBytes <= geometry::kTeamBytes);
  work<Team>(*resident, shared);
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
