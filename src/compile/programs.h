// The ways of cutting the work that a bundle holds, and the stages that lead from a graph to each of them.
#pragma once

#include <cstdint>
#include <vector>

#include "compile/plan.h"
#include "tile/tile_graph.h"

namespace plow {

// Limits of a bundle. Beyond them nothing breaks in principle, but tables of 16 bits (row strides, tile counts) and the memory of a step's
// descriptor are sized for them, and a flag with too many digits is told from a wish.
constexpr uint32_t kMaxSlots = 1024;
constexpr uint32_t kMaxWorkers = 1024;
constexpr uint32_t kMaxChunkRows = 16384;

// Rows up to which the weights of a matrix stream past all rows at once: the accumulators of a row group fit in the registers of a body (16 of
// AVX-512's 32, one a row), and it is the 16 of mma.m16n8k16.
inline constexpr uint32_t kFewRows = 16;

// Few rows: the weights stream once past all rows, one row tile. Many rows: row tiles beside column tiles. Which of them a step runs is chosen
// by its number of rows; within a program it is a run-time value.
// REQUIRES settings that apply to the graph that is going to be tiled (settings_for).
std::vector<TileOptions> program_shapes(Isa isa, uint32_t chunk_rows, uint32_t max_slots, const std::vector<TunedSetting>& settings);

// Row tiles of the program of many rows become those of the one of few, of which all bodies are the same.
void make_batch_invariant(const OpGraph& graph, std::vector<TunedSetting>& settings);

}  // namespace plow
