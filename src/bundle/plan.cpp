#include "abi/step.h"
#include "bundle/bundle.h"

#include <algorithm>

namespace plow {

uint32_t blocks_per_sequence(const KvGroup& group, uint32_t context, uint32_t max_rows) {
  const uint64_t block = group.block_tokens;
  const uint64_t whole = (context + block - 1) / block;
  if (group.window == 0) return static_cast<uint32_t>(whole);
  // A step of rows p .. p + max_rows - 1 reads from p - window + 1 on. A run of n positions touches at most
  // ceil((n - 1) / block) + 1 blocks, wherever it begins.
  const uint64_t run = uint64_t{group.window} - 1 + std::max<uint64_t>(max_rows, 1);
  const uint64_t touched = (run - 1 + block - 1) / block + 1;
  return static_cast<uint32_t>(std::min(whole, touched));
}

namespace {

// What the step descriptor and its columns take (abi/step.h), for the program that takes the most.
uint64_t step_bytes(const BundleFile& bundle, uint64_t rows, uint64_t samples, uint64_t slots,
                    uint64_t context) {
  uint64_t bytes = sizeof(StepDescriptor);
  bytes += rows * (sizeof(Span) +
                   3 * sizeof(uint32_t));  // spans (one a row at most), token ids, positions, row slots
  bytes += samples * (sizeof(uint32_t) + sizeof(SamplingParams));
  bytes += kMaxSteps * samples * sizeof(Sampled);
  bytes += slots * context * sizeof(uint32_t);  // history
  uint64_t width = 0;                           // of every group's block table: the widest's
  for (const KvGroup& group : bundle.kv_groups())
    width = std::max(width, (context + group.block_tokens - 1) / group.block_tokens);
  bytes += bundle.kv_groups().size() * (sizeof(uint32_t*) + slots * width * sizeof(uint32_t));
  return bytes;
}

}  // namespace

MemoryPlan plan_memory(const BundleFile& bundle, uint32_t slots, uint32_t context) {
  MemoryPlan plan;
  uint32_t max_rows = 0, max_samples = 0;
  for (const ProgramView& program : bundle.programs()) {
    const ProgramEntry& entry = *program.entry;
    plan.arena = std::max(plan.arena, entry.arena_bytes);
    plan.counters = std::max(plan.counters, uint64_t{entry.n_counters} * kCounterLineBytes * kCounterBanks);
    max_rows = std::max(max_rows, entry.max_rows);
    max_samples = std::max(max_samples, entry.max_samples);
  }
  plan.weights = bundle.header().tape_bytes;
  for (const KvGroup& group : bundle.kv_groups()) {
    plan.kv += uint64_t{slots} * blocks_per_sequence(group, context, max_rows) * group.block_bytes;
  }
  plan.step = step_bytes(bundle, max_rows, max_samples, slots, context);
  // Workers' scratch begins at a line, so that no two share one.
  const uint64_t lines =
      (uint64_t{bundle.header().scratch_bytes} + kCounterLineBytes - 1) / kCounterLineBytes;
  plan.scratch = bundle.header().n_workers * lines * kCounterLineBytes;
  return plan;
}

}  // namespace plow
