#include "runtime/kv_cache.h"

#include <fmt/format.h>

#include <algorithm>

namespace plow {
namespace {

// The first position that a row at `position` reads.
uint32_t window_begin(const KvGroup& group, uint32_t position) {
  return group.window != 0 && position + 1 > group.window ? position + 1 - group.window : 0;
}

}  // namespace

KvCache::KvCache(std::span<const KvGroup> groups, std::span<const uint32_t> blocks, uint32_t slots,
                 uint32_t context) {
  for (const KvGroup& group : groups) {
    table_width_ = std::max(table_width_, (context + group.block_tokens - 1) / group.block_tokens);
  }
  for (size_t g = 0; g < groups.size(); ++g) {
    groups_.push_back({groups[g], BlockPool(blocks[g]),
                       std::vector<uint32_t>(size_t{slots} * table_width_, kNoBlock),
                       std::vector<uint32_t>(slots, 0)});
  }
}

void KvCache::leave_window(Group& group, const KvRun& run) {
  const uint32_t live = window_begin(group.shape, run.first) / group.shape.block_tokens;
  uint32_t* table = row(group, run.slot);
  for (uint32_t& i = group.first[run.slot]; i < live; ++i) {
    if (table[i] == kNoBlock) continue;
    group.pool.give(table[i]);
    table[i] = kNoBlock;
  }
}

Status KvCache::reserve(std::span<const KvRun> runs) {
  for (uint32_t g = 0; g < n_groups(); ++g) {
    Group& group = groups_[g];
    uint32_t needed = 0;
    for (const KvRun& run : runs) {
      leave_window(group, run);
      const uint32_t* table = row(group, run.slot);
      const uint32_t end = (run.first + run.count - 1) / group.shape.block_tokens + 1;
      for (uint32_t i = run.first / group.shape.block_tokens; i < end; ++i)
        needed += table[i] == kNoBlock ? 1 : 0;
    }
    if (needed > group.pool.n_free()) {
      return does_not_fit(fmt::format(
          "The KV cache has {} of {} blocks of {} positions free (group {}), and the step needs {}. Close a "
          "sequence, or load the bundle with more slots.",
          group.pool.n_free(), group.pool.n_blocks(), group.shape.block_tokens, g, needed));
    }
  }
  for (Group& group : groups_) {
    for (const KvRun& run : runs) {
      uint32_t* table = row(group, run.slot);
      const uint32_t end = (run.first + run.count - 1) / group.shape.block_tokens + 1;
      for (uint32_t i = run.first / group.shape.block_tokens; i < end; ++i) {
        if (table[i] == kNoBlock) table[i] = group.pool.take();
      }
    }
  }
  return {};
}

void KvCache::release(uint32_t slot) {
  for (Group& group : groups_) {
    uint32_t* table = row(group, slot);
    for (uint32_t i = 0; i < table_width_; ++i) {
      if (table[i] == kNoBlock) continue;
      group.pool.give(table[i]);
      table[i] = kNoBlock;
    }
    group.first[slot] = 0;
  }
}

bool KvCache::holds_window_of(uint32_t slot, uint32_t position) const {
  return std::all_of(groups_.begin(), groups_.end(), [&](const Group& group) {
    return group.first[slot] <= window_begin(group.shape, position) / group.shape.block_tokens;
  });
}

}  // namespace plow
