// Every rule of the table, on random shapes and values, in float64.
#include "rewrite/rule.h"

#include <gtest/gtest.h>

#include "rewrite/testing/rule_instance.h"

#include <array>
#include <cmath>
#include <set>

namespace plow {
namespace {

constexpr int kInstances = 25;

// Sums of at most 1216 products in another order: 1216 roundings of 2^-53 each, relative to the sum of magnitudes,
// which tests of values below 1 keep below some 1e3; then through at most an exponential and a division.
constexpr double kTolerance = 1216 * 0x1p-53 * 16;

enum class Agreement { kSameBits, kClose, kApart };

Agreement compare(const Matrix& a, const Matrix& b) {
  if (a.rows != b.rows || a.cols != b.cols || a.values.empty()) return Agreement::kApart;
  Agreement agreement = Agreement::kSameBits;
  double largest = 1;
  for (const double value : a.values) largest = std::max(largest, std::fabs(value));
  for (size_t i = 0; i < a.values.size(); ++i) {
    if (a.values[i] == b.values[i]) continue;
    if (!(std::fabs(a.values[i] - b.values[i]) <= kTolerance * largest)) return Agreement::kApart;
    agreement = Agreement::kClose;
  }
  return agreement;
}

// The worst of some random instances; nothing when the rule has none.
std::optional<Agreement> test_rule(const RewriteRule& rule) {
  std::mt19937 random(7);
  Agreement worst = Agreement::kSameBits;
  for (int i = 0; i < kInstances; ++i) {
    RuleInstance instance;
    if (!RuleInstanceMaker(rule, random).make(instance)) return std::nullopt;
    for (const auto& [left, right] : evaluate_sides(instance)) worst = std::max(worst, compare(left, right));
  }
  return worst;
}

TEST(Rules, EveryRuleOfTheTableCompilesAndItsNameIsUnique) {
  std::set<std::string> names;
  for (const RuleText& text : rule_texts()) {
    const Result<RewriteRule> rule = compile_rule(text);
    EXPECT_TRUE(rule.ok()) << rule.error().message;
    EXPECT_TRUE(names.insert(text.name).second) << text.name;
    EXPECT_EQ(find_rule(text.name), &text);
    EXPECT_GT(std::string(text.reason).size(), 10u) << text.name;
  }
  EXPECT_EQ(find_rule("no_such_rule"), nullptr);
}

// Over float64 an exact rule gives the same bits, and one that moves roundings gives them to rounding.
TEST(Rules, BothSidesOfEveryRuleHaveTheSameValueOnRandomInstances) {
  for (const RewriteRule& rule : compiled_rules()) {
    const std::optional<Agreement> agreement = test_rule(rule);
    ASSERT_TRUE(agreement.has_value()) << rule.text.name << " has no instance";
    EXPECT_NE(*agreement, Agreement::kApart) << rule.text.name;
    if (rule.text.rule_class == RuleClass::kExact) {
      EXPECT_EQ(*agreement, Agreement::kSameBits) << rule.text.name;
    }
  }
}

TEST(Rules, WrongRulesAreCaught) {
  const RuleText wrong[] = {
      {"offset_lost", RuleClass::kExact, "rms_norm[eps=e offset=o group=n](x, g)", "rms_norm[eps=e offset=0 group=n](x, g)",
       "nonzero(o)", "", ""},
      {"residual_lost", RuleClass::kExact, "add(r, linear(x, w))", "linear_part[k_begin=0 k_end=cols(x)](x, w)", "", "", ""},
      {"sides_swapped", RuleClass::kExact, "glu[activation=a](x, y)", "glu[activation=a](y, x)", "", "", ""},
      {"factor_lost", RuleClass::kExact, "scale[factor=f](scale[factor=h](x))", "scale[factor=f](x)", "", "", ""},
      {"factor_kept", RuleClass::kExact, "soft_cap[cap=c](scale[factor=f](x))", "scale[factor=f](soft_cap[cap=c](x))",
       "power_of_two(f)", "", ""},
      {"part_twice", RuleClass::kExact, "linear(x, w)",
       "linear_add[k_begin=0 k_end=cols(x)](x, w, linear_part[k_begin=0 k_end=half(x)](x, w))", "", "", ""},
      {"keys_unrotated", RuleClass::kExact, "kv_append[head_dim=d](rope[head_dim=d](k, t), v, s)",
       "kv_append[head_dim=d](k, v, s)", "", "", ""},
      {"groups_mixed", RuleClass::kExact, "rms_norm[eps=e offset=o group=n](rms_norm[eps=e offset=o group=n](x, g), g)",
       "rms_norm[eps=e offset=o group=n](x, g)", "", "", ""},
  };
  for (const RuleText& text : wrong) {
    const Result<RewriteRule> rule = compile_rule(text);
    ASSERT_TRUE(rule.ok()) << rule.error().message;
    const std::optional<Agreement> agreement = test_rule(*rule);
    ASSERT_TRUE(agreement.has_value()) << text.name << " has no instance";
    EXPECT_EQ(*agreement, Agreement::kApart) << text.name;
  }
}

TEST(Rules, ARuleThatClaimsTheSameBitsAndRoundsElsewhereIsCaught) {
  const RuleText text{"not_exact", RuleClass::kExact, "add(add(soft_cap[cap=c](x), y), z)",
                      "add(soft_cap[cap=c](x), add(y, z))", "", "", ""};
  EXPECT_EQ(test_rule(compile_rule(text).value()), Agreement::kClose);
}

TEST(Rules, PatternsThatCannotBeReadAreRefusedWithThePlace) {
  const auto message = [](const char* left, const char* right, const char* conditions) {
    const Result<RewriteRule> rule = compile_rule({"bad", RuleClass::kExact, left, right, conditions, "", ""});
    return rule.ok() ? std::string("accepted") : rule.error().message;
  };
  EXPECT_EQ(message("add(x, y)", "add(y, x)", ""), "accepted");
  EXPECT_EQ(message("sum(x, y)", "x", ""), "bad: rule pattern: there is no operator 'sum' at '(x, y)'");
  EXPECT_EQ(message("add(x, y", "x", ""), "bad: rule pattern: ')' must come at ''");
  EXPECT_EQ(message("add(x, y)", "add(x, z)", ""), "bad: rule pattern: the left side names no value 'z' at ')'");
  EXPECT_EQ(message("scale(x)", "x", ""), "bad: rule pattern: '[factor=' must come at '(x)'");
  EXPECT_EQ(message("scale[factor=f](x)", "scale[factor=g](x)", ""),
            "bad: rule pattern: the left side names no attribute 'g' at '](x)'");
  EXPECT_EQ(message("scale[factor=f](x)", "scale[factor=twice(f)](x)", ""), "bad: rule pattern: there is no function 'twice'");
  EXPECT_EQ(message("scale[factor=f](x)", "x", "small(f)"), "bad: rule pattern: there is no condition 'small'");
  EXPECT_EQ(message("scale[factor=f](x)", "x", "one(x)"), "bad: rule pattern: 'one' takes other arguments (a)");
  EXPECT_EQ(message("x", "x", ""), "bad: rule pattern: a left side must be an operator");
  EXPECT_EQ(message("add(x, y)z", "x", ""), "bad: rule pattern: the pattern goes on at 'z'");
}

TEST(Rules, OneWithoutATheoremIsOffAndCounted) {
  EXPECT_EQ(unproved_rules(rule_texts()), std::vector<std::string>{}) << "proofs/rules/Sound.v has no theorem of these";
  const RuleText rules[] = {
      {"known", RuleClass::kExact, "add(x, y)", "add(y, x)", "", "", "seeded", true},
      {"seeded", RuleClass::kExact, "add(x, y)", "x", "", "", "seeded", false},
  };
  EXPECT_EQ(unproved_rules(rules), std::vector<std::string>{"seeded"});
  EXPECT_EQ(enabled_rules(rules, {}).value(), (std::vector<bool>{true, false}));
  EXPECT_EQ(enabled_rules(rules, {"known"}).value(), (std::vector<bool>{false, false}));
}

TEST(Rules, AFactorIsFoldedOnlyWhereF32HoldsTheProduct) {
  const auto product = [](float a, float b) {
    std::array<RuleArgument, 2> arguments;
    arguments[0].bits = attribute_bits(a);
    arguments[1].bits = attribute_bits(b);
    return find_function("product")->compute(arguments);
  };
  EXPECT_EQ(product(3, 0.25f), attribute_bits(0.75f));
  EXPECT_EQ(product(1.5f, 1.5f), attribute_bits(2.25f));
  EXPECT_EQ(product(0.1f, 0.3f), std::nullopt);     // rounds
  EXPECT_EQ(product(0x1p-100f, 0x1p-40f), std::nullopt);  // below the normal numbers
  EXPECT_EQ(product(0x1p100f, 0x1p40f), std::nullopt);    // too large
}

}  // namespace
}  // namespace plow
