#include "rewrite/rule.h"

#include "base/check.h"

#include <fmt/format.h>

#include <algorithm>

namespace plow {
namespace {

constexpr std::string_view kProvedRules[] = {
#include "rewrite/proved_rules.inc"
};

constexpr bool is_proved(std::string_view name) {
  for (const std::string_view proved : kProvedRules) {
    if (proved == name) return true;
  }
  return false;
}

constexpr RuleText kRules[] = {
#define PLOW_RULE(family, name, rule_class, left, right, conditions, reason) \
  {#name, RuleClass::rule_class, left, right, conditions, reason, #family, is_proved(#name)},
#include "rewrite/rules/algebra.def"
#include "rewrite/rules/attention.def"
#include "rewrite/rules/gather.def"
#include "rewrite/rules/linear.def"
#include "rewrite/rules/norm.def"
#include "rewrite/rules/scale.def"
#include "rewrite/rules/split.def"
#undef PLOW_RULE
};

Status check_arguments(const PatternCall& call, std::string_view wanted) {
  bool fits = call.arguments.size() == wanted.size();
  for (size_t i = 0; fits && i < wanted.size(); ++i) fits = call.arguments[i].is_value == (wanted[i] == 'v');
  if (fits) return {};
  return input_error(fmt::format("rule pattern: '{}' takes other arguments ({})", call.name, wanted));
}

Status check_calls(const RewriteRule& rule) {
  for (const PatternCall& call : rule.conditions) {
    const RulePredicate* predicate = find_predicate(call.name);
    if (predicate == nullptr) return input_error(fmt::format("rule pattern: there is no condition '{}'", call.name));
    PLOW_TRY_STATUS(check_arguments(call, predicate->arguments));
  }
  for (const PatternTerm& term : rule.right.terms) {
    for (const AttributePattern& attribute : term.attributes) {
      if (attribute.kind != AttributePattern::Kind::kCall) continue;
      const RuleFunction* function = find_function(attribute.call.name);
      if (function == nullptr) {
        return input_error(fmt::format("rule pattern: there is no function '{}'", attribute.call.name));
      }
      PLOW_TRY_STATUS(check_arguments(attribute.call, function->arguments));
    }
  }
  return {};
}

Result<RewriteRule> compile_sides(const RuleText& text) {
  RewriteRule rule;
  rule.text = text;
  PLOW_TRY(rule.left, parse_left_pattern(text.left, rule.variables));
  if (rule.left.terms[0].kind != PatternTerm::Kind::kOperator) {
    return input_error("rule pattern: a left side must be an operator");
  }
  PLOW_TRY(rule.right, parse_right_pattern(text.right, rule.variables));
  PLOW_TRY(rule.conditions, parse_conditions(text.conditions, rule.variables));
  PLOW_TRY_STATUS(check_calls(rule));
  rule.program = compile_pattern(rule.left, rule.variables);
  return rule;
}

}  // namespace

std::span<const RuleText> rule_texts() { return kRules; }

const RuleText* find_rule(std::string_view name) {
  for (const RuleText& rule : kRules) {
    if (name == rule.name) return &rule;
  }
  return nullptr;
}

Result<std::vector<bool>> enabled_rules(std::span<const RuleText> rules, const std::vector<std::string>& disabled) {
  std::vector<bool> enabled;
  for (const RuleText& rule : rules) enabled.push_back(rule.proved);
  for (const std::string& name : disabled) {
    const auto rule = std::find_if(rules.begin(), rules.end(), [&](const RuleText& known) { return known.name == name; });
    if (rule == rules.end()) {
      std::vector<std::string> names;
      for (const RuleText& known : rules) names.emplace_back(known.name);
      return usage_error(fmt::format("there is no rewrite rule named '{}' (--no-rewrite); there are {}", name,
                                     fmt::join(names, ", ")));
    }
    enabled[static_cast<size_t>(rule - rules.begin())] = false;
  }
  return enabled;
}

std::vector<std::string> rules_that_need_more(bool (*available)(Op)) {
  std::vector<std::string> names;
  for (const RewriteRule& rule : compiled_rules()) {
    const auto needs_more = [&](const PatternTerm& term) {
      return term.kind == PatternTerm::Kind::kOperator && !available(term.op);
    };
    if (std::any_of(rule.right.terms.begin(), rule.right.terms.end(), needs_more)) names.emplace_back(rule.text.name);
  }
  return names;
}

std::vector<std::string> unproved_rules(std::span<const RuleText> rules) {
  std::vector<std::string> names;
  for (const RuleText& rule : rules) {
    if (!rule.proved) names.emplace_back(rule.name);
  }
  return names;
}

Result<RewriteRule> compile_rule(const RuleText& text) {
  Result<RewriteRule> rule = compile_sides(text);
  if (!rule.ok()) return rule.error().at(text.name);
  return rule;
}

const std::vector<RewriteRule>& compiled_rules() {
  static const std::vector<RewriteRule> kCompiled = [] {
    std::vector<RewriteRule> rules;
    for (const RuleText& text : kRules) {
      Result<RewriteRule> rule = compile_rule(text);
      PLOW_CHECK(rule.ok(), "{}", rule.error().message);
      rules.push_back(std::move(rule).value());
    }
    return rules;
  }();
  return kCompiled;
}

}  // namespace plow
