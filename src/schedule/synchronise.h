// The second half of scheduling: the waits and signals that the tile graph's edges need, and no others.
#pragma once

#include "schedule/place.h"
#include "schedule/task_order.h"

namespace plow {

struct Synchronisation {
  std::vector<std::vector<Wait>> waits;      // by task of the placement
  std::vector<std::vector<Signal>> signals;  // by task
  uint32_t n_counters = 0;
};

// `order` comes out complete: it holds what each task knows, for the arena.
Synchronisation synchronise(const TileGraph& tiles, const Placement& placement, TaskOrder& order);

}  // namespace plow
