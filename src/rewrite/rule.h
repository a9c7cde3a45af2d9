// Rules: named data. A rule says that two ways to compute a value are equal, and under which conditions. The
// table is read from rules/*.def, one line a rule, one file a family; docs/rules.md is generated from it.
#pragma once

#include "rewrite/match.h"
#include "rewrite/pattern.h"

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace plow {

// What a rule keeps. Both kinds keep the value over the reals.
enum class RuleClass : uint8_t {
  kExact,     // the same roundings in the same order: a body may give the same bits
  kRounding,  // roundings are left out or come in another order
};

constexpr const char* rule_class_name(RuleClass rule_class) {
  return rule_class == RuleClass::kExact ? "exact" : "rounding";
}

struct RuleText {
  const char* name;
  RuleClass rule_class;
  const char* left;
  const char* right;
  const char*
      conditions;      // over the left side's variables; besides, the right side must have the left's type
  const char* reason;  // one line: what is gained
  const char* family;
  bool proved = false;  // proofs/rules has a theorem of its name about its text
};

// Rules in the order of the table. A rule's place is its number.
std::span<const RuleText> rule_texts();
const RuleText* find_rule(std::string_view name);  // null when there is none

// Which rules fire, by place in `rules`: those that are proved and not switched off. Errors (kUsage): a
// disabled rule that does not exist; the message lists those that do.
Result<std::vector<bool>> enabled_rules(std::span<const RuleText> rules,
                                        const std::vector<std::string>& disabled);
// The names of the table's rules whose right side has an operator of which available() is false.
std::vector<std::string> rules_that_need_more(bool (*available)(Op));
// The names of those that are not proved, and so never fire.
std::vector<std::string> unproved_rules(std::span<const RuleText> rules);

struct RewriteRule {
  RuleText text;
  PatternVariables variables;
  RewritePattern left, right;
  std::vector<PatternCall> conditions;
  MatchProgram program;
};

// Errors (kInput): a pattern that cannot be read; a condition or function that does not exist or takes other
// arguments.
Result<RewriteRule> compile_rule(const RuleText& text);
// The rules of the table. REQUIRES a table that compiles (a test).
const std::vector<RewriteRule>& compiled_rules();

// What a condition or a function of a rule is told about a variable.
struct RuleArgument {
  bool is_value = false;
  ValueType type;                // of a value
  const ENode* given = nullptr;  // the leaf or outer value that the value is, or null
  uint32_t bits = 0;             // of an attribute
};

// `arguments`: one letter each, v a value, a an attribute.
struct RulePredicate {
  const char* name;
  const char* arguments;
  bool (*holds)(std::span<const RuleArgument>);
  const char* meaning;
};
struct RuleFunction {
  const char* name;
  const char* arguments;
  std::optional<uint32_t> (*compute)(std::span<const RuleArgument>);  // nothing: the rule does not fire
  const char* meaning;
};
std::span<const RulePredicate> rule_predicates();
std::span<const RuleFunction> rule_functions();
const RulePredicate* find_predicate(std::string_view name);
const RuleFunction* find_function(std::string_view name);

}  // namespace plow
