// Where each activation lies in the arena. Two buffers may share memory only if every task that touches the one is finished, in every legal
// execution, before any task that touches the other begins: lifetimes are intervals of that order, not of predicted time.
#pragma once

#include <cstdint>
#include <vector>

#include "schedule/place.h"
#include "schedule/task_order.h"

namespace plow {

struct Arena {
  std::vector<Buffer> buffers;  // in the order of the tile ops that write them
  uint64_t bytes = 0;
};

// A row of a buffer and a buffer begin at multiples of this: a cache line, which is also the widest vector.
constexpr uint32_t kArenaAlignment = 64;

// Whether the operator's output lies in the arena (the cache and the step's tokens do not).
bool has_buffer(const Node& node);

// Tasks that touch the output of each tile op: its own and its consumers'. By tile op.
std::vector<std::vector<uint32_t>> tasks_touching(const OpGraph& graph, const TileGraph& tiles,
                                                  const std::vector<std::vector<uint32_t>>& tasks_of_op);

Arena colour_arena(const OpGraph& graph, const TileGraph& tiles, const Placement& placement, const TaskOrder& order);

}  // namespace plow
