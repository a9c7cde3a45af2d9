// The tokens of a vocabulary by their bytes, as a tree: tokens with a common beginning share its nodes, so
// that a grammar looks at each beginning once.
#pragma once

#include "base/error.h"
#include "grammar/matcher.h"

#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <vector>

namespace plow {

class TokenTrie {
 public:
  // Tokens without bytes, as control tokens shall be given, are never allowed. Longer ones than kLongest
  // neither.
  TokenTrie(uint32_t vocab, const std::function<std::string(uint32_t)>& bytes_of);
  static constexpr size_t kLongest = 512;  // bytes; the longest tokens known are runs of 128 blanks

  // Sets the bits of the tokens that may follow `state`. REQUIRES mask.size() >= (vocab + 31) / 32. Errors
  // (kDoesNotFit): the matcher overflowed.
  Status allow(Matcher& matcher, Matcher::State state, std::span<uint32_t> mask) const;

  const std::string& bytes(uint32_t token) const { return bytes_[token]; }
  size_t n_nodes() const { return nodes_.size(); }

 private:
  struct Node {  // in the order of a walk that goes down first
    uint8_t byte;
    uint16_t depth;        // 1: the first byte of tokens
    uint32_t end;          // index behind the last node below
    uint32_t first_token;  // into tokens_, those that end here; the next node's first_token ends them
  };

  std::vector<std::string> bytes_;  // by token
  std::vector<Node> nodes_;
  std::vector<uint32_t> tokens_;
};

}  // namespace plow
