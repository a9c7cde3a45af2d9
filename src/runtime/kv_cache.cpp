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
    // The last first: a block is of no use to others without those before it, so it goes before them.
    for (uint32_t i = table_width_; i-- > 0;) {
      if (table[i] == kNoBlock) continue;
      group.pool.give(table[i]);
      table[i] = kNoBlock;
    }
    group.first[slot] = 0;
  }
}

uint32_t KvCache::shareable(uint32_t first, std::span<const BlockName> names) const {
  auto most = groups_.empty() ? 0 : static_cast<uint32_t>(names.size());
  // Groups that keep everything bound the others, whose blocks may have gaps.
  for (const Group& group : groups_) {
    if (group.shape.window != 0) continue;
    uint32_t n = first;
    while (n < most && group.pool.find(names[n])) ++n;
    most = n;
  }
  std::vector<bool> fits(most + 1, true);  // by number of blocks
  for (const Group& group : groups_) {
    if (group.shape.window == 0) continue;
    uint32_t run = first;  // the first block of those that are held without a gap up to this one
    for (uint32_t n = first + 1; n <= most; ++n) {
      if (!group.pool.find(names[n - 1])) run = n;
      const uint32_t block = group.shape.block_tokens;
      if (run > std::max(first, window_begin(group.shape, n * block) / block)) fits[n] = false;
    }
  }
  while (most > first && !fits[most]) --most;
  return most > first ? most : 0;
}

void KvCache::share(uint32_t slot, uint32_t first, std::span<const BlockName> names) {
  const auto end = static_cast<uint32_t>(names.size());
  for (Group& group : groups_) {
    const uint32_t block = group.shape.block_tokens;
    uint32_t* table = row(group, slot);
    for (uint32_t i = std::max(first, window_begin(group.shape, end * block) / block); i < end; ++i) {
      table[i] = *group.pool.find(names[i]);
      group.pool.hold(table[i]);
    }
    leave_window(group, {slot, end * block, 1});
  }
}

void KvCache::name(uint32_t slot, uint32_t first, std::span<const BlockName> names) {
  for (Group& group : groups_) {
    const uint32_t* table = row(group, slot);
    for (uint32_t i = 0; i < names.size(); ++i) {
      if (table[first + i] != kNoBlock) group.pool.name(table[first + i], names[i]);
    }
  }
}

uint32_t KvCache::held(uint32_t group, uint32_t slot) const {
  const uint32_t* table = groups_[group].table.data() + size_t{slot} * table_width_;
  return static_cast<uint32_t>(
      std::count_if(table, table + table_width_, [](uint32_t b) { return b != kNoBlock; }));
}

bool KvCache::holds_window_of(uint32_t slot, uint32_t position) const {
  return std::all_of(groups_.begin(), groups_.end(), [&](const Group& group) {
    return group.first[slot] <= window_begin(group.shape, position) / group.shape.block_tokens;
  });
}

}  // namespace plow
