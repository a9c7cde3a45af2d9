// The numbers in which an object and its host must agree, as the object carries them: an array of words named
// plow_carried.
#pragma once

#include "interp/resident.h"
#include "isa/nvidia/geometry.h"

#include <stdint.h>

namespace plow::nvidia {

struct Carried {
  const char* name;
  uint32_t value;
};

// PLOW_CARRIED(name, value) for each of them, in order, on an ISA's namespace.
#define PLOW_CARRIED_LIST(isa_namespace, PLOW_CARRIED)                          \
  PLOW_CARRIED("KvBlockTokens", isa_namespace::kKvBlockTokens)                  \
  PLOW_CARRIED("MaxHeadDim", isa_namespace::kMaxHeadDim)                        \
  PLOW_CARRIED("Lanes", isa_namespace::kLanes)                                  \
  PLOW_CARRIED("Threads", isa_namespace::kThreads)                              \
  PLOW_CARRIED("SharedBytes", isa_namespace::kSharedBytes)                      \
  PLOW_CARRIED("size of Packet", sizeof(Packet))                                \
  PLOW_CARRIED("size of TensorEntry", sizeof(TensorEntry))                      \
  PLOW_CARRIED("size of StepDescriptor", sizeof(StepDescriptor))                \
  PLOW_CARRIED("size of SamplingParams", sizeof(SamplingParams))                \
  PLOW_CARRIED("size of ProgramTable", sizeof(ProgramTable))                    \
  PLOW_CARRIED("size of Resident", sizeof(Resident))                            \
  PLOW_CARRIED("size of Mailbox", sizeof(Mailbox))                              \
  PLOW_CARRIED("place of Mailbox::served", __builtin_offsetof(Mailbox, served)) \
  PLOW_CARRIED("place of Mailbox::step", __builtin_offsetof(Mailbox, step))     \
  PLOW_CARRIED("operators with a body", kTeamBodies)

constexpr uint32_t kTeamBodies = 0
#define PLOW_TEAM_BODY(Name, text) +1
#include "ops/team_bodies.def"
    ;

}  // namespace plow::nvidia
