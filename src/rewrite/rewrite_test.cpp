#include "rewrite/rewrite.h"

#include "graph/evaluate.h"
#include "graph/testing/toy_graph.h"
#include "rewrite/log.h"

#include <gtest/gtest.h>

#include <cmath>
#include <functional>

namespace plow {
namespace {

uint32_t count(const OpGraph& graph, Op op) {
  uint32_t n = 0;
  for (const Node& node : graph.nodes) n += node.op == op ? 1 : 0;
  return n;
}

RewriteResult rewritten(const OpGraph& graph, const RewriteOptions& options = {}) {
  Result<RewriteResult> result = rewrite_graph(graph, options);
  PLOW_CHECK(result.ok(), "{}", result.error().message);
  return std::move(result).value();
}

TEST(RewriteGraph, Dump) {
  RewriteOptions options;
  options.n_workers = 2;
  const OpGraph graph = toy_graph({.layers = 4});
  const RewriteResult result = rewritten(graph, options);
  const RewriteLog log = parse_rewrite_log(result.log).value();
  fmt::print("{}", explain_rewrite(log, result.graph));
  const Status status = check_rewrite_log(log, result.graph);
  EXPECT_TRUE(status.ok()) << status.error().message;
  EXPECT_EQ(print_rewrite_log(log), result.log);
  EXPECT_EQ(count(result.graph, Op::kAdd), 0);
}

}  // namespace
}  // namespace plow
