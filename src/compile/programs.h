// The ways of cutting the work that a bundle holds, and the stages that lead from a graph to each of them.
#pragma once

#include <cstdint>
#include <vector>

#include "tile/tile_graph.h"

namespace plow {

// Few rows: the weights stream once past all rows, one row tile. Many rows: row tiles beside column tiles. Which of them a step runs is chosen
// by its number of rows; within a program it is a run-time value.
std::vector<TileOptions> program_shapes(uint32_t chunk_rows, uint32_t max_slots);

}  // namespace plow
