// The blocks of one KV group: a fixed number, each in use by at most one sequence or free.
#pragma once

#include <cstdint>
#include <vector>

namespace plow {

class BlockPool {
 public:
  explicit BlockPool(uint32_t n_blocks);

  uint32_t n_blocks() const { return static_cast<uint32_t>(used_.size()); }
  uint32_t n_free() const { return static_cast<uint32_t>(free_.size()); }

  uint32_t take();  // REQUIRES n_free() > 0; the block that was given back last, whose bytes are the
                    // likeliest to be in a cache
  void give(uint32_t block);  // REQUIRES a block that was taken and not given back

 private:
  std::vector<uint32_t> free_;
  std::vector<bool> used_;
};

}  // namespace plow
