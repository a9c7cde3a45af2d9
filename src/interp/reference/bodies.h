// What each operator computes (ops/README.md), one tile at a time, in double: the definitions once more, as
// loops that anyone can check.
#pragma once

#include "bundle/bundle.h"
#include "interp/reference/memory.h"
#include "interp/reference/step_plan.h"

#include <cstdint>
#include <vector>

namespace plow::reference {

// One run of column tiles of a packet in one row tile.
struct BodyCall {
  const ProgramView* program;
  const Packet* packet;
  const TileRun* run;
  uint32_t n_inputs;
  uint32_t row_begin, row_end;
  Memory* memory;
  StepColumns* step;
  const std::vector<std::vector<uint32_t>>* history;  // [slot]: tokens by position
};

// REQUIRES the packet's operator to be no protocol. Whatever it reads or writes lies inside the footprint of
// its tile rule (checked).
void run_body(const BodyCall& call, std::span<const KvGroup> groups);

}  // namespace plow::reference
