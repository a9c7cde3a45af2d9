// Applies rules to an e-graph until nothing new comes, or a limit is met. Limits are counts, never times: the
// same graph gives the same result on every machine.
#pragma once

#include "rewrite/egraph.h"
#include "rewrite/rule.h"

#include <cstdint>
#include <span>
#include <utility>
#include <vector>

namespace plow {

struct SaturationLimits {
  uint32_t max_iterations = 32;
  uint32_t max_nodes = 10000;  // a layer with all rules has some hundreds
};

enum class StopReason : uint8_t { kSaturated, kIterations, kNodes };
const char* stop_reason_name(StopReason reason);

// A rule that made two classes one: the left side's nodes (at its operators, in pre-order) and variables, and
// the right side's nodes (at its operators and stored weights, in pre-order; a node that was already there
// stands for one that is congruent to it).
struct RuleFiring {
  uint32_t rule = 0;  // into the rules
  std::vector<ENodeId> matched;
  std::vector<ENodeId> values;
  std::vector<uint32_t> attributes;
  std::vector<ENodeId> built;
  ENodeId right_root;  // built[0], or the variable that the right side is
};

struct Saturation {
  std::vector<RuleFiring> firings;  // in order; a Justification's number is a place here
  StopReason reason = StopReason::kSaturated;
  uint32_t iterations = 0;
};

Saturation saturate(EGraph& egraph, std::span<const RewriteRule> rules, const std::vector<bool>& enabled,
                    const SaturationLimits& limits);

// Pairs of nodes that must be equal for a firing to be an instance of its rule: inputs of matched nodes and
// the nodes matched there, places of one variable, inputs of built nodes and what they were built over.
std::vector<std::pair<ENodeId, ENodeId>> firing_premises(const EGraph& egraph, const RewriteRule& rule,
                                                         const RuleFiring& firing);

// The firings that show that two nodes are equal, with all that those firings rest on, ascending.
class Explainer {
 public:
  Explainer(const EGraph& egraph, std::span<const RewriteRule> rules, const Saturation& saturation);
  void require(ENodeId a, ENodeId b);
  // Those of all that was required.
  std::vector<uint32_t> firings() const;

 private:
  const EGraph& egraph_;
  std::span<const RewriteRule> rules_;
  const Saturation& saturation_;
  std::vector<bool> needed_;      // by firing
  std::vector<uint64_t> asked_;   // pairs, sorted
};

}  // namespace plow
