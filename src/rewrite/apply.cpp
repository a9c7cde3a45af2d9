#include "rewrite/apply.h"

#include "base/check.h"

namespace plow {
namespace {

RuleArgument value_argument(const EGraph& egraph, ENodeId value) {
  const EClass& eclass = egraph.eclass(value);
  RuleArgument argument;
  argument.is_value = true;
  argument.type = eclass.type;
  argument.given = eclass.given.valid() ? &egraph.node(eclass.given) : nullptr;
  return argument;
}

std::vector<RuleArgument> arguments_of(const EGraph& egraph, const PatternCall& call, const RuleMatch& match) {
  std::vector<RuleArgument> arguments;
  for (const PatternArgument& argument : call.arguments) {
    if (argument.is_value) {
      arguments.push_back(value_argument(egraph, match.values[argument.variable]));
    } else {
      arguments.push_back({});
      arguments.back().bits = match.attributes[argument.variable];
    }
  }
  return arguments;
}

class RightSide {
 public:
  RightSide(EGraph& egraph, const RewriteRule& rule, const RuleMatch& match)
      : egraph_(egraph), terms_(rule.right.terms), match_(match), types_(terms_.size()), attributes_(terms_.size()) {}

  std::optional<BuiltSide> run() {
    const ValueType wanted = egraph_.eclass(match_.matched[0]).type;
    if (!infer(0) || types_[0] != wanted) return std::nullopt;
    BuiltSide side;
    side.root = build(0, side.built);
    return side;
  }

 private:
  // Types and attributes of a term and those below, before anything is added.
  bool infer(uint32_t index) {
    const PatternTerm& term = terms_[index];
    if (term.kind != PatternTerm::Kind::kOperator) {
      types_[index] = egraph_.eclass(match_.values[term.variable]).type;
      return true;
    }
    std::vector<ValueType> inputs;
    for (const uint32_t input : term.inputs) {
      if (!infer(input)) return false;
      inputs.push_back(types_[input]);
    }
    for (size_t i = 0; i < term.attributes.size(); ++i) {
      const std::optional<uint32_t> bits = attribute(term.attributes[i]);
      if (!bits) return false;
      attributes_[index][i] = *bits;
    }
    const Result<ValueType> type = op_def(term.op).infer(inputs, attributes_[index]);
    if (type.ok()) types_[index] = *type;
    return type.ok();
  }

  std::optional<uint32_t> attribute(const AttributePattern& pattern) const {
    switch (pattern.kind) {
      case AttributePattern::Kind::kVariable:
        return match_.attributes[pattern.variable];
      case AttributePattern::Kind::kNumber:
        return pattern.bits;
      case AttributePattern::Kind::kCall:
        return find_function(pattern.call.name)->compute(arguments_of(egraph_, pattern.call, match_));
    }
    return std::nullopt;
  }

  ENodeId build(uint32_t index, std::vector<ENodeId>& built) {
    const PatternTerm& term = terms_[index];
    if (term.kind == PatternTerm::Kind::kVariable) return match_.values[term.variable];
    const size_t place = built.size();
    built.emplace_back();
    if (term.kind == PatternTerm::Kind::kPlus) {
      const ENodeId given = egraph_.eclass(match_.values[term.variable]).given;
      PLOW_CHECK(given.valid() && egraph_.node(given).op == Op::kWeight, "plus() of what is no weight");
      const float plus = std::bit_cast<float>(*attribute(term.attributes[0]));
      built[place] = egraph_.add_given(Op::kWeight, egraph_.node(given).leaf, types_[index], plus);
      return built[place];
    }
    std::vector<ENodeId> inputs;
    for (const uint32_t input : term.inputs) inputs.push_back(build(input, built));
    const std::optional<ENodeId> node = egraph_.add(term.op, attributes_[index], inputs);
    PLOW_CHECK(node.has_value(), "{} was inferred before", op_name(term.op));
    built[place] = *node;
    return built[place];
  }

  EGraph& egraph_;
  const std::vector<PatternTerm>& terms_;
  const RuleMatch& match_;
  std::vector<ValueType> types_;
  std::vector<Attributes> attributes_;
};

}  // namespace

bool conditions_hold(const EGraph& egraph, const RewriteRule& rule, const RuleMatch& match) {
  for (const PatternCall& call : rule.conditions) {
    if (!find_predicate(call.name)->holds(arguments_of(egraph, call, match))) return false;
  }
  return true;
}

std::optional<BuiltSide> build_right_side(EGraph& egraph, const RewriteRule& rule, const RuleMatch& match) {
  return RightSide(egraph, rule, match).run();
}

}  // namespace plow
