// One application of a rule to a match.
#pragma once

#include "rewrite/egraph.h"
#include "rewrite/rule.h"

#include <optional>
#include <vector>

namespace plow {

struct BuiltSide {
  std::vector<ENodeId> built;  // at the operators and stored weights, in pre-order
  ENodeId root;
};

bool conditions_hold(const EGraph& egraph, const RewriteRule& rule, const RuleMatch& match);

// Adds the right side. Nothing, and nothing added, when one of its functions has no value, when a shape rule
// refuses it, or when its type is not the left side's.
std::optional<BuiltSide> build_right_side(EGraph& egraph, const RewriteRule& rule, const RuleMatch& match);

}  // namespace plow
