// A trie over byte strings, laid out as it stands in the table: an array of nodes in breadth-first order, so
// the children of a node are neighbours, sorted by their byte, and always behind their parent (which makes a
// cycle impossible).
#pragma once

#include <cstdint>
#include <span>
#include <string_view>
#include <utility>
#include <vector>

namespace plow {

// The longest string that a trie holds, in bytes (sentencepiece pieces have at most a few dozen). Searching
// costs text length times this.
inline constexpr size_t kMaxTriePieceBytes = 1024;

inline constexpr uint32_t kNoTrieValue = 0xffffffffu;

struct TrieNode {
  uint32_t first_child = 0;
  uint32_t value = kNoTrieValue;
  uint16_t child_count = 0;  // at most 256
  uint8_t label = 0;
  uint8_t reserved = 0;
};

// Builds the nodes. A string that occurs twice keeps the value that comes last; the empty string is left out.
// The result has no node when there is nothing in it.
std::vector<TrieNode> build_trie(std::vector<std::pair<std::string_view, uint32_t>> entries);

class TrieView {
 public:
  TrieView() = default;
  explicit TrieView(std::span<const TrieNode> nodes);

  // True when every child lies behind its parent and inside, labels ascend, and values are below
  // `value_limit`.
  static bool valid(std::span<const TrieNode> nodes, uint32_t value_limit);

  bool empty() const { return nodes_.empty(); }
  static constexpr uint32_t kRoot = 0;
  static constexpr uint32_t kNoNode = 0xffffffffu;
  // The child of `node` for `byte`, or kNoNode. REQUIRES !empty().
  uint32_t child(uint32_t node, uint8_t byte) const;
  uint32_t value(uint32_t node) const { return nodes_[node].value; }

  // The longest string of the trie that `text` begins with: its length and value; length 0 when there is
  // none.
  std::pair<size_t, uint32_t> longest_prefix(std::string_view text) const;

 private:
  std::span<const TrieNode> nodes_;
  uint32_t root_child_[256] = {};  // most searches end at the root: no binary search there
};

}  // namespace plow
