// What all GPUs have in common, and how the interpreter is launched on each.
#pragma once

#include "abi/header.h"
#include "isa/amd/geometry.h"
#include "isa/nvidia/geometry.h"

#include <stdint.h>

// PLOW_GPU_ISA(Name, namespace) for every instruction set of a GPU: Name as in abi/isas.def, and where its
// geometry is.
#define PLOW_GPU_ISAS(PLOW_GPU_ISA)   \
  PLOW_GPU_ISA(Sm90a, nvidia::sm_90a) \
  PLOW_GPU_ISA(Sm120, nvidia::sm_120) \
  PLOW_GPU_ISA(Gfx942, amd::gfx942)   \
  PLOW_GPU_ISA(Gfx950, amd::gfx950)

namespace plow::gpu {

// Bundles are laid out by these.
constexpr uint32_t kKvBlockTokens = 64;
constexpr uint32_t kMaxHeadDim = 512;

#define PLOW_GPU_ISA(Name, geometry) \
  static_assert(geometry::kKvBlockTokens == kKvBlockTokens && geometry::kMaxHeadDim == kMaxHeadDim);
PLOW_GPU_ISAS(PLOW_GPU_ISA)
#undef PLOW_GPU_ISA

struct LaunchShape {
  uint32_t threads;       // of a worker: its team, and those that play its tape
  uint32_t shared_bytes;  // of theirs
};

// REQUIRES an ISA of a GPU.
constexpr LaunchShape launch_shape(Isa isa) {
  switch (isa) {
#define PLOW_GPU_ISA(Name, geometry) \
  case Isa::k##Name:                 \
    return {geometry::kThreads + geometry::kTapeThreads, geometry::kSharedBytes};
    PLOW_GPU_ISAS(PLOW_GPU_ISA)
#undef PLOW_GPU_ISA
    case Isa::kX86_64:
      break;
  }
  return {};
}

// Outputs of a tile of a product of many rows on which several waves work together; 0: they do not. REQUIRES an ISA of a GPU.
constexpr uint32_t group_columns(Isa isa) {
  switch (isa) {
#define PLOW_GPU_ISA(Name, geometry) \
  case Isa::k##Name:                 \
    return geometry::kGroupColumns;
    PLOW_GPU_ISAS(PLOW_GPU_ISA)
#undef PLOW_GPU_ISA
    case Isa::kX86_64:
      break;
  }
  return 0;
}

}  // namespace plow::gpu
