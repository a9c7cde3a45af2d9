#include "rewrite/rewrite.h"

#include "graph/evaluate.h"
#include "graph/testing/toy_graph.h"
#include "rewrite/log.h"
#include "rewrite/testing/rule_instance.h"

#include <gtest/gtest.h>

#include <cmath>
#include <functional>
#include <set>

namespace plow {
namespace {

uint32_t count(const OpGraph& graph, Op op) {
  uint32_t n = 0;
  for (const Node& node : graph.nodes) n += node.op == op ? 1 : 0;
  return n;
}

RewriteOptions on_workers(uint32_t n) {
  RewriteOptions options;
  options.n_workers = n;
  return options;
}

RewriteResult rewritten(const OpGraph& graph, const RewriteOptions& options = on_workers(2)) {
  Result<RewriteResult> result = rewrite_graph(graph, options);
  PLOW_CHECK(result.ok(), "{}", result.error().message);
  return std::move(result).value();
}

RewriteLog log_of(const RewriteResult& result) {
  Result<RewriteLog> log = parse_rewrite_log(result.log);
  PLOW_CHECK(log.ok(), "{}", log.error().message);
  return std::move(log).value();
}

// Tokens of two sequences over a prompt and two more steps; the logits of all of them.
std::vector<double> logits(const OpGraph& graph) {
  Evaluator evaluator = Evaluator::create(graph, RuleWeights(), 3).value();
  std::vector<double> all;
  const auto run = [&](const EvalStep& step) {
    const std::vector<Matrix> values = evaluator.run(step);
    const Matrix& rows = values[graph.inputs_of(graph.tokens)[0].value];
    all.insert(all.end(), rows.values.begin(), rows.values.end());
  };
  SamplingParams greedy{};
  greedy.flags = kSampleGreedy;
  greedy.repetition_penalty = 1;
  run({{{0, 4, 0, 0}, {4, 3, 2, 0}}, {3, 1, 4, 1, 5, 9, 2}, {3, 6}, {greedy, greedy}});
  run({{{0, 1, 2, 3}, {1, 1, 0, 4}}, {6, 11}, {1, 0}, {greedy, greedy}});
  run({{{0, 2, 1, 0}}, {7, 8}, {1}, {greedy}});
  return all;
}

void expect_same_value(const OpGraph& graph, const OpGraph& other) {
  const std::vector<double> expected = logits(graph);
  const std::vector<double> found = logits(other);
  ASSERT_EQ(found.size(), expected.size());
  double largest = 0;
  for (const double value : expected) largest = std::max(largest, std::fabs(value));
  ASSERT_GT(largest, 1e-3);
  for (size_t i = 0; i < found.size(); ++i) EXPECT_NEAR(found[i], expected[i], 1e-11 * largest);
}

TEST(RewriteGraph, TheNewGraphComputesTheSameAndItsLogSaysWhy) {
  for (const uint32_t workers : {1u, 2u, 132u}) {
    for (const ToyShape& shape : {ToyShape{}, ToyShape{.layers = 3, .window = 3}, ToyShape{.layers = 1, .heads = 4, .kv_heads = 2}}) {
      const OpGraph graph = toy_graph(shape);
      const RewriteResult result = rewritten(graph, on_workers(workers));
      EXPECT_TRUE(verify_graph(result.graph).ok());
      EXPECT_LT(result.graph.nodes.size(), graph.nodes.size());
      expect_same_value(graph, result.graph);
      const RewriteLog log = log_of(result);
      const Status status = check_rewrite_log(log, result.graph);
      EXPECT_TRUE(status.ok()) << status.error().message;
      EXPECT_EQ(print_graph(graph_before(log)), print_graph(graph));
      for (const PartRecord& part : log.parts) {
        EXPECT_EQ(part.stop, StopReason::kSaturated);
        EXPECT_TRUE(part.exact);
        EXPECT_LE(part.after_ns, part.before_ns);
      }
    }
  }
}

// With waits that cost more than all else, what is left of a layer has the shortest chain: every norm is in its readers.
TEST(RewriteGraph, WhereWaitsAreDearNothingStandsBetweenProducts) {
  Part part = default_part(Isa::kX86_64);
  part[Figure::kHop] = 1e6;
  RewriteOptions options = on_workers(2);
  options.part = &part;
  const RewriteResult result = rewritten(toy_graph({.layers = 3, .kv_heads = 3}), options);
  for (const Op op : {Op::kRmsNorm, Op::kAdd, Op::kGlu, Op::kRope, Op::kLinear, Op::kKvAppend, Op::kAttention}) {
    EXPECT_EQ(count(result.graph, op), 0u) << op_name(op);
  }
  EXPECT_EQ(count(result.graph, Op::kNormRopeAttention), 3u);
  EXPECT_EQ(count(result.graph, Op::kRopeKvAppend), 3u);
  EXPECT_EQ(count(result.graph, Op::kNormGluLinear), 3u);
  EXPECT_EQ(count(result.graph, Op::kLinearAdd), 6u);
}

// With packets and waits for nothing, a norm is computed once and not by each worker of each reader.
TEST(RewriteGraph, WhereWaitsAreFreeANormThatManyReadStands) {
  Part part = default_part(Isa::kX86_64);
  part[Figure::kHop] = 1e-3;
  part[Figure::kPacket] = 1e-3;
  part[Figure::kTransfer] = 1e9;
  RewriteOptions options = on_workers(2);
  options.part = &part;
  const RewriteResult result = rewritten(toy_graph({.layers = 3}), options);
  EXPECT_GE(count(result.graph, Op::kRmsNorm), 3u);
  EXPECT_EQ(count(result.graph, Op::kNormLinear), 0u);
}

TEST(RewriteGraph, TheLastLayersMlpIsComputedForSampledRowsOnly) {
  const RewriteResult result = rewritten(toy_graph({.layers = 2}));
  for (uint32_t i = 0; i < result.graph.nodes.size(); ++i) {
    const Node& node = result.graph.nodes[i];
    if (node.op != Op::kNormGluLinear) continue;
    const bool is_last = node.layer == 1;
    EXPECT_EQ(node.shape.row_kind, is_last ? Rows::kSamples : Rows::kTokens) << i;
  }
}

TEST(RewriteGraph, LayersOfOneFormAreSolvedOnceAndTheLastOneApart) {
  const RewriteLog log = log_of(rewritten(toy_graph({.layers = 9, .window = 4})));
  // Outside, full layers 0 2 4 6, layers with a window 1 3 5 7, and layer 8 with what follows it.
  ASSERT_EQ(log.parts.size(), 4u);
  EXPECT_EQ(log.parts[0].first_layer, Node::kNoLayer);
  EXPECT_EQ(log.parts[1].n_instances, 4u);
  EXPECT_EQ(log.parts[2].n_instances, 4u);
  EXPECT_EQ(log.parts[3].first_layer, 8u);
  EXPECT_EQ(log.parts[3].n_instances, 1u);
}

// The shape of an 8B model; its products can be cut along k in many ways.
TEST(RewriteGraph, LayersOfAnEightBillionModelSaturateAndGetCheaper) {
  const ToyShape shape{.layers = 32, .hidden = 4096, .heads = 32, .kv_heads = 8, .head_dim = 128, .ffn = 14336, .vocab = 128256};
  const OpGraph graph = toy_graph(shape);
  const RewriteResult result = rewritten(graph, on_workers(132));
  const RewriteLog log = log_of(result);
  EXPECT_EQ(log.parts.size(), 3u);
  EXPECT_EQ(log.parts[1].n_instances, 31u);
  for (const PartRecord& part : log.parts) EXPECT_EQ(part.stop, StopReason::kSaturated);
  EXPECT_TRUE(log.parts[1].exact);
  EXPECT_LT(log.parts[1].after_ns, log.parts[1].before_ns);
  // A rope and a merge more in the chain are what attention in parts costs.
  EXPECT_LT(log.parts[1].after_waits, log.parts[1].before_waits + 2);
  EXPECT_LT(log.parts[2].after_ns, log.parts[2].before_ns);
  EXPECT_TRUE(check_rewrite_log(log, result.graph).ok());
}

TEST(RewriteGraph, AGraphWithoutLayersIsOnePart) {
  OpGraph graph = toy_graph({.layers = 2});
  for (Node& node : graph.nodes) node.layer = Node::kNoLayer;
  const RewriteResult result = rewritten(graph);
  const RewriteLog log = log_of(result);
  EXPECT_EQ(log.parts.size(), 1u);
  EXPECT_TRUE(check_rewrite_log(log, result.graph).ok());
  expect_same_value(graph, result.graph);
}

TEST(RewriteGraph, LayersThatReadLaterOnesAreOnePart) {
  OpGraph graph = toy_graph({.layers = 2});
  for (Node& node : graph.nodes) {
    if (node.layer != Node::kNoLayer) node.layer = 1 - node.layer;
  }
  const RewriteResult result = rewritten(graph);
  EXPECT_EQ(log_of(result).parts.size(), 1u);
  expect_same_value(graph, result.graph);
}

TEST(RewriteGraph, WhereNoRuleFiresNothingMoves) {
  RewriteOptions options = on_workers(2);
  for (const RuleText& rule : rule_texts()) options.disabled_rules.push_back(rule.name);
  const OpGraph graph = toy_graph({.layers = 3});
  const RewriteResult result = rewritten(graph, options);
  EXPECT_EQ(print_graph(result.graph), print_graph(graph));
  EXPECT_TRUE(log_of(result).firings.empty());
}

TEST(RewriteGraph, SwitchedOffItGivesBackWhatItGot) {
  RewriteOptions options;
  options.enabled = false;
  const OpGraph graph = toy_graph();
  const RewriteResult result = rewritten(graph, options);
  EXPECT_EQ(print_graph(result.graph), print_graph(graph));
  EXPECT_EQ(result.log, kRewriterOff);
}

TEST(RewriteGraph, ARuleThatIsSwitchedOffDoesNotFireAndNoneIsNeededForTheOthers) {
  const OpGraph graph = toy_graph({.layers = 2});
  for (const RuleText& rule : rule_texts()) {
    RewriteOptions options = on_workers(2);
    options.disabled_rules = {rule.name};
    const RewriteResult result = rewritten(graph, options);
    const RewriteLog log = log_of(result);
    EXPECT_EQ(log.disabled_rules, options.disabled_rules);
    for (const LoggedFiring& firing : log.firings) EXPECT_NE(rule_texts()[firing.rule].name, std::string(rule.name));
    EXPECT_TRUE(check_rewrite_log(log, result.graph).ok()) << rule.name;
    expect_same_value(graph, result.graph);
  }
}

TEST(RewriteGraph, ARuleThatDoesNotExistIsAUsageErrorThatListsThoseThatDo) {
  RewriteOptions options;
  options.disabled_rules = {"norm_linear", "norm_linaer"};
  const Result<RewriteResult> result = rewrite_graph(toy_graph(), options);
  ASSERT_FALSE(result.ok());
  EXPECT_EQ(result.error().error_class, ErrorClass::kUsage);
  EXPECT_NE(result.error().message.find("no rewrite rule named 'norm_linaer'"), std::string::npos);
  for (const RuleText& rule : rule_texts()) EXPECT_NE(result.error().message.find(rule.name), std::string::npos);
}

TEST(RewriteGraph, TheSameGraphGivesTheSameBytes) {
  const RewriteResult a = rewritten(toy_graph({.layers = 3}));
  const RewriteResult b = rewritten(toy_graph({.layers = 3}));
  EXPECT_EQ(print_graph(a.graph), print_graph(b.graph));
  EXPECT_EQ(a.log, b.log);
}

TEST(RewriteGraph, WhatIsComputedTwiceIsComputedOnceAndWhatNobodyNeedsNotAtAll) {
  GraphBuilder b;
  const NodeId ids = b.step_input(StepColumn::kTokenIds);
  const NodeId table = b.weight("table", DType::kF32, 16, 8);
  const NodeId x = b.add(Op::kEmbed, {table, ids});
  const NodeId same = b.add(Op::kEmbed, {table, ids});
  b.add(Op::kSoftCap, {same}, {attribute_bits(2.0f)});
  const NodeId w = b.weight("w", DType::kF32, 16, 8);
  const NodeId rows = b.add(Op::kGatherRows, {b.add(Op::kAdd, {x, same}), b.step_input(StepColumn::kSampleRows)});
  const OpGraph graph = b.finish(b.add(Op::kSample, {b.add(Op::kLinear, {rows, w})}), 16, 8, 1, 8).value();
  const RewriteResult result = rewritten(graph);
  EXPECT_EQ(count(result.graph, Op::kEmbed), 1u);
  EXPECT_EQ(count(result.graph, Op::kSoftCap), 0u);
  const RewriteLog log = log_of(result);
  EXPECT_EQ(log.n_common, 1u);
  EXPECT_EQ(log.n_dead, 1u);
  EXPECT_TRUE(check_rewrite_log(log, result.graph).ok());
}

// With 1,024 positions in the cache (StepSize).
TEST(RewriteGraph, AttentionIsInPartsWhereThereAreMoreWorkersThanKvHeads) {
  const ToyShape shape{.layers = 2, .hidden = 2048, .heads = 32, .kv_heads = 8, .head_dim = 64, .ffn = 4096, .vocab = 1000};
  const OpGraph graph = toy_graph(shape);
  for (const uint32_t workers : {1u, 2u, 8u, 132u}) {
    RewriteOptions options = on_workers(workers);
    if (workers > 8) options.part = find_part("h200");
    const RewriteResult result = rewritten(graph, options);
    EXPECT_EQ(count(result.graph, Op::kAttentionMerge), workers > 8 ? 2u : 0u) << workers << " workers";
    for (const Node& node : result.graph.nodes) {
      if (node.op == Op::kAttentionMerge) {
        EXPECT_GE(node.attributes[1], 8u) << "parts";
      }
    }
    EXPECT_TRUE(check_rewrite_log(log_of(result), result.graph).ok());
  }
}

TEST(RewriteGraph, AnOffsetIsFoldedIntoAGainThatTheTapeStores) {
  OpGraph graph = toy_graph({.layers = 2, .kv_heads = 3});
  for (Node& node : graph.nodes) {
    if (node.op == Op::kRmsNorm) node.attributes[1] = attribute_bits(1.0f);
  }
  const RewriteResult result = rewritten(graph);
  EXPECT_EQ(count(result.graph, Op::kNormRopeAttention), 2u);  // it has no room for an offset
  uint32_t raised = 0;
  for (const WeightRef& weight : result.graph.weights) raised += weight.plus == 1 ? 1 : 0;
  EXPECT_GE(raised, 2u);
  EXPECT_TRUE(check_rewrite_log(log_of(result), result.graph).ok());
  expect_same_value(graph, result.graph);
}

TEST(RewriteGraph, EveryCheckpointTensorIsStillReached) {
  const OpGraph graph = toy_graph({.layers = 2});
  std::set<std::string> before, after;
  for (const WeightRef& weight : graph.weights) before.insert(weight.name);
  for (const WeightRef& weight : rewritten(graph).graph.weights) after.insert(weight.name);
  EXPECT_EQ(before, after);
}

TEST(RewriteLogText, PrintingWhatIsParsedGivesTheSameText) {
  const RewriteResult result = rewritten(toy_graph({.layers = 3}));
  EXPECT_EQ(print_rewrite_log(log_of(result)), result.log);
}

// Drops a character, a line or the end of the text: refused, or another log; never a crash.
TEST(RewriteLogText, DamagedTextIsRefused) {
  const std::string text = rewritten(toy_graph({.layers = 1})).log;
  uint32_t refused = 0;
  uint32_t tried = 0;
  for (size_t i = 0; i < text.size(); i += 3) {
    std::string dropped = text;
    dropped.erase(i, 1);
    for (const std::string& damaged : {text.substr(0, i), dropped}) {
      const Result<RewriteLog> log = parse_rewrite_log(damaged);
      ++tried;
      if (log.ok()) continue;
      ++refused;
      EXPECT_TRUE(log.error().message.starts_with("rewrite log: ")) << log.error().message;
    }
  }
  EXPECT_GT(refused, tried / 2);
  EXPECT_FALSE(parse_rewrite_log("").ok());
  EXPECT_FALSE(parse_rewrite_log("rewrite log 2\n").ok());
}

TEST(RewriteLogText, TextAfterTheEndOfAnyLineIsRefused) {
  const std::string text = rewritten(toy_graph({.layers = 1})).log;
  for (size_t end = text.find('\n'); end != std::string::npos; end = text.find('\n', end + 1)) {
    std::string longer = text;
    longer.insert(end, " 1");
    EXPECT_FALSE(parse_rewrite_log(longer).ok()) << longer.substr(0, end + 2);
  }
}

class ReplayTest : public testing::Test {
 protected:
  ReplayTest() : result_(rewritten(toy_graph({.layers = 1}))), log_(log_of(result_)) {}

