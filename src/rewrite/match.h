// E-matching: a left side is compiled to a program of a small machine that walks the e-graph with backtracking,
// after de Moura and Bjorner, "Efficient E-Matching for SMT Solvers" (CADE 2007).
#pragma once

#include "rewrite/egraph.h"
#include "rewrite/pattern.h"

#include <cstdint>
#include <vector>

namespace plow {

// The machine's registers hold nodes. `bind` tries every node of the operator in the class of register `in`
// and puts its inputs into registers from `out` on; `compare` demands that two registers are of one class.
struct MatchInstruction {
  enum class Kind : uint8_t { kBind, kCompare } kind = Kind::kBind;
  uint32_t in = 0;
  uint32_t out = 0;                             // kCompare: the other register
  Op op = Op::kAdd;                             // kBind
  std::vector<AttributePattern> attributes{};   // kBind: of the operator
};

struct MatchProgram {
  std::vector<MatchInstruction> instructions;
  std::vector<uint32_t> value_registers;  // by variable
  uint32_t n_registers = 0;
  uint32_t n_attributes = 0;  // variables
};

// How a left side fits: the nodes at its operators in pre-order, and what the variables are. A value variable
// is the input of a matched node at the variable's first place.
struct RuleMatch {
  std::vector<ENodeId> matched;
  std::vector<ENodeId> values;
  std::vector<uint32_t> attributes;  // bits
};

// REQUIRES a pattern whose root is an operator.
MatchProgram compile_pattern(const RewritePattern& pattern, const PatternVariables& variables);

// All matches with the root in the class of `root`, in the order of the nodes' ids.
std::vector<RuleMatch> match_class(const EGraph& egraph, const MatchProgram& program, ENodeId root);

}  // namespace plow
