// docs/rules.md is generated from the table of rules: this test writes it anew into the build folder and compares.
#include "rewrite/rule.h"

#include <gtest/gtest.h>

#include <fmt/format.h>

#include <fstream>
#include <sstream>

namespace plow {
namespace {

std::string rules_document() {
  std::string out =
      "# Rewrite rules\n"
      "Generated from `src/rewrite/rules/*.def` by `src/rewrite/rules_doc_test.cpp`; [rewriting](arch/03-rewriting.md) says how they\n"
      "are applied. `plowc --no-rewrite=NAME` switches one off. A rule holds over the reals; *exact* ones keep every rounding where\n"
      "it was, so that the float64 evaluator gives the same bits on both sides, *rounding* ones leave some out or move them.\n"
      "A rule fires only where its right side has a type, and the type of its left side.\n";
  std::string family;
  for (const RuleText& rule : rule_texts()) {
    if (family != rule.family) {
      family = rule.family;
      out += fmt::format("\n## {}\n", family);
    }
    out += fmt::format("\n**{}** ({}): {}.\n\n```\n{}\n  = {}\n", rule.name, rule_class_name(rule.rule_class), rule.reason,
                       rule.left, rule.right);
    if (*rule.conditions != '\0') out += fmt::format("  if {}\n", rule.conditions);
    out += "```\n";
  }
  out += "\n## Conditions and functions\n\n| name | means |\n|---|---|\n";
  for (const RulePredicate& predicate : rule_predicates()) out += fmt::format("| `{}` | {} |\n", predicate.name, predicate.meaning);
  for (const RuleFunction& function : rule_functions()) out += fmt::format("| `{}` | {} |\n", function.name, function.meaning);
  out += "| `plus(g, o)` | the stored weight g with o added to every value, once, in f32 |\n";
  return out;
}

TEST(RulesDocument, IsWhatTheTableOfRulesSays) {
  const std::string expected = rules_document();
  std::ofstream(std::string(PLOW_BINARY_DIR) + "/rules.md") << expected;
  std::ifstream file(std::string(PLOW_SOURCE_DIR) + "/docs/rules.md");
  std::stringstream found;
  found << file.rdbuf();
  EXPECT_EQ(found.str(), expected) << "copy " << PLOW_BINARY_DIR << "/rules.md to docs/rules.md";
}

}  // namespace
}  // namespace plow
