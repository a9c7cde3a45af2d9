// OpGraph -> OpGraph: what comes out is what is tiled, and no operator is merged or fused anywhere else. With no rules yet the graph comes out as
// it went in, and the log says so.
#pragma once

#include <string>
#include <vector>

#include "graph/graph.h"

namespace plow {

struct RewriteOptions {
  bool enabled = true;
  std::vector<std::string> disabled_rules;
};

struct RewriteResult {
  OpGraph graph;
  std::string log;  // one line a firing: rule, node before, node after
};

// Errors (kUsage): a disabled rule that does not exist.
Result<RewriteResult> rewrite_graph(const OpGraph& graph, const RewriteOptions& options);

}  // namespace plow
