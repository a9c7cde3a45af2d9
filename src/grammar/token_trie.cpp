#include "grammar/token_trie.h"

#include <algorithm>
#include <array>
#include <numeric>

namespace plow {

TokenTrie::TokenTrie(uint32_t vocab, const std::function<std::string(uint32_t)>& bytes_of) {
  std::vector<uint32_t> order;
  for (uint32_t token = 0; token < vocab; ++token) {
    bytes_.push_back(bytes_of(token));
    if (bytes_.back().size() > kLongest) bytes_.back().clear();
    if (!bytes_.back().empty()) order.push_back(token);
  }
  std::ranges::sort(order, [this](uint32_t a, uint32_t b) {
    return bytes_[a] != bytes_[b] ? bytes_[a] < bytes_[b] : a < b;
  });
  std::vector<uint32_t> path;  // nodes from the root to the token before
  const std::string* before = nullptr;
  for (const uint32_t token : order) {
    const std::string& text = bytes_[token];
    size_t common = 0;
    if (before != nullptr) {
      while (common < std::min(text.size(), before->size()) && text[common] == (*before)[common]) ++common;
    }
    for (; path.size() > common; path.pop_back())
      nodes_[path.back()].end = static_cast<uint32_t>(nodes_.size());
    for (size_t i = common; i < text.size(); ++i) {
      path.push_back(static_cast<uint32_t>(nodes_.size()));
      nodes_.push_back({static_cast<uint8_t>(text[i]), static_cast<uint16_t>(i + 1), 0,
                        static_cast<uint32_t>(tokens_.size())});
    }
    tokens_.push_back(token);
    before = &text;
  }
  for (const uint32_t node : path) nodes_[node].end = static_cast<uint32_t>(nodes_.size());
  nodes_.push_back({0, 0, static_cast<uint32_t>(nodes_.size() + 1), static_cast<uint32_t>(tokens_.size())});
}

Status TokenTrie::allow(Matcher& matcher, Matcher::State state, std::span<uint32_t> mask) const {
  std::array<Matcher::State, kLongest + 1> states;  // by depth
  states[0] = state;
  const auto n = static_cast<uint32_t>(nodes_.size() - 1);
  for (uint32_t i = 0; i < n;) {
    const Node& node = nodes_[i];
    const Matcher::State next = matcher.step(states[node.depth - 1u], node.byte);
    if (next == Matcher::kDead) {
      i = node.end;
      continue;
    }
    states[node.depth] = next;
    for (uint32_t t = node.first_token; t < nodes_[i + 1].first_token; ++t)
      mask[tokens_[t] / 32] |= 1u << (tokens_[t] % 32);
    ++i;
  }
  if (matcher.overflowed())
    return does_not_fit(
        "The grammar can be read in too many ways at once; make its alternatives differ earlier.");
  return {};
}

}  // namespace plow
