#include "rewrite/extract.h"

#include "base/check.h"

#include <algorithm>
#include <limits>
#include <optional>

namespace plow {
namespace {

constexpr double kInfinite = std::numeric_limits<double>::infinity();
constexpr uint32_t kUnused = Extraction::kUnused;
// Costs are sums in different orders: what is less by no more than rounding is not less.
constexpr double kRelativeSlack = 1e-12;

bool is_less(double a, double b) { return a < b - kRelativeSlack * std::max(1.0, b); }

class Bits {
 public:
  explicit Bits(size_t n = 0, bool value = false) : words_((n + 63) / 64, value ? ~uint64_t{0} : 0) {}
  bool test(uint32_t i) const { return words_[i / 64] >> (i % 64) & 1; }
  void set(uint32_t i) { words_[i / 64] |= uint64_t{1} << (i % 64); }
  void add(const Bits& other) {
    for (size_t w = 0; w < words_.size(); ++w) words_[w] |= other.words_[w];
  }
  void intersect(const Bits& other) {
    for (size_t w = 0; w < words_.size(); ++w) words_[w] &= other.words_[w];
  }
  bool operator==(const Bits&) const = default;

 private:
  std::vector<uint64_t> words_;
};

class ChoiceMeter {
 public:
  ChoiceMeter(const ExtractionProblem& problem, const std::vector<uint32_t>& choice)
      : problem_(problem),
        choice_(choice),
        state_(problem.classes.size(), State::kNew),
        depth_(problem.classes.size(), 0) {}

  bool visit(uint32_t eclass) {
    if (state_[eclass] != State::kNew) return state_[eclass] == State::kDone;
    state_[eclass] = State::kOpen;
    if (choice_[eclass] == kUnused) return false;
    const ExtractionNode& node = problem_.classes[eclass][choice_[eclass]];
    cost += node.cost;
    for (const ExtractionNode::Input& input : node.inputs) {
      if (!visit(input.eclass)) return false;
      depth_[eclass] = std::max(depth_[eclass], depth_[input.eclass] + (input.waits ? 1 : 0));
    }
    state_[eclass] = State::kDone;
    return true;
  }

  bool is_used(uint32_t eclass) const { return state_[eclass] == State::kDone; }
  uint32_t depth(uint32_t eclass) const { return depth_[eclass]; }

  double cost = 0;

 private:
  enum class State : uint8_t { kNew, kOpen, kDone };
  const ExtractionProblem& problem_;
  const std::vector<uint32_t>& choice_;
  std::vector<State> state_;
  std::vector<uint32_t> depth_;
};

// How far below a node its needs are followed.
constexpr int kNeedsDepth = 6;

// Finds nodes that no best choice needs. Node a makes node b of the same class needless when it asks for no
// more (every choice with b computes the inputs of a anyway, behind no fewer waits) and costs no more than b
// with what b reads for itself: a choice with b gets no worse when a takes its place and what nobody reads
// then is dropped. b reads a class for itself when every way from a root to it leads through b's own class,
// and no way from a does.
class NeedlessNodes {
 public:
  explicit NeedlessNodes(const ExtractionProblem& problem)
      : problem_(problem), live_(problem.classes.size()) {
    for (uint32_t c = 0; c < live_.size(); ++c) {
      for (uint32_t i = 0; i < problem.classes[c].size(); ++i) live_[c].push_back(i);
    }
  }

  // By class: the nodes that stay. Dropping one may leave another class to a single reader, so it goes on
  // until nothing changes.
  std::vector<std::vector<uint32_t>> run() {
    for (bool changed = true; changed;) {
      changed = false;
      for (uint32_t c = 0; c < live_.size(); ++c) changed |= live_[c].size() > 1 && prune(c);
    }
    return std::move(live_);
  }

 private:
  const ExtractionNode& node(uint32_t c, uint32_t i) const { return problem_.classes[c][i]; }

  double least_cost(uint32_t c) const {
    double least = kInfinite;
    for (const uint32_t i : live_[c]) least = std::min(least, node(c, i).cost);
    return least;
  }

  // The classes that a way from `open` leads to when it must not enter `closed`.
  Bits reached(std::vector<uint32_t> open, uint32_t closed) const {
    Bits seen(live_.size());
    while (!open.empty()) {
      const uint32_t c = open.back();
      open.pop_back();
      if (c == closed || seen.test(c)) continue;
      seen.set(c);
      for (const uint32_t i : live_[c]) {
        for (const ExtractionNode::Input& input : node(c, i).inputs) open.push_back(input.eclass);
      }
    }
    return seen;
  }

  Bits reached_from(const ExtractionNode& from, uint32_t closed) const {
    std::vector<uint32_t> open;
    for (const ExtractionNode::Input& input : from.inputs) open.push_back(input.eclass);
    return reached(std::move(open), closed);
  }

