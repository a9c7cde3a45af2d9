// The interpreter of AMD GPUs: one workgroup a compute unit, which stays. Compiled once an ISA, with
// PLOW_AMD_ISA set to its namespace.
// clang-format off: it says what PLOW_DEVICE and its like are before interp/device.h would
#include "isa/amd/carried.h"
// clang-format on
#include "interp/resident.h"
#include "isa/gpu/measure.h"
#include "ops/team_bodies.h"

namespace plow::amd {

// The memory that a launch adds to a workgroup's own.
extern PLOW_LDS __attribute__((aligned(128))) unsigned char shared_bytes[];

#define PLOW_KERNEL(threads) \
  extern "C" __attribute__((amdgpu_kernel, amdgpu_flat_work_group_size(threads, threads)))

// Thread of the grid, whose workgroups have kThreads.
template <uint32_t kThreads>
PLOW_DEVICE uint64_t grid_thread() {
  return uint64_t{__builtin_amdgcn_workgroup_id_x()} * kThreads + __builtin_amdgcn_workitem_id_x();
}

// One wave a SIMD: each may use all of its 512 registers.
PLOW_KERNEL(geometry::kThreads)
__attribute__((amdgpu_waves_per_eu(1, 1))) void plow_resident(const Resident* resident) {
  static_assert(dev::product_team_bytes<Group<geometry::kThreads>>() + dev::kNearBytes <= geometry::kTeamBytes);
  dev::serve<Group<geometry::kThreads>, dev::TeamBodies>(*resident, __builtin_amdgcn_workgroup_id_x(),
                                                         (unsigned char*)shared_bytes);
}

// `groups`: how many were launched.
PLOW_KERNEL(256)
void plow_fill_random(unsigned char* to, uint64_t n, uint32_t element_bytes, float bound, uint64_t seed,
                      uint64_t groups) {
  gpu::fill_random(to, n, element_bytes, bound, seed, grid_thread<256>(), groups * 256);
}

PLOW_KERNEL(1024) void plow_read(const dev::WeightUnit* from, uint64_t n, uint32_t* sum, uint64_t groups) {
  const uint32_t own = gpu::read_units(from, n, grid_thread<1024>(), groups * 1024);
  if (own == 0x9e3779b9u) Group<1024>::add_relaxed(sum, own);
}

}  // namespace plow::amd
