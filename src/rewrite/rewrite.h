// OpGraph -> OpGraph: what comes out is what is tiled, and no operator is merged or fused anywhere else.
#pragma once

#include "cost/part.h"
#include "graph/graph.h"
#include "rewrite/solve.h"

#include <string>
#include <vector>

namespace plow {

struct RewriteOptions {
  bool enabled = true;
  std::vector<std::string> disabled_rules;
  const Part* part = nullptr;  // whose times decide; null: the default part of x86-64
  uint32_t n_workers = 1;
  uint32_t chunk_rows = 512;  // most rows of a step
  SolveLimits limits;
};

struct RewriteResult {
  OpGraph graph;
  std::string log;  // print_rewrite_log(); kRewriterOff when the rewriter was off
};

// REQUIRES a graph that verifies and has no fused operator; the one that comes out verifies too. The same graph and options give the same bytes.
// Errors (kUsage): a disabled rule that does not exist; the message lists those that do.
Result<RewriteResult> rewrite_graph(const OpGraph& graph, const RewriteOptions& options);

}  // namespace plow
