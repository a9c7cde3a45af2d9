#include "runtime/block_pool.h"

#include "base/check.h"

namespace plow {

BlockPool::BlockPool(uint32_t n_blocks)
    : users_(n_blocks, 0),
      names_(n_blocks),
      next_(n_blocks + 1, n_blocks),
      previous_(n_blocks + 1, n_blocks) {
  free_.reserve(n_blocks);
  for (uint32_t i = n_blocks; i-- > 0;) free_.push_back(i);
}

uint32_t BlockPool::take() {
  PLOW_CHECK(n_free() > 0, "a block was taken from an empty pool of {}", n_blocks());
  uint32_t block;
  if (free_.empty()) {
    block = next_[n_blocks()];
    unlink(block);
    by_name_.erase(*names_[block]);
    names_[block].reset();
    ++evictions_;
  } else {
    block = free_.back();
    free_.pop_back();
  }
  users_[block] = 1;
  return block;
}

void BlockPool::give(uint32_t block) {
  PLOW_CHECK(block < users_.size() && in_use(block), "block {} of {} was given back and is not in use", block,
             n_blocks());
  if (--users_[block] > 0) return;
  if (!names_[block]) {
    free_.push_back(block);
    return;
  }
  const uint32_t end = n_blocks();
  next_[block] = end;
  previous_[block] = previous_[end];
  next_[previous_[end]] = block;
  previous_[end] = block;
  ++n_kept_;
}

void BlockPool::name(uint32_t block, const BlockName& name) {
  PLOW_CHECK(block < users_.size() && in_use(block), "block {} of {} was named and is not in use", block,
             n_blocks());
  if (!names_[block] && by_name_.emplace(name, block).second) names_[block] = name;
}

std::optional<uint32_t> BlockPool::find(const BlockName& name) const {
  const auto it = by_name_.find(name);
  return it == by_name_.end() ? std::nullopt : std::optional(it->second);
}

void BlockPool::hold(uint32_t block) {
  PLOW_CHECK(block < users_.size() && names_[block], "block {} of {} has no name and cannot be shared", block,
             n_blocks());
  if (users_[block]++ == 0) unlink(block);
}

void BlockPool::unlink(uint32_t block) {
  next_[previous_[block]] = next_[block];
  previous_[next_[block]] = previous_[block];
  --n_kept_;
}

}  // namespace plow
