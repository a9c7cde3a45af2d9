// The record of a rewrite: what the graph was, which rules fired where, and what was left undone and why. It goes
// into the bundle as text, and says enough to be checked without the rewriter: check_rewrite_log() replays it.
#pragma once

#include "graph/graph.h"
#include "rewrite/saturate.h"

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace plow {

// How one form of part was solved.
struct PartRecord {
  uint32_t first_layer = Node::kNoLayer;  // of the part that was solved for all
  uint32_t n_instances = 1;               // parts of this form
  uint32_t n_nodes = 0;                   // operators of one
  StopReason stop = StopReason::kSaturated;
  uint32_t iterations = 0;
  uint32_t n_enodes = 0, n_eclasses = 0;
  double before_ns = 0, after_ns = 0;         // costs of one, over the steps that RewriteCost weighs
  uint32_t before_waits = 0, after_waits = 0;  // in the longest chain of one
  bool exact = true;                           // nothing cheaper is in the e-graph
  uint64_t steps = 0;                          // of the search
};

// An instance of a rule over nodes of `terms`: those at the left side's operators, in pre-order; and those at the
// right side's operators and stored weights, in pre-order, or the one node that the right side is.
struct LoggedFiring {
  uint32_t rule = 0;  // into rule_texts()
  std::vector<NodeId> matched;
  std::vector<NodeId> right;
};

struct RewriteLog {
  std::vector<std::string> disabled_rules;
  uint32_t n_common = 0, n_dead = 0;  // operators that were dropped before any rule
  std::vector<PartRecord> parts;
  uint32_t n_before = 0;  // terms[0, n_before) are the graph as it was
  OpGraph terms;          // after them: every node that a firing speaks of (not a graph that verifies)
  std::vector<LoggedFiring> firings;  // in the order in which they hold
};

// What stands in place of a log when the rewriter was off.
constexpr std::string_view kRewriterOff = "off\n";

// print and parse are inverse to each other. Errors of parse: kInput, naming the line.
std::string print_rewrite_log(const RewriteLog& log);
Result<RewriteLog> parse_rewrite_log(std::string_view text);

// Replays the log: every firing must be an instance of its rule over nodes that are equal by then, and in the end
// the product of `after` must be equal to the product of the graph as it was. Knows nothing of the e-graph: a
// union-find over the terms, with congruence. Errors (kVerification): the first firing that is no instance, or that
// the products are not equal.
Status check_rewrite_log(const RewriteLog& log, const OpGraph& after);

// The graph as it was. REQUIRES a log that was made by the rewriter or parsed.
OpGraph graph_before(const RewriteLog& log);

// For people: what fired how often, then before, after, and why, node by node.
std::string explain_rewrite(const RewriteLog& log, const OpGraph& after);

}  // namespace plow
