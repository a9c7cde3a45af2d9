// How the keys and values of all layers lie in blocks. Layers whose caches live and die together form a group; a block of a group holds a run of
// positions for every layer of the group, so one block table serves them all and a window's blocks are freed together.
#pragma once

#include <cstdint>
#include <vector>

#include "abi/header.h"
#include "graph/graph.h"

namespace plow {

struct KvPlace {
  uint32_t group = 0;
  uint64_t offset = 0;  // within a block
  uint64_t bytes = 0;   // of the layer within a block
};

struct KvPlan {
  std::vector<KvGroup> groups;
  std::vector<KvPlace> of_state;  // by OpGraph::kv_states
  Layout layout = Layout::kKvBlocks;
};

// Positions of a block. On x86-64 the lanes of a vector of f32: scores of a block are one vector. On GPUs a unit of attention's pass.
uint32_t kv_block_tokens(Isa isa);

// A state's dtype is that of its node.
KvPlan plan_kv(const OpGraph& graph, Isa isa);

}  // namespace plow
