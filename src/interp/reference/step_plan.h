// What of a program does not depend on the order in which it runs: the tiles of each packet with their
// regions, and, once the number of row tiles is known, each worker's list of instances and how many signals
// every counter is promised.
#pragma once

#include "bundle/bundle.h"

#include <cstdint>
#include <vector>

namespace plow::reference {

// Neighbouring column tiles of a packet, and what they read and write (rows follow from the row tile).
struct TileRun {
  uint32_t col_begin = 0, col_end = 0;
  std::vector<Access> accesses;
};

struct PacketPlan {
  uint32_t worker = 0;
  uint32_t n_inputs = 0;
  std::vector<TileRun> runs;  // empty for protocol packets
};

// By packet of the program.
std::vector<PacketPlan> plan_packets(const ProgramView& program);

// A packet in one of its row tiles.
struct Instance {
  uint32_t packet = 0;
  uint32_t row_tile = 0;
};

struct StepShape {
  uint32_t n_rows = 0, n_samples = 0;
  bool operator==(const StepShape&) const = default;
};

uint32_t rows_of_kind(const StepShape& shape, Rows rows);
uint32_t row_tile_rows(const ProgramEntry& entry, Rows rows);
uint32_t row_tiles(const ProgramEntry& entry, const StepShape& shape, Rows rows);

struct StepPlan {
  StepShape shape;
  std::vector<std::vector<Instance>> instances;  // by worker, in order
  std::vector<uint32_t> promised;                // by counter: signals in the step
};

StepPlan plan_step(const ProgramView& program, const std::vector<PacketPlan>& packets,
                   const StepShape& shape);

uint32_t counter_of(uint32_t counter, Band band, uint32_t row_tile);
uint64_t threshold_of(const ProgramEntry& entry, const StepShape& shape, const Wait& wait);

}  // namespace plow::reference
