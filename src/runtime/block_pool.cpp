#include "runtime/block_pool.h"

#include "base/check.h"

namespace plow {

BlockPool::BlockPool(uint32_t n_blocks) : used_(n_blocks, false) {
  free_.reserve(n_blocks);
  for (uint32_t i = n_blocks; i-- > 0;) free_.push_back(i);
}

uint32_t BlockPool::take() {
  PLOW_CHECK(!free_.empty(), "a block was taken from an empty pool of {}", n_blocks());
  const uint32_t block = free_.back();
  free_.pop_back();
  used_[block] = true;
  return block;
}

void BlockPool::give(uint32_t block) {
  PLOW_CHECK(block < used_.size() && used_[block], "block {} of {} was given back and is not in use", block,
             n_blocks());
  used_[block] = false;
  free_.push_back(block);
}

}  // namespace plow
