#include "text/tokenizer/trie.h"

#include <algorithm>

namespace plow {

std::vector<TrieNode> build_trie(std::vector<std::pair<std::string_view, uint32_t>> entries) {
  // Stable, so that of equal strings the last stays last.
  std::stable_sort(entries.begin(), entries.end(),
                   [](const auto& x, const auto& y) { return x.first < y.first; });
  std::vector<TrieNode> nodes;
  if (std::all_of(entries.begin(), entries.end(), [](const auto& e) { return e.first.empty(); }))
    return nodes;

  // Node i stands for entries [begin, end), which share their first `depth` bytes.
  struct Range {
    size_t begin, end, depth;
  };
  std::vector<Range> ranges = {{0, entries.size(), 0}};
  nodes.emplace_back();
  for (size_t i = 0; i < nodes.size(); ++i) {
    auto [begin, end, depth] = ranges[i];
    while (begin < end && entries[begin].first.size() == depth) {
      if (depth > 0) nodes[i].value = entries[begin].second;
      ++begin;
    }
    nodes[i].first_child = static_cast<uint32_t>(nodes.size());
    while (begin < end) {
      const char label = entries[begin].first[depth];
      size_t next = begin;
      while (next < end && entries[next].first[depth] == label) ++next;
      TrieNode child;
      child.label = static_cast<uint8_t>(label);
      nodes.push_back(child);
      ranges.push_back({begin, next, depth + 1});
      ++nodes[i].child_count;
      begin = next;
    }
  }
  return nodes;
}

TrieView::TrieView(std::span<const TrieNode> nodes) : nodes_(nodes) {
  std::fill(std::begin(root_child_), std::end(root_child_), kNoNode);
  if (nodes_.empty()) return;
  for (uint32_t i = 0; i < nodes_[0].child_count; ++i) {
    const uint32_t child = nodes_[0].first_child + i;
    root_child_[nodes_[child].label] = child;
  }
}

bool TrieView::valid(std::span<const TrieNode> nodes, uint32_t value_limit) {
  for (size_t i = 0; i < nodes.size(); ++i) {
    const TrieNode& node = nodes[i];
    if (node.value != kNoTrieValue && node.value >= value_limit) return false;
    if (node.child_count == 0) continue;
    if (node.first_child <= i || node.first_child > nodes.size()) return false;
    if (node.child_count > nodes.size() - node.first_child) return false;
    for (size_t c = node.first_child + 1; c < size_t{node.first_child} + node.child_count; ++c) {
      if (nodes[c - 1].label >= nodes[c].label) return false;
    }
  }
  return true;
}

uint32_t TrieView::child(uint32_t node, uint8_t byte) const {
  if (node == kRoot) return root_child_[byte];
  const TrieNode& parent = nodes_[node];
  const auto children = nodes_.subspan(parent.first_child, parent.child_count);
  const auto found = std::lower_bound(children.begin(), children.end(), byte,
                                      [](const TrieNode& n, uint8_t label) { return n.label < label; });
  if (found == children.end() || found->label != byte) return kNoNode;
  return parent.first_child + static_cast<uint32_t>(found - children.begin());
}

std::pair<size_t, uint32_t> TrieView::longest_prefix(std::string_view text) const {
  std::pair<size_t, uint32_t> best = {0, kNoTrieValue};
  uint32_t node = kRoot;
  const size_t limit = std::min(text.size(), kMaxTriePieceBytes);
  for (size_t i = 0; i < limit; ++i) {
    node = child(node, static_cast<uint8_t>(text[i]));
    if (node == kNoNode) break;
    if (nodes_[node].value != kNoTrieValue) best = {i + 1, nodes_[node].value};
  }
  return best;
}

}  // namespace plow
