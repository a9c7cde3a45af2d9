// The first half of scheduling: which worker does which tiles, in what order. Interval list scheduling on the cost model's times, critical path first.
#pragma once

#include <cstdint>
#include <vector>

#include "cost/cost.h"
#include "schedule/schedule.h"

namespace plow {

struct Placement {
  std::vector<Task> tasks;            // in the order of placing: producers before consumers, queues in order
  std::vector<uint32_t> queue_index;  // by task: place in its worker's queue
  std::vector<std::vector<uint32_t>> tasks_of_op;  // by tile op, by first tile
  std::vector<uint32_t> queue_length;              // by worker
  double makespan_ns = 0;
};

Placement place_tasks(const OpGraph& graph, const TileGraph& tiles, const Part& part, uint32_t n_workers);

// The step that a program is placed for: one row at a context of 1,024 for a program of few rows; for one of many rows, the
// whole program with the first rows of one sequence.
StepSize typical_step(const ProgramShape& shape);

// The most row tiles that a kind of rows can have in a step of the program.
uint32_t max_row_tiles(const ProgramShape& shape, Rows rows);

}  // namespace plow