  // Whether the node cannot be computed without the class of `x`, and not without a wait for it if x waits.
  bool needs(const ExtractionNode& node, const ExtractionNode::Input& x, int depth) const {
    return std::ranges::any_of(node.inputs, [&](const ExtractionNode::Input& y) {
      const ExtractionNode::Input rest{x.eclass, x.waits && !y.waits};
      if (y.eclass == x.eclass) return !rest.waits;
      return depth > 0 && std::ranges::all_of(live_[y.eclass], [&](uint32_t i) {
               return needs(problem_.classes[y.eclass][i], rest, depth - 1);
             });
    });
  }

  // `beside`: classes that the roots reach without class c; `below`: those that a reaches without it.
  bool replaces(uint32_t c, const ExtractionNode& a, const ExtractionNode& b, const Bits& beside,
                const Bits& below) const {
    if (!std::ranges::all_of(a.inputs, [&](const auto& x) { return needs(b, x, kNeedsDepth); })) return false;
    double cost = b.cost;
    for (size_t k = 0; k < b.inputs.size(); ++k) {
      const uint32_t input = b.inputs[k].eclass;
      const bool is_repeated =
          std::any_of(b.inputs.begin(), b.inputs.begin() + static_cast<std::ptrdiff_t>(k),
                      [&](const auto& other) { return other.eclass == input; });
      if (!is_repeated && input != c && !beside.test(input) && !below.test(input)) cost += least_cost(input);
    }
    return a.cost <= cost;
  }

  bool prune(uint32_t c) {
    const Bits beside = reached(problem_.roots, c);
    std::vector<uint32_t> kept = live_[c];
    std::vector<Bits> below;  // by place in live_[c]
    for (const uint32_t i : live_[c]) below.push_back(reached_from(node(c, i), c));
    const auto better = [&](size_t a, size_t b) {
      return replaces(c, node(c, live_[c][a]), node(c, live_[c][b]), beside, below[a]);
    };
    for (size_t b = 0; b < live_[c].size(); ++b) {
      for (size_t a = 0; a < live_[c].size(); ++a) {
        const bool is_kept = std::ranges::find(kept, live_[c][a]) != kept.end();
        if (a == b || !is_kept || !better(a, b) || (b < a && better(b, a))) continue;
        std::erase(kept, live_[c][b]);
        break;
      }
    }
    const bool changed = kept.size() != live_[c].size();
    live_[c] = std::move(kept);
    return changed;
  }

  const ExtractionProblem& problem_;
  std::vector<std::vector<uint32_t>> live_;
};

class Extractor {
 public:
  Extractor(const ExtractionProblem& problem, const ExtractionLimits& limits)
      : problem_(problem), limits_(limits), n_(problem.classes.size()), live_(NeedlessNodes(problem).run()) {
    bound_below();
  }

  Extraction run() {
    const std::vector<bool> none(n_, false);
    std::optional<Extraction> start = greedy(none);
    PLOW_CHECK(start.has_value(), "a root of an extraction cannot be computed");
    best_ = std::move(*start);
    improve();
    std::vector<uint32_t> choice(n_, kUnused);
    search(choice, std::vector<uint32_t>(problem_.roots), 0);
    best_.exact = steps_ < limits_.max_steps;
    best_.steps = steps_;
    return best_;
  }

 private:
  // What every way to compute a class needs (itself among it), the least of its own cost, and the fewest
  // waits on the way to it.
  void bound_below() {
    own_.assign(n_, kInfinite);
    for (uint32_t c = 0; c < n_; ++c) {
      for (const uint32_t i : live_[c]) own_[c] = std::min(own_[c], problem_.classes[c][i].cost);
    }
    must_.assign(n_, Bits(n_, true));
    fewest_waits_.assign(n_, 0);
    for (bool changed = true; changed;) {
      changed = false;
      for (uint32_t c = 0; c < n_; ++c) {
        Bits common(n_, true);
        uint32_t fewest = std::numeric_limits<uint32_t>::max();
        for (const uint32_t i : live_[c]) {
          Bits needs(n_);
          needs.set(c);
          uint32_t waits = 0;
          for (const ExtractionNode::Input& input : problem_.classes[c][i].inputs) {
            needs.add(must_[input.eclass]);
            waits = std::max(waits, fewest_waits_[input.eclass] + (input.waits ? 1 : 0));
          }
          common.intersect(needs);
          fewest = std::min(fewest, waits);
        }
        // Waits are bounded by the number of classes where a circle would let them grow.
        fewest = std::min<uint32_t>(fewest, static_cast<uint32_t>(n_));
        if (common == must_[c] && fewest <= fewest_waits_[c]) continue;
        must_[c] = common;
        fewest_waits_[c] = std::max(fewest, fewest_waits_[c]);
        changed = true;
      }
    }
  }

