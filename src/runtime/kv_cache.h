// Which blocks hold which positions of which sequence: the block tables of every KV group, and the pools
// behind them.
//
// A sequence of a slot has blocks for the positions that its future rows may read or write. In a group with a
// window, blocks whose positions have all left the window are given back as the sequence grows.
//
// Sequences that begin alike share the blocks of their beginning, whole ones only: nobody writes to those any
// more. A beginning of n blocks can be taken over when every group still has all of its blocks that a row
// behind it reads: all n, or those in the window.
#pragma once

#include "abi/header.h"
#include "base/error.h"
#include "runtime/block_pool.h"

#include <cstdint>
#include <span>
#include <vector>

namespace plow {

constexpr uint32_t kNoBlock = 0xffffffffu;

// Positions [first, first + count) of a slot that a step is to write.
struct KvRun {
  uint32_t slot;
  uint32_t first;
  uint32_t count;
};

class KvCache {
 public:
  // `blocks[g]` blocks in the pool of group g. Tables hold `context` positions a slot.
  KvCache(std::span<const KvGroup> groups, std::span<const uint32_t> blocks, uint32_t slots,
          uint32_t context);

  // Gives back what left the windows of the runs' first rows, then takes blocks for all positions of all
  // runs, or, when they are too few, none. Errors (kDoesNotFit): with the number needed and the number free.
  // REQUIRES positions below context; a slot in one run at most.
  Status reserve(std::span<const KvRun> runs);

  // Gives back all blocks of a slot.
  void release(uint32_t slot);

  // Whether a row at `position` would find all earlier positions that it reads: what a window has let go does
  // not come back.
  bool holds_window_of(uint32_t slot, uint32_t position) const;

  // How many blocks of a sequence that begins with what `names` stand for can be taken over, in all groups,
  // when those before `first` are there already. 0, or more than `first`. REQUIRES that all groups have
  // blocks of the same number of positions.
  uint32_t shareable(uint32_t first, std::span<const BlockName> names) const;
  // Takes them over, from the block `first` on, which is where the slot's sequence ends.
  void share(uint32_t slot, uint32_t first, std::span<const BlockName> names);
  // Names the slot's blocks from `first` on; those that left a window are passed over. REQUIRES that they are
  // whole.
  void name(uint32_t slot, uint32_t first, std::span<const BlockName> names);

  uint32_t held(uint32_t group, uint32_t slot) const;  // blocks that the slot has

  uint32_t n_groups() const { return static_cast<uint32_t>(groups_.size()); }
  const BlockPool& pool(uint32_t group) const { return groups_[group].pool; }
  uint32_t table_width() const { return table_width_; }
  // u32[slots][table_width]; entries without a block are kNoBlock.
  const uint32_t* table(uint32_t group) const { return groups_[group].table.data(); }

 private:
  struct Group {
    KvGroup shape;
    BlockPool pool;
    std::vector<uint32_t> table;  // [slots][table_width]
    std::vector<uint32_t> first;  // by slot: entries of the table before this one were given back
  };

  uint32_t* row(Group& group, uint32_t slot) const {
    return group.table.data() + size_t{slot} * table_width_;
  }
  void leave_window(Group& group, const KvRun& run);

  uint32_t table_width_ = 0;
  std::vector<Group> groups_;
};

}  // namespace plow
