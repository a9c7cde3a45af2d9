// Names of the whole blocks of a sequence, for sharing what sequences begin with: a chain of SHA-256, so that
// nobody can make two beginnings that have one name. The first link is the digest of the salt, each other one
// that of the link before it and of its block's tokens (u32, little-endian).
#pragma once

#include "runtime/block_pool.h"

#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

namespace plow {

class PrefixNames {
 public:
  // Sequences of different salts share nothing. REQUIRES block_tokens > 0.
  PrefixNames(uint32_t block_tokens, std::string_view salt);

  // names[i] stands for tokens 0 .. (i + 1) * block_tokens - 1: those of all whole blocks among `tokens`.
  // REQUIRES that `tokens` begins with what the calls before were given. Valid until the next call.
  std::span<const BlockName> of(std::span<const uint32_t> tokens);

 private:
  uint32_t block_tokens_;
  BlockName root_;
  std::vector<BlockName> names_;
};

}  // namespace plow
