#include "rewrite/egraph.h"

#include "rewrite/saturate.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <random>

namespace plow {
namespace {

const ValueType kRow{DType::kF32, {Rows::kTokens, 1, 8}};

class EGraphTest : public testing::Test {
 protected:
  ENodeId given(uint32_t leaf) { return egraph_.add_given(kOuterValue, leaf, kRow); }
  ENodeId sum(ENodeId a, ENodeId b) { return *egraph_.add(Op::kAdd, {}, std::array{a, b}); }
  ENodeId scaled(ENodeId x, float factor) {
    return *egraph_.add(Op::kScale, {attribute_bits(factor)}, std::array{x});
  }
  // A set of rules by name.
  static std::vector<bool> only(std::initializer_list<const char*> names) {
    std::vector<bool> enabled(rule_texts().size(), false);
    for (const char* name : names) enabled[static_cast<size_t>(find_rule(name) - rule_texts().data())] = true;
    return enabled;
  }
  Saturation run(std::initializer_list<const char*> names, const SaturationLimits& limits = {}) {
    return saturate(egraph_, compiled_rules(), only(names), limits);
  }

  EGraph egraph_;
};

TEST_F(EGraphTest, TheSameOperatorOverTheSameClassesIsOneNode) {
  const ENodeId a = given(0), b = given(1);
  EXPECT_EQ(given(0), a);
  EXPECT_NE(a, b);
  EXPECT_EQ(sum(a, b), sum(a, b));
  EXPECT_NE(sum(a, b), sum(b, a));
  EXPECT_NE(scaled(a, 2), scaled(a, 3));
  EXPECT_EQ(egraph_.eclass(sum(a, b)).type, kRow);
}

TEST_F(EGraphTest, WhatItsShapeRuleRefusesIsNotAdded) {
  const ENodeId a = given(0);
  const ENodeId narrow = egraph_.add_given(kOuterValue, 1, {DType::kF32, {Rows::kTokens, 1, 4}});
  const uint32_t before = egraph_.n_nodes();
  EXPECT_FALSE(egraph_.add(Op::kAdd, {}, std::array{a, narrow}).has_value());
  EXPECT_EQ(egraph_.n_nodes(), before);
}

TEST_F(EGraphTest, EqualInputsMakeEqualValuesAllTheWayUp) {
  const ENodeId a = given(0), b = given(1), c = given(2);
  const ENodeId left = scaled(sum(scaled(a, 2), c), 3);
  const ENodeId right = scaled(sum(scaled(b, 2), c), 3);
  EXPECT_FALSE(egraph_.equal(left, right));
  EXPECT_TRUE(egraph_.merge(a, b, {7}));
  EXPECT_FALSE(egraph_.merge(b, a, {8}));
  egraph_.rebuild();
  EXPECT_TRUE(egraph_.equal(left, right));
  EXPECT_EQ(egraph_.eclass(left).nodes.size(), 1u);  // congruent nodes are one
  EXPECT_EQ(scaled(b, 2), egraph_.eclass(scaled(a, 2)).nodes[0]);
}

TEST_F(EGraphTest, AnExplanationIsAChainWhoseStepsHold) {
  const ENodeId a = given(0), b = given(1), c = given(2), d = given(3);
  const ENodeId fa = scaled(a, 2), fd = scaled(d, 2);
  egraph_.merge(a, b, {0});
  egraph_.merge(c, d, {1});
  egraph_.merge(b, c, {2});
  egraph_.rebuild();
  const std::vector<ProofStep> chain = egraph_.explain(fa, fd);
  ASSERT_EQ(chain.size(), 1u);
  EXPECT_EQ(chain[0].why.firing, Justification::kCongruence);
  std::vector<uint32_t> reasons;
  ENodeId at = a;
  for (const ProofStep& step : egraph_.explain(a, d)) {
    EXPECT_EQ(step.from, at);
    at = step.to;
    reasons.push_back(step.why.firing);
  }
  EXPECT_EQ(at, d);
  EXPECT_EQ(reasons, (std::vector<uint32_t>{0, 2, 1}));
}

// Random unions against a naive closure: classes are what equality, symmetry, transitivity and congruence give.
TEST_F(EGraphTest, RandomUnionsGiveTheCongruenceClosure) {
  std::mt19937 random(3);
  for (int round = 0; round < 50; ++round) {
    egraph_ = {};
    std::vector<ENodeId> nodes;
    for (uint32_t i = 0; i < 5; ++i) nodes.push_back(given(i));
    for (int i = 0; i < 25; ++i) {
      const ENodeId x = nodes[random() % nodes.size()], y = nodes[random() % nodes.size()];
      nodes.push_back(random() % 2 ? sum(x, y) : scaled(x, random() % 2 ? 2.0f : 3.0f));
    }
    std::vector<std::pair<ENodeId, ENodeId>> asked;
    for (int i = 0; i < 4; ++i) asked.emplace_back(nodes[random() % nodes.size()], nodes[random() % nodes.size()]);
    std::vector<uint32_t> label(egraph_.n_nodes());
    for (uint32_t i = 0; i < label.size(); ++i) label[i] = i;
    const auto unite = [&](uint32_t a, uint32_t b) {
      const uint32_t from = label[a], to = label[b];
      for (uint32_t& l : label) l = l == from ? to : l;
      return from != to;
    };
    for (const auto& [a, b] : asked) unite(a.value, b.value);
    const auto congruent = [&](const ENode& x, const ENode& y) {
      if (x.is_given() || x.op != y.op || x.attributes != y.attributes) return false;
      for (uint32_t i = 0; i < x.n_inputs; ++i) {
        if (label[x.inputs[i].value] != label[y.inputs[i].value]) return false;
      }
      return true;
    };
    for (bool changed = true; changed;) {
      changed = false;
      for (uint32_t i = 0; i < label.size(); ++i) {
        for (uint32_t j = 0; j < i; ++j) {
          if (congruent(egraph_.node(ENodeId(i)), egraph_.node(ENodeId(j)))) changed |= unite(i, j);
        }
      }
    }
    for (uint32_t i = 0; i < asked.size(); ++i) egraph_.merge(asked[i].first, asked[i].second, {i});
    egraph_.rebuild();
    for (uint32_t i = 0; i < label.size(); ++i) {
      for (uint32_t j = 0; j < i; ++j) {
        ASSERT_EQ(egraph_.equal(ENodeId(i), ENodeId(j)), label[i] == label[j]) << round;
        if (label[i] == label[j]) {
          EXPECT_FALSE(egraph_.explain(ENodeId(i), ENodeId(j)).empty());
        }
      }
    }
  }
}

TEST_F(EGraphTest, AVariableThatComesTwiceMatchesEqualValuesOnly) {
  const ENodeId a = given(0), b = given(1);
  sum(a, a);
  const ENodeId mixed = sum(a, b);
  const RewriteRule rule =
      compile_rule({"twice", RuleClass::kExact, "add(x, x)", "scale[factor=2](x)", "", "", ""}).value();
  EXPECT_EQ(match_class(egraph_, rule.program, sum(a, a)).size(), 1u);
  EXPECT_TRUE(match_class(egraph_, rule.program, mixed).empty());
  egraph_.merge(a, b, {});
  egraph_.rebuild();
  EXPECT_EQ(match_class(egraph_, rule.program, mixed).size(), 1u);
}

TEST_F(EGraphTest, SumsOfFourTermsInAllOrdersAreOneClass) {
  std::vector<ENodeId> terms;
  for (uint32_t i = 0; i < 4; ++i) terms.push_back(given(i));
  const ENodeId left = sum(sum(sum(terms[0], terms[1]), terms[2]), terms[3]);
  const ENodeId right = sum(terms[3], sum(terms[1], sum(terms[2], terms[0])));
  const Saturation saturation = run({"add_commute", "add_associate"});
  EXPECT_EQ(saturation.reason, StopReason::kSaturated);
  EXPECT_TRUE(egraph_.equal(left, right));
  // A sum for each subset of at least two terms, in each way to cut it in two.
  EXPECT_EQ(egraph_.classes().size(), 15u);
  size_t n_nodes = 0;
  for (const ENodeId eclass : egraph_.classes()) n_nodes += egraph_.eclass(eclass).nodes.size();
  EXPECT_EQ(n_nodes, 4u + 6 * 2 + 4 * 6 + 1 * 14);
}

TEST_F(EGraphTest, SaturationStopsAtItsLimitsAndSaysWhy) {
  ENodeId x = given(0);
  for (uint32_t i = 1; i < 8; ++i) x = sum(x, given(i));
  const EGraph before = egraph_;
  const Saturation short_of_nodes = run({"add_commute", "add_associate"}, {32, 100});
  EXPECT_EQ(short_of_nodes.reason, StopReason::kNodes);
  EXPECT_LE(egraph_.n_nodes(), 102u);
  egraph_ = before;
  const Saturation short_of_time = run({"add_commute", "add_associate"}, {2, 100000});
  EXPECT_EQ(short_of_time.reason, StopReason::kIterations);
  EXPECT_EQ(short_of_time.iterations, 2u);
  EXPECT_STREQ(stop_reason_name(StopReason::kIterations), "iteration limit");
}

TEST_F(EGraphTest, WhatAnExplanationNeedsIsAllThatItsFiringsRestOn) {
  const ENodeId a = given(0);
  const ENodeId three = scaled(scaled(scaled(a, 2), 4), 0.5f);
  scaled(scaled(given(1), 2), 2);  // fires too, and nobody asks for it
  const ENodeId one = scaled(a, 4);
  const Saturation saturation = run({"scale_scale"});
  ASSERT_TRUE(egraph_.equal(three, one));
  Explainer explainer(egraph_, compiled_rules(), saturation);
  explainer.require(three, one);
  const std::vector<uint32_t> needed = explainer.firings();
  EXPECT_EQ(needed.size(), 2u);
  EXPECT_GT(saturation.firings.size(), needed.size());
  EXPECT_TRUE(std::is_sorted(needed.begin(), needed.end()));
}

TEST_F(EGraphTest, AWeightWithANumberAddedIsAnotherLeaf) {
  const ValueType gain{DType::kF32, {Rows::kFixed, 1, 8}};
  const ENodeId x = given(0), g = egraph_.add_given(Op::kWeight, 1, gain);
  const Attributes attributes{attribute_bits(1e-6f), attribute_bits(1.0f), 8};
  const ENodeId norm = *egraph_.add(Op::kRmsNorm, attributes, std::array{x, g});
  run({"fold_norm_offset"});
  ASSERT_EQ(egraph_.eclass(norm).nodes.size(), 2u);
  const ENode& folded = egraph_.node(egraph_.eclass(norm).nodes[1]);
  EXPECT_EQ(attribute_f32(folded.attributes, 1), 0);
  const ENode& raised = egraph_.node(folded.inputs[1]);
  EXPECT_EQ(raised.op, Op::kWeight);
  EXPECT_EQ(raised.leaf, 1u);
  EXPECT_EQ(attribute_f32(raised.attributes, 0), 1);
  EXPECT_FALSE(egraph_.equal(folded.inputs[1], g));
}

TEST_F(EGraphTest, AGainThatIsNoStoredWeightKeepsItsOffset) {
  const ValueType gain{DType::kF32, {Rows::kFixed, 1, 8}};
  const ENodeId x = given(0), g = egraph_.add_given(kOuterValue, 1, gain);
  const Attributes attributes{attribute_bits(1e-6f), attribute_bits(1.0f), 8};
  const ENodeId norm = *egraph_.add(Op::kRmsNorm, attributes, std::array{x, g});
  EXPECT_TRUE(run({"fold_norm_offset"}).firings.empty());
  EXPECT_EQ(egraph_.eclass(norm).nodes.size(), 1u);
}

}  // namespace
}  // namespace plow