  std::string outcome() const {
    const Status status = check_rewrite_log(log_, result_.graph);
    return status.ok() ? "accepted" : status.error().message;
  }
  size_t firing_of(const char* rule) const {
    for (size_t f = 0; f < log_.firings.size(); ++f) {
      if (std::string(rule_texts()[log_.firings[f].rule].name) == rule) return f;
    }
    PLOW_CHECK(false, "{} did not fire", rule);
  }

  RewriteResult result_;
  RewriteLog log_;
};

TEST_F(ReplayTest, AFiringThatIsLeftOutBreaksTheProof) {
  const std::vector<LoggedFiring> firings = log_.firings;
  EXPECT_EQ(outcome(), "accepted");
  for (size_t f = 0; f < firings.size(); ++f) {
    log_.firings = firings;
    log_.firings.erase(log_.firings.begin() + static_cast<std::ptrdiff_t>(f));
    EXPECT_NE(outcome(), "accepted") << rule_texts()[firings[f].rule].name;
  }
}

TEST_F(ReplayTest, AFiringOfAnotherRuleOrOverOtherNodesIsNoInstance) {
  const std::vector<LoggedFiring> firings = log_.firings;
  uint32_t tried = 0;
  for (size_t f = 0; f < firings.size(); ++f) {
    const auto refuse = [&](const std::function<void(LoggedFiring&)>& damage) {
      log_.firings = firings;
      damage(log_.firings[f]);
      EXPECT_NE(outcome(), "accepted") << f;
      ++tried;
    };
    refuse([](LoggedFiring& firing) { firing.rule = (firing.rule + 1) % static_cast<uint32_t>(rule_texts().size()); });
    refuse([](LoggedFiring& firing) { firing.matched.pop_back(); });
    refuse([](LoggedFiring& firing) { firing.right.clear(); });
    refuse([](LoggedFiring& firing) { firing.right[0] = NodeId(firing.right[0].value - 1); });
    refuse([](LoggedFiring& firing) { std::swap(firing.matched[0], firing.right[0]); });
  }
  EXPECT_GT(tried, 50u);
}

TEST_F(ReplayTest, AnAttributeOfABuiltNodeThatTheRuleDoesNotGiveIsRefused) {
  const LoggedFiring& firing = log_.firings[firing_of("norm_linear")];
  log_.terms.nodes[firing.right[0].value].attributes[0] = attribute_bits(0.5f);
  EXPECT_NE(outcome(), "accepted");
}

TEST_F(ReplayTest, AGraphThatComputesSomethingElseIsRefused) {
  for (Node& node : result_.graph.nodes) {
    if (node.op == Op::kSoftCap) node.attributes[0] = attribute_bits(29.0f);
  }
  EXPECT_EQ(outcome(), "rewrite log: the firings do not show that the new graph computes what the old one did");
}

TEST_F(ReplayTest, ATermOfAWrongTypeIsRefused) {
  log_.terms.nodes[log_.n_before].shape.cols += 1;
  EXPECT_NE(outcome(), "accepted");
}

}  // namespace
}  // namespace plow
