// The blocks of one KV group: a fixed number, each in use by one or several sequences or free.
//
// A block that is whole can be given a name, which says what it holds. When nobody uses it any more it is
// free and yet kept: it is found by its name until a sequence needs the room, and those that were let go
// longest ago lose their names first.
#pragma once

#include "base/digest.h"

#include <cstdint>
#include <cstring>
#include <optional>
#include <unordered_map>
#include <vector>

namespace plow {

// Stands for the tokens of a block and of all before it (prefix_names.h).
using BlockName = Sha256;

class BlockPool {
 public:
  explicit BlockPool(uint32_t n_blocks);

  uint32_t n_blocks() const { return static_cast<uint32_t>(users_.size()); }
  uint32_t n_free() const { return static_cast<uint32_t>(free_.size()) + n_kept_; }
  uint32_t n_kept() const { return n_kept_; }  // of the free ones, those that still have a name
  uint64_t evictions() const { return evictions_; }

  // A block for one user, without a name. REQUIRES n_free() > 0. One that holds nothing is taken first, the
  // last that was given back, whose bytes are the likeliest to be in a cache; then the kept one that was let
  // go first.
  uint32_t take();
  // One user less. REQUIRES a block in use.
  void give(uint32_t block);

  // Names a block in use whose bytes change no more. When another block has the name, nothing happens.
  void name(uint32_t block, const BlockName& name);
  std::optional<uint32_t> find(const BlockName& name) const;
  // One user more, of a block that find() gave.
  void hold(uint32_t block);
  bool in_use(uint32_t block) const { return users_[block] > 0; }

 private:
  struct NameHash {  // the first bytes of a SHA-256 are as good as any hash of it
    size_t operator()(const BlockName& name) const {
      size_t hash;
      std::memcpy(&hash, name.data(), sizeof(hash));
      return hash;
    }
  };
  void unlink(uint32_t block);

  std::vector<uint32_t> users_;  // by block
  std::vector<uint32_t> free_;   // without a name
  std::vector<std::optional<BlockName>> names_;
  std::unordered_map<BlockName, uint32_t, NameHash> by_name_;
  // The kept ones in order of their last use: a ring through the entry n_blocks, whose next was let go first.
  std::vector<uint32_t> next_, previous_;
  uint32_t n_kept_ = 0;
  uint64_t evictions_ = 0;
};

}  // namespace plow
