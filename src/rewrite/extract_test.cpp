#include "rewrite/extract.h"

#include <gtest/gtest.h>

#include <cmath>
#include <random>

namespace plow {
namespace {

// Every choice of a node for every class.
double brute_force(const ExtractionProblem& problem) {
  double best = INFINITY;
  Extraction all;
  all.choice.assign(problem.classes.size(), 0);
  for (;;) {
    Extraction one = all;
    if (measure_choice(problem, one)) best = std::min(best, one.cost);
    size_t c = 0;
    while (c < problem.classes.size() && ++all.choice[c] == problem.classes[c].size()) all.choice[c++] = 0;
    if (c == problem.classes.size()) return best;
  }
}

// Up to 9 classes of up to 3 nodes, with circles and sharing; class 0 can always be computed.
ExtractionProblem random_problem(std::mt19937& random) {
  const auto draw = [&random](uint32_t below) { return static_cast<uint32_t>(random() % below); };
  ExtractionProblem problem;
  const uint32_t n = 3 + draw(7);
  problem.wait = draw(4);
  problem.classes.resize(n);
  problem.classes[0].push_back({});
  for (uint32_t c = 1; c < n; ++c) {
    const uint32_t n_nodes = 1 + draw(3);
    for (uint32_t i = 0; i < n_nodes; ++i) {
      ExtractionNode node;
      node.cost = draw(8);  // 0 among them: then circles cost nothing
      const uint32_t n_inputs = 1 + draw(3);
      for (uint32_t k = 0; k < n_inputs; ++k) {
        // The first node reads earlier classes, so that there is a way; the others read any.
        node.inputs.push_back({draw(i == 0 ? c : n), draw(2) == 0});
      }
      problem.classes[c].push_back(node);
    }
  }
  problem.roots = {n - 1};
  if (draw(3) == 0) problem.roots.push_back(n - 2);
  return problem;
}

TEST(Extract, AThousandRandomEGraphsCostWhatBruteForceSays) {
  std::mt19937 random(11);
  int shared = 0;
  for (int i = 0; i < 1000; ++i) {
    const ExtractionProblem problem = random_problem(random);
    const Extraction found = extract(problem, {});
    ASSERT_TRUE(found.exact) << i;
    ASSERT_DOUBLE_EQ(found.cost, brute_force(problem)) << i;
    Extraction again = found;
    ASSERT_TRUE(measure_choice(problem, again));
    EXPECT_EQ(again.choice, found.choice);
    EXPECT_EQ(again.cost, found.cost);
    EXPECT_EQ(again.chain, found.chain);
    shared += found.steps > 1;
  }
  EXPECT_GT(shared, 300);  // not all are trivial
}

ExtractionNode node(double cost, std::initializer_list<ExtractionNode::Input> inputs) { return {cost, inputs}; }

TEST(Extract, WhatIsSharedCountsOnce) {
  // 3 reads 1 and 2, which both read 0's dear value, or are cheaper as trees of their own.
  ExtractionProblem problem;
  problem.classes = {{node(10, {})},
                     {node(1, {{0, false}}), node(9, {})},
                     {node(1, {{0, false}}), node(9, {})},
                     {node(1, {{1, false}, {2, false}})}};
  problem.roots = {3};
  const Extraction found = extract(problem, {});
  EXPECT_EQ(found.cost, 13);  // as trees: 19
  EXPECT_EQ(found.choice, (std::vector<uint32_t>{0, 0, 0, 0}));
}

TEST(Extract, ALongChainOfWaitsLosesAgainstMoreWork) {
  ExtractionProblem problem;
  problem.classes = {{node(0, {})},
                     {node(2, {{0, true}})},
                     {node(2, {{1, true}}), node(5, {{0, true}})}};
  problem.roots = {2};
  problem.wait = 0.5;
  EXPECT_EQ(extract(problem, {}).choice[2], 0u);  // 2 + 2 + 2 waits against 5 + 1 wait
  problem.wait = 3;
  const Extraction found = extract(problem, {});
  EXPECT_EQ(found.choice[2], 1u);
  EXPECT_EQ(found.chain, 1u);
  EXPECT_EQ(found.cost, 8);
  EXPECT_EQ(found.choice[1], Extraction::kUnused);
}

TEST(Extract, ACircleIsNoWayToComputeAValue) {
  ExtractionProblem problem;
  problem.classes = {{node(0, {{1, false}}), node(100, {})}, {node(0, {{0, false}})}};
  problem.roots = {1};
  EXPECT_EQ(extract(problem, {}).cost, 100);
  Extraction circle;
  circle.choice = {0, 0};
  EXPECT_FALSE(measure_choice(problem, circle));
}

TEST(Extract, ASearchThatIsCutShortSaysSoAndIsNoWorseThanItsStart) {
  std::mt19937 random(5);
  int cut = 0;
  for (int i = 0; i < 200; ++i) {
    const ExtractionProblem problem = random_problem(random);
    const Extraction full = extract(problem, {});
    const Extraction brief = extract(problem, {.max_steps = 2});
    EXPECT_GE(brief.cost, full.cost);
    if (brief.exact) continue;
    ++cut;
    Extraction again = brief;
    EXPECT_TRUE(measure_choice(problem, again));
  }
  EXPECT_GT(cut, 20);
}

}  // namespace
}  // namespace plow