  // The cheapest tree of every class, as a start: what is shared counts as often as it is read.
  std::optional<Extraction> greedy(const std::vector<bool>& banned) const {
    Extraction result;
    result.choice.assign(n_, kUnused);
    std::vector<double> tree(n_, kInfinite);
    for (bool changed = true; changed;) {
      changed = false;
      for (uint32_t c = 0; c < n_; ++c) {
        if (banned[c]) continue;
        for (const uint32_t i : live_[c]) {
          const ExtractionNode& node = problem_.classes[c][i];
          double cost = node.cost;
          for (const ExtractionNode::Input& input : node.inputs) {
            cost += tree[input.eclass] + (input.waits ? problem_.wait : 0);
          }
          if (!(cost < tree[c])) continue;
          tree[c] = cost;
          result.choice[c] = i;
          changed = true;
        }
      }
    }
    return measure_choice(problem_, result) ? std::optional(std::move(result)) : std::nullopt;
  }

  // Bans one class at a time, and keeps what gets cheaper without it; then tries every other node of every
  // class.
  void improve() {
    std::vector<bool> banned(n_, false);
    for (bool better = true; better;) {
      better = false;
      for (uint32_t c = 0; c < n_; ++c) {
        if (best_.choice[c] == kUnused || banned[c]) continue;
        banned[c] = true;
        std::optional<Extraction> other = greedy(banned);
        if (other && is_less(other->cost, best_.cost)) {
          best_ = std::move(*other);
          better = true;
        } else {
          banned[c] = false;
        }
      }
    }
  }

  double lower_bound(const std::vector<uint32_t>& choice, const std::vector<uint32_t>& open) const {
    Bits needed(n_);
    for (const uint32_t c : open) needed.add(must_[c]);
    double bound = 0;
    for (uint32_t c = 0; c < n_; ++c) {
      if (needed.test(c) && choice[c] == kUnused) bound += own_[c];
    }
    uint32_t waits = 0;
    for (const uint32_t root : problem_.roots) waits = std::max(waits, fewest_waits_[root]);
    return bound + problem_.wait * waits;
  }

  // Whether `from` reaches `to` through what has been chosen.
  bool reaches(const std::vector<uint32_t>& choice, uint32_t from, uint32_t to) const {
    Bits seen(n_);
    std::vector<uint32_t> stack{from};
    while (!stack.empty()) {
      const uint32_t c = stack.back();
      stack.pop_back();
      if (c == to) return true;
      if (seen.test(c) || choice[c] == kUnused) continue;
      seen.set(c);
      for (const ExtractionNode::Input& input : problem_.classes[c][choice[c]].inputs)
        stack.push_back(input.eclass);
    }
    return false;
  }

  // `open`: classes that are needed and may be chosen already. `spent`: the cost of what is chosen.
  void search(std::vector<uint32_t>& choice, std::vector<uint32_t> open, double spent) {
    std::erase_if(open, [&](uint32_t c) { return choice[c] != kUnused; });
    if (open.empty()) return report(choice);
    if (++steps_ >= limits_.max_steps || !is_less(spent + lower_bound(choice, open), best_.cost)) return;
    const uint32_t c = open.back();
    open.pop_back();
    for (const uint32_t i : live_[c]) {
      const ExtractionNode& node = problem_.classes[c][i];
      if (std::ranges::any_of(node.inputs,
                              [&](const auto& input) { return reaches(choice, input.eclass, c); }))
        continue;
      std::vector<uint32_t> next = open;
      for (const ExtractionNode::Input& input : node.inputs) next.push_back(input.eclass);
      choice[c] = i;
      search(choice, std::move(next), spent + node.cost);
      choice[c] = kUnused;
      if (steps_ >= limits_.max_steps) return;
    }
  }

  void report(const std::vector<uint32_t>& choice) {
    Extraction found;
    found.choice = choice;
    PLOW_CHECK(measure_choice(problem_, found), "the search chose a circle");
    if (is_less(found.cost, best_.cost)) best_ = std::move(found);
  }

  const ExtractionProblem& problem_;
  const ExtractionLimits& limits_;
  const size_t n_;
  const std::vector<std::vector<uint32_t>> live_;  // by class: nodes that a best choice may need
  std::vector<double> own_;
  std::vector<Bits> must_;
  std::vector<uint32_t> fewest_waits_;
  Extraction best_;
  uint64_t steps_ = 0;
};

}  // namespace

bool measure_choice(const ExtractionProblem& problem, Extraction& extraction) {
  ChoiceMeter meter(problem, extraction.choice);
  extraction.chain = 0;
  for (const uint32_t root : problem.roots) {
    if (!meter.visit(root)) return false;
    extraction.chain = std::max(extraction.chain, meter.depth(root));
  }
  for (uint32_t c = 0; c < extraction.choice.size(); ++c) {
    if (!meter.is_used(c)) extraction.choice[c] = kUnused;
  }
  extraction.cost = meter.cost + problem.wait * extraction.chain;
  return true;
}

Extraction extract(const ExtractionProblem& problem, const ExtractionLimits& limits) {
  return Extractor(problem, limits).run();
}

}  // namespace plow
