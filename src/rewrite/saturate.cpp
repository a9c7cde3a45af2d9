#include "rewrite/saturate.h"

#include "rewrite/apply.h"

#include <algorithm>

namespace plow {

const char* stop_reason_name(StopReason reason) {
  switch (reason) {
    case StopReason::kSaturated:
      return "saturated";
    case StopReason::kIterations:
      return "iteration limit";
    case StopReason::kNodes:
      return "node limit";
  }
  return nullptr;
}

namespace {

struct FoundMatch {
  uint32_t rule;
  RuleMatch match;
};

// All matches before anything changes, so that the result does not depend on which rule comes first.
std::vector<FoundMatch> find_matches(const EGraph& egraph, std::span<const RewriteRule> rules,
                                     const std::vector<bool>& enabled) {
  std::vector<FoundMatch> found;
  const std::vector<ENodeId> classes = egraph.classes();
  for (uint32_t r = 0; r < rules.size(); ++r) {
    if (!enabled[r]) continue;
    for (const ENodeId root : classes) {
      for (RuleMatch& match : match_class(egraph, rules[r].program, root)) {
        if (conditions_hold(egraph, rules[r], match)) found.push_back({r, std::move(match)});
      }
    }
  }
  return found;
}

}  // namespace

Saturation saturate(EGraph& egraph, std::span<const RewriteRule> rules, const std::vector<bool>& enabled,
                    const SaturationLimits& limits) {
  Saturation result;
  for (;; ++result.iterations) {
    if (result.iterations == limits.max_iterations) {
      result.reason = StopReason::kIterations;
      return result;
    }
    const uint32_t merges_before = egraph.n_merges();
    for (FoundMatch& found : find_matches(egraph, rules, enabled)) {
      if (egraph.n_nodes() >= limits.max_nodes) {
        egraph.rebuild();
        result.reason = StopReason::kNodes;
        return result;
      }
      const std::optional<BuiltSide> side = build_right_side(egraph, rules[found.rule], found.match);
      if (!side) continue;
      const Justification why{static_cast<uint32_t>(result.firings.size())};
      if (!egraph.merge(found.match.matched[0], side->root, why)) continue;
      result.firings.push_back({found.rule, std::move(found.match.matched), std::move(found.match.values),
                                std::move(found.match.attributes), side->built, side->root});
    }
    egraph.rebuild();
    if (egraph.n_merges() == merges_before) return result;
  }
}

namespace {

// Walks a side of a rule beside the nodes that stand at its operators.
class PremiseWalk {
 public:
  PremiseWalk(const EGraph& egraph, const RewritePattern& side, std::span<const ENodeId> nodes,
              std::span<const ENodeId> values, std::vector<std::pair<ENodeId, ENodeId>>& out)
      : egraph_(egraph), side_(side), nodes_(nodes), values_(values), out_(out) {}

  // The node at a term.
  ENodeId walk(uint32_t index) {
    const PatternTerm& term = side_.terms[index];
    if (term.kind == PatternTerm::Kind::kVariable) return values_[term.variable];
    const ENodeId node = nodes_[next_++];
    for (uint32_t i = 0; i < term.inputs.size(); ++i) {
      const ENodeId below = walk(term.inputs[i]);
      if (egraph_.node(node).inputs[i] != below) out_.emplace_back(egraph_.node(node).inputs[i], below);
    }
    return node;
  }

 private:
  const EGraph& egraph_;
  const RewritePattern& side_;
  std::span<const ENodeId> nodes_, values_;
  std::vector<std::pair<ENodeId, ENodeId>>& out_;
  size_t next_ = 0;
};

}  // namespace

std::vector<std::pair<ENodeId, ENodeId>> firing_premises(const EGraph& egraph, const RewriteRule& rule,
                                                         const RuleFiring& firing) {
  std::vector<std::pair<ENodeId, ENodeId>> premises;
  PremiseWalk(egraph, rule.left, firing.matched, firing.values, premises).walk(0);
  PremiseWalk(egraph, rule.right, firing.built, firing.values, premises).walk(0);
  return premises;
}

Explainer::Explainer(const EGraph& egraph, std::span<const RewriteRule> rules, const Saturation& saturation)
    : egraph_(egraph), rules_(rules), saturation_(saturation), needed_(saturation.firings.size(), false) {}

void Explainer::require(ENodeId a, ENodeId b) {
  std::vector<std::pair<ENodeId, ENodeId>> open{{a, b}};
  while (!open.empty()) {
    const auto [x, y] = open.back();
    open.pop_back();
    if (x == y) continue;
    const uint64_t pair = uint64_t{x.value} << 32 | y.value;
    const auto place = std::lower_bound(asked_.begin(), asked_.end(), pair);
    if (place != asked_.end() && *place == pair) continue;
    asked_.insert(place, pair);
    for (const ProofStep& step : egraph_.explain(x, y)) {
      if (step.why.firing == Justification::kCongruence) {
        for (uint32_t i = 0; i < egraph_.node(step.from).n_inputs; ++i) {
          open.emplace_back(egraph_.node(step.from).inputs[i], egraph_.node(step.to).inputs[i]);
        }
      } else if (!needed_[step.why.firing]) {
        needed_[step.why.firing] = true;
        const RuleFiring& firing = saturation_.firings[step.why.firing];
        for (const auto& premise : firing_premises(egraph_, rules_[firing.rule], firing)) open.push_back(premise);
      }
    }
  }
}

std::vector<uint32_t> Explainer::firings() const {
  std::vector<uint32_t> result;
  for (uint32_t f = 0; f < needed_.size(); ++f) {
    if (needed_[f]) result.push_back(f);
  }
  return result;
}

}  // namespace plow
