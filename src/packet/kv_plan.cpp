#include "packet/kv_plan.h"

#include "base/check.h"
#include "isa/gpu/geometry.h"
#include "isa/x86_64/geometry.h"

namespace plow {

namespace {
constexpr uint64_t kKvAlignment = 64;  // a layer of a block begins at a cache line
}

uint32_t kv_block_tokens(Isa isa) {
  switch (isa) {
    case Isa::kX86_64: return x86_64::kKvBlockTokens;
    case Isa::kSm90a:
    case Isa::kSm120:
    case Isa::kGfx942:
    case Isa::kGfx950: return gpu::kKvBlockTokens;
  }
  PLOW_CHECK(false, "no block size for ISA {}", static_cast<uint32_t>(isa));
  __builtin_unreachable();
}

KvPlan plan_kv(const OpGraph& graph, Isa isa) {
  KvPlan plan;
  plan.layout = isa == Isa::kX86_64 ? Layout::kKvBlocks : Layout::kKvRows;
  plan.of_state.resize(graph.kv_states.size());
  for (const Node& node : graph.nodes) {
    if (node.op != Op::kKvState) continue;
    const KvStateRef& state = graph.kv_states[node.leaf];
    uint32_t group = 0;
    while (group < plan.groups.size() && plan.groups[group].window != state.window) ++group;
    if (group == plan.groups.size()) plan.groups.push_back({state.window, kv_block_tokens(isa), 0, 0, 0});
    KvGroup& g = plan.groups[group];
    const uint64_t bytes = uint64_t{2} * state.kv_heads * state.head_dim * g.block_tokens * dtype_bytes(node.dtype);
    plan.of_state[node.leaf] = {group, g.block_bytes, bytes};
    g.block_bytes += (bytes + kKvAlignment - 1) / kKvAlignment * kKvAlignment;
    ++g.n_layers;
  }
  return plan;
}

}  // namespace plow
