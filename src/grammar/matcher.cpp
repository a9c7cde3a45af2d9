#include "grammar/matcher.h"

#include <algorithm>
#include <utility>

namespace plow {
namespace {

constexpr uint32_t kBottom = 0;

uint64_t pair_key(uint32_t a, uint32_t b) { return uint64_t{a} << 32 | b; }

// FNV-1a over words.
void mix(uint64_t& hash, uint64_t word) { hash = (hash ^ word) * 0x100000001b3u; }

}  // namespace

Matcher::Matcher(std::shared_ptr<const Automaton> automaton)
    : automaton_(std::move(automaton)), classes_(automaton_->member_of.size()) {
  reset();
  start_ = close_and_number({{automaton_->entries[automaton_->root], kBottom}});
}

void Matcher::reset() {
  sets_.assign(1, {0, 0, false});
  ways_.clear();
  next_.assign(classes_, kDead);
  frames_.assign(1, {0, 0});
  frame_numbers_.clear();
  set_numbers_.clear();
}

uint32_t Matcher::push(uint32_t at, uint32_t parent) {
  // A rule that ends where its caller ends needs no way back: lists of any length stay flat.
  if (automaton_->states[at].kind == Automaton::Kind::kReturn) return parent;
  const auto [found, fresh] =
      frame_numbers_.try_emplace(pair_key(at, parent), static_cast<uint32_t>(frames_.size()));
  if (fresh) frames_.push_back({at, parent});
  return found->second;
}

Matcher::State Matcher::make(State from, uint8_t byte_class) {
  std::vector<Way> open;
  const uint8_t byte = automaton_->member_of[byte_class];
  for (uint32_t w = sets_[from].first; w < sets_[from].first + sets_[from].n; ++w) {
    const Automaton::State& state = automaton_->states[ways_[w].at];
    if (automaton_->sets[state.a].has(byte)) open.push_back({state.b, ways_[w].stack});
  }
  const State made = open.empty() ? kDead : close_and_number(std::move(open));
  if (!overflowed_) next_[size_t{from} * classes_ + byte_class] = made;
  return made;
}

// Follows all that needs no byte, and gives the set that is left its number.
Matcher::State Matcher::close_and_number(std::vector<Way> open) {
  std::vector<Way> closed;
  bool may_end = false;
  seen_.clear();
  while (!open.empty() && !overflowed_) {
    const Way way = open.back();
    open.pop_back();
    if (way.at == Automaton::kNowhere || !seen_.insert(pair_key(way.at, way.stack)).second) continue;
    const Automaton::State& state = automaton_->states[way.at];
    switch (state.kind) {
      case Automaton::Kind::kBytes:
        closed.push_back(way);
        break;
      case Automaton::Kind::kSplit:
        open.push_back({state.a, way.stack});
        open.push_back({state.b, way.stack});
        break;
      case Automaton::Kind::kCall:
        open.push_back({automaton_->entries[state.a], push(state.b, way.stack)});
        break;
      case Automaton::Kind::kReturn:
        if (way.stack == kBottom) {
          may_end = true;
        } else {
          open.push_back({frames_[way.stack].at, frames_[way.stack].parent});
        }
        break;
    }
    overflowed_ |= seen_.size() > 8 * kMostWays || closed.size() > kMostWays;
  }
  overflowed_ |= kept() > kMostKept;
  if (overflowed_ || (closed.empty() && !may_end)) return kDead;
  std::ranges::sort(closed);
  uint64_t hash = 0xcbf29ce484222325u ^ (may_end ? 1 : 0);
  for (const Way& way : closed) mix(hash, pair_key(way.at, way.stack));
  const auto [begin, end] = set_numbers_.equal_range(hash);
  for (auto it = begin; it != end; ++it) {
    const Set& set = sets_[it->second];
    if (set.may_end == may_end && set.n == closed.size() &&
        std::equal(closed.begin(), closed.end(), ways_.begin() + set.first))
      return it->second;
  }
  const auto number = static_cast<State>(sets_.size());
  sets_.push_back({static_cast<uint32_t>(ways_.size()), static_cast<uint32_t>(closed.size()), may_end});
  ways_.insert(ways_.end(), closed.begin(), closed.end());
  next_.resize(next_.size() + classes_, kUnknown);
  set_numbers_.emplace(hash, number);
  return number;
}

Matcher::State Matcher::forget_but(State state) {
  // The stacks of the ways, from the bottom up.
  const Set set = sets_[state];
  const std::vector<Way> ways(ways_.begin() + set.first, ways_.begin() + set.first + set.n);
  const std::vector<Frame> frames = std::move(frames_);
  reset();
  const auto moved = [&](uint32_t stack) {
    std::vector<uint32_t> path;
    for (; stack != kBottom; stack = frames[stack].parent) path.push_back(frames[stack].at);
    uint32_t to = kBottom;
    for (size_t i = path.size(); i-- > 0;) to = push(path[i], to);
    return to;
  };
  std::vector<Way> open;
  for (const Way& way : ways) open.push_back({way.at, moved(way.stack)});
  if (set.may_end) {
    // The bottom's own end is no way to read on, and has to be kept apart.
    const auto end = std::ranges::find(automaton_->states, Automaton::Kind::kReturn, &Automaton::State::kind);
    open.push_back({static_cast<uint32_t>(end - automaton_->states.begin()), kBottom});
  }
  start_ = kDead;
  return close_and_number(std::move(open));
}

}  // namespace plow
