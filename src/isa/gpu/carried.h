// The numbers in which an object and its host must agree, as the object carries them: an array of words named
// plow_carried.
#pragma once

#include "interp/resident.h"

#include <stdint.h>

namespace plow::gpu {

struct Carried {
  const char* name;
  uint32_t value;
};

// PLOW_CARRIED(name, value) for each of them, in order; `geometry` is the namespace of an ISA's geometry.
#define PLOW_CARRIED_LIST(geometry, PLOW_CARRIED)                               \
  PLOW_CARRIED("KvBlockTokens", geometry::kKvBlockTokens)                       \
  PLOW_CARRIED("MaxHeadDim", geometry::kMaxHeadDim)                             \
  PLOW_CARRIED("Lanes", geometry::kLanes)                                       \
  PLOW_CARRIED("Threads", geometry::kThreads)                                   \
  PLOW_CARRIED("TapeThreads", geometry::kTapeThreads)                           \
  PLOW_CARRIED("SharedBytes", geometry::kSharedBytes)                           \
  PLOW_CARRIED("size of Packet", sizeof(Packet))                                \
  PLOW_CARRIED("size of TensorEntry", sizeof(TensorEntry))                      \
  PLOW_CARRIED("size of StepDescriptor", sizeof(StepDescriptor))                \
  PLOW_CARRIED("size of SamplingParams", sizeof(SamplingParams))                \
  PLOW_CARRIED("size of ProgramTable", sizeof(ProgramTable))                    \
  PLOW_CARRIED("size of Resident", sizeof(Resident))                            \
  PLOW_CARRIED("size of Mailbox", sizeof(Mailbox))                              \
  PLOW_CARRIED("place of Mailbox::served", __builtin_offsetof(Mailbox, served)) \
  PLOW_CARRIED("place of Mailbox::step", __builtin_offsetof(Mailbox, step))     \
  PLOW_CARRIED("operators with a body", gpu::kTeamBodies)

constexpr uint32_t kTeamBodies = 0
#define PLOW_TEAM_BODY(Name, text) +1
#include "ops/team_bodies.def"
    ;

}  // namespace plow::gpu
