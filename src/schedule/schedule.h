// The schedule of one program: every tile has a worker and a place in that worker's queue, every buffer an offset in the arena, every edge a
// counter where one is needed.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "abi/packet.h"
#include "base/error.h"
#include "base/ids.h"
#include "cost/part.h"
#include "tile/tile_graph.h"

namespace plow {

using TaskId = Id<struct TaskTag>;

// Contiguous column tiles of one operator on one worker: what becomes a packet.
struct Task {
  TileOpId op;              // not valid for a protocol task
  Op protocol = Op::kLeave; // when op is not valid
  uint32_t worker = 0;
  uint32_t first_tile = 0;
  uint32_t n_tiles = 0;
  uint32_t row_first = 0;   // row tiles row_first, row_first + row_stride, ...
  uint32_t row_stride = 1;
  uint32_t first_wait = 0, n_waits = 0;      // into Schedule::waits
  uint32_t first_signal = 0, n_signals = 0;  // into Schedule::signals
  double start_ns = 0, end_ns = 0;           // predicted, of a step with the fewest rows
};

// A buffer of the arena: the output of one operator.
struct Buffer {
  NodeId node;
  uint64_t offset = 0;
  uint64_t bytes = 0;
  uint32_t row_stride = 0;  // bytes
};

struct Schedule {
  ProgramShape shape;
  uint32_t n_workers = 1;
  std::vector<Task> tasks;           // worker-major, in order of execution
  std::vector<uint32_t> task_begin;  // CSR by worker
  std::vector<Wait> waits;
  std::vector<Signal> signals;
  uint32_t n_counters = 0;
  std::vector<Buffer> buffers;
  uint64_t arena_bytes = 0;
  double predicted_ns = 0;
};

struct ScheduleOptions {
  uint32_t n_workers = 1;
  const Part* part = nullptr;  // whose times are predicted
};

Schedule schedule_tiles(const OpGraph& graph, const TileGraph& tiles, const ScheduleOptions& options);

// Errors (kVerification): a tile not scheduled or twice; an edge without an order; a wait whose threshold is not the number of its signals; a queue
// order that can deadlock; two buffers that overlap while both live.
Status verify_schedule(const OpGraph& graph, const TileGraph& tiles, const Schedule& schedule);

std::string print_schedule(const OpGraph& graph, const TileGraph& tiles, const Schedule& schedule);
Result<Schedule> parse_schedule(std::string_view text);

}  // namespace plow
