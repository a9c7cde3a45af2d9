#include "schedule/arena.h"

#include <algorithm>

namespace plow {

namespace {

uint64_t align_up(uint64_t value) { return (value + kArenaAlignment - 1) / kArenaAlignment * kArenaAlignment; }

Buffer size_buffer(const OpGraph& graph, const TileGraph& tiles, const TileOp& op) {
  const Node& node = graph.node(op.from);
  const uint32_t rows = op.row_kind == Rows::kTokens ? tiles.shape.max_rows : tiles.shape.max_samples;
  Buffer buffer;
  buffer.node = op.from;
  buffer.row_stride = static_cast<uint32_t>(align_up(uint64_t{node.shape.cols} * dtype_bytes(node.dtype)));
  buffer.bytes = uint64_t{buffer.row_stride} * rows;
  return buffer;
}

struct Placed {
  Buffer buffer;
  uint32_t op;
};

// Whether all tasks in `users` are finished before any in `writers` begins.
bool finished_before(const TaskOrder& order, const std::vector<uint32_t>& users, const std::vector<uint32_t>& writers) {
  return std::all_of(writers.begin(), writers.end(), [&](uint32_t writer) {
    return std::all_of(users.begin(), users.end(), [&](uint32_t user) { return order.knows_full(writer, user); });
  });
}

// The lowest offset at which `bytes` fit between the taken intervals.
uint64_t first_fit(std::vector<std::pair<uint64_t, uint64_t>>& taken, uint64_t bytes) {
  std::sort(taken.begin(), taken.end());
  uint64_t offset = 0;
  for (const auto& [begin, end] : taken) {
    if (offset + bytes <= begin) break;
    offset = std::max(offset, end);
  }
  return offset;
}

}  // namespace

bool has_buffer(const Node& node) { return !is_leaf(node.op) && !appends_kv(node.op) && node.op != Op::kSample; }

std::vector<std::vector<uint32_t>> tasks_touching(const OpGraph& graph, const TileGraph& tiles,
                                                  const std::vector<std::vector<uint32_t>>& tasks_of_op) {
  std::vector<std::vector<uint32_t>> touching = tasks_of_op;
  for (uint32_t o = 0; o < tiles.ops.size(); ++o) {
    for (const NodeId input : graph.inputs_of(tiles.ops[o].from)) {
      const TileOpId producer = tiles.op_of_node[input.value];
      if (!producer.valid()) continue;
      auto& list = touching[producer.value];
      list.insert(list.end(), tasks_of_op[o].begin(), tasks_of_op[o].end());
    }
  }
  return touching;
}

Arena colour_arena(const OpGraph& graph, const TileGraph& tiles, const Placement& placement, const TaskOrder& order) {
  const auto touching = tasks_touching(graph, tiles, placement.tasks_of_op);
  // Operators in the order in which their first tasks were placed: the order in which buffers come to life.
  std::vector<uint32_t> ops;
  for (uint32_t o = 0; o < tiles.ops.size(); ++o) {
    if (has_buffer(graph.node(tiles.ops[o].from))) ops.push_back(o);
  }
  std::sort(ops.begin(), ops.end(), [&](uint32_t a, uint32_t b) { return placement.tasks_of_op[a][0] < placement.tasks_of_op[b][0]; });

  Arena arena;
  std::vector<Placed> live;  // buffers that a later one may still have to avoid
  std::vector<std::pair<uint64_t, uint64_t>> taken;
  for (const uint32_t o : ops) {
    Buffer buffer = size_buffer(graph, tiles, tiles.ops[o]);
    taken.clear();
    for (const Placed& other : live) {
      if (!finished_before(order, touching[other.op], placement.tasks_of_op[o])) {
        taken.emplace_back(other.buffer.offset, other.buffer.offset + other.buffer.bytes);
      }
    }
    buffer.offset = first_fit(taken, buffer.bytes);
    arena.bytes = std::max(arena.bytes, buffer.offset + buffer.bytes);
    live.push_back({buffer, o});
    arena.buffers.push_back(buffer);
  }
  std::sort(arena.buffers.begin(), arena.buffers.end(), [](const Buffer& a, const Buffer& b) { return a.node < b.node; });
  return arena;
}

}  // namespace plow
