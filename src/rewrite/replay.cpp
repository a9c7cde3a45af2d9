// The check of a rewrite log. It shares the rules with the rewriter, and nothing of how they were applied.
#include "rewrite/log.h"

#include "base/check.h"
#include "graph/op_def.h"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <map>
#include <tuple>

namespace plow {
namespace {

// Terms with a union-find. Congruence is closed over when someone asks for an equality that is not known yet.
class TermTable {
 public:
  // Appends the nodes of a graph; their ids are shifted by what is returned. Errors: a node whose type is not what
  // its operator's shape rule says.
  Result<uint32_t> append(const OpGraph& graph) {
    const auto shift = static_cast<uint32_t>(terms_.size());
    for (uint32_t i = 0; i < graph.nodes.size(); ++i) {
      const Node& node = graph.nodes[i];
      Term term{node, {}, {}};
      std::vector<ValueType> types;
      for (const NodeId input : graph.inputs_of(NodeId(i))) {
        if (input.value >= i) return bad(i, "reads a node that comes after it");
        term.inputs.emplace_back(input.value + shift);
        types.push_back(type(term.inputs.back()));
      }
      if (is_leaf(node.op)) {
        term.leaf = leaf_text(graph, node);
      } else {
        if (types.size() != op_def(node.op).n_inputs) return bad(i, "has another number of inputs");
        const Result<ValueType> inferred = op_def(node.op).infer(types, node.attributes);
        if (!inferred.ok() || *inferred != ValueType{node.dtype, node.shape}) return bad(i, "has another type");
      }
      terms_.push_back(std::move(term));
      leader_.push_back(NodeId(leader_.size()));
    }
    closed_ = false;
    return shift;
  }

  const Node& node(NodeId id) const { return terms_[id.value].node; }
  const std::vector<NodeId>& inputs(NodeId id) const { return terms_[id.value].inputs; }
  ValueType type(NodeId id) const { return {node(id).dtype, node(id).shape}; }

  bool equal(NodeId a, NodeId b) {
    if (find(a) == find(b)) return true;
    if (!closed_) close();
    return find(a) == find(b);
  }
  void merge(NodeId a, NodeId b) {
    leader_[find(a).value] = find(b);
    closed_ = false;
  }
  // The leaf that is known to be equal, or null.
  const Node* leaf_of(NodeId id) const {
    for (uint32_t i = 0; i < terms_.size(); ++i) {
      if (is_leaf(terms_[i].node.op) && find(NodeId(i)) == find(id)) return &terms_[i].node;
    }
    return nullptr;
  }

 private:
  struct Term {
    Node node;
    std::vector<NodeId> inputs;
    std::string leaf;
  };

  static Error bad(uint32_t i, const char* what) {
    return verification_error(fmt::format("rewrite log: %{} {}", i, what));
  }

  NodeId find(NodeId id) const {
    while (leader_[id.value] != id) id = leader_[id.value];
    return id;
  }

  static std::string leaf_text(const OpGraph& graph, const Node& node) {
    const std::string type = to_text({node.dtype, node.shape});
    switch (node.op) {
      case Op::kWeight:
        return fmt::format("{} {} {}", type, graph.weights[node.leaf].plus, graph.weights[node.leaf].name);
      case Op::kConstant:
        return fmt::format("{} {}", type, fmt::join(graph.constants[node.leaf].values, " "));
      case Op::kKvState: {
        const KvStateRef& state = graph.kv_states[node.leaf];
        return fmt::format("{} {} {} {} {}", type, state.layer, state.kv_heads, state.head_dim, state.window);
      }
      default:
        return fmt::format("{} {}", type, node.leaf);
    }
  }

  void close() {
    using Key = std::tuple<Op, Attributes, std::string, std::vector<NodeId>>;
    for (bool changed = true; changed;) {
      changed = false;
      std::map<Key, NodeId> seen;
      for (uint32_t i = 0; i < terms_.size(); ++i) {
        Key key{terms_[i].node.op, terms_[i].node.attributes, terms_[i].leaf, {}};
        for (const NodeId input : terms_[i].inputs) std::get<3>(key).push_back(find(input));
        const auto [entry, is_new] = seen.emplace(std::move(key), NodeId(i));
        if (is_new || find(entry->second) == find(NodeId(i))) continue;
        leader_[find(NodeId(i)).value] = find(entry->second);
        changed = true;
      }
    }
    closed_ = true;
  }

  std::vector<Term> terms_;
  std::vector<NodeId> leader_;
  bool closed_ = true;
};

// One firing against its rule.
class FiringCheck {
 public:
  FiringCheck(TermTable& table, const RewriteRule& rule, const LoggedFiring& firing, const RewriteLog& log)
      : table_(table), rule_(rule), firing_(firing), log_(log), values_(rule.variables.values.size()),
        bits_(rule.variables.attributes.size()), bound_(rule.variables.attributes.size(), false) {}

  bool run() {
    if (!match(0, firing_.matched.empty() ? NodeId{} : firing_.matched[0])) return false;
    if (next_ != firing_.matched.size() || firing_.right.empty()) return false;
    for (const PatternCall& condition : rule_.conditions) {
      if (!find_predicate(condition.name)->holds(arguments(condition))) return false;
    }
    next_ = 0;
    if (rule_.right.terms[0].kind == PatternTerm::Kind::kVariable) {
      next_ = 1;
      if (!table_.equal(values_[rule_.right.terms[0].variable], firing_.right[0])) return false;
    } else if (!built(0, firing_.right[0])) {
      return false;
    }
    if (next_ != firing_.right.size()) return false;
    return table_.type(firing_.matched[0]) == table_.type(firing_.right[0]);
  }

 private:
  // `at`: what stands at the term; a matched node has to be equal to it.
  bool match(uint32_t index, NodeId at) {
    const PatternTerm& term = rule_.left.terms[index];
    if (!at.valid()) return false;
    if (term.kind == PatternTerm::Kind::kVariable) {
      NodeId& value = values_[term.variable];
      if (!value.valid()) value = at;
      return table_.equal(value, at);
    }
    if (next_ == firing_.matched.size()) return false;
    const NodeId node = firing_.matched[next_++];
    if (table_.node(node).op != term.op || !table_.equal(node, at)) return false;
    for (size_t i = 0; i < term.attributes.size(); ++i) {
      if (!bind_attribute(term.attributes[i], table_.node(node).attributes[i], bits_, bound_)) return false;
    }
    for (uint32_t i = 0; i < term.inputs.size(); ++i) {
      if (!match(term.inputs[i], table_.inputs(node)[i])) return false;
    }
    return true;
  }

  // Whether what stands at a term of the right side is what the rule builds there.
  bool built(uint32_t index, NodeId at) {
    const PatternTerm& term = rule_.right.terms[index];
    if (term.kind == PatternTerm::Kind::kVariable) return table_.equal(values_[term.variable], at);
    if (next_ == firing_.right.size()) return false;
    const NodeId id = firing_.right[next_++];
    const Node& node = table_.node(id);
    if (!table_.equal(id, at)) return false;
    if (term.kind == PatternTerm::Kind::kPlus) {
      const Node* weight = table_.leaf_of(values_[term.variable]);
      if (weight == nullptr || weight->op != Op::kWeight || node.op != Op::kWeight) return false;
      const WeightRef& stored = log_.terms.weights[node.leaf];
      return stored.name == log_.terms.weights[weight->leaf].name &&
             stored.plus == std::bit_cast<float>(bits_[term.attributes[0].variable]) &&
             table_.type(id) == table_.type(values_[term.variable]);
    }
    if (node.op != term.op) return false;
    for (size_t i = 0; i < term.attributes.size(); ++i) {
      const std::optional<uint32_t> bits = attribute(term.attributes[i]);
      if (!bits || *bits != node.attributes[i]) return false;
    }
    for (uint32_t i = 0; i < term.inputs.size(); ++i) {
      if (!built(term.inputs[i], table_.inputs(id)[i])) return false;
    }
    return true;
  }

  std::optional<uint32_t> attribute(const AttributePattern& pattern) {
    switch (pattern.kind) {
      case AttributePattern::Kind::kVariable:
        return bits_[pattern.variable];
      case AttributePattern::Kind::kNumber:
        return pattern.bits;
      case AttributePattern::Kind::kCall:
        return find_function(pattern.call.name)->compute(arguments(pattern.call));
    }
    return std::nullopt;
  }

  std::vector<RuleArgument> arguments(const PatternCall& call) {
    std::vector<RuleArgument> result;
    givens_.clear();
    givens_.reserve(call.arguments.size());  // their addresses are kept
    for (const PatternArgument& argument : call.arguments) {
      RuleArgument& out = result.emplace_back();
      if (!argument.is_value) {
        out.bits = bits_[argument.variable];
        continue;
      }
      out.is_value = true;
      out.type = table_.type(values_[argument.variable]);
      if (const Node* leaf = table_.leaf_of(values_[argument.variable])) {
        ENode& given = givens_.emplace_back();
        given.op = leaf->op;
        if (leaf->op == Op::kWeight) given.attributes[0] = attribute_bits(log_.terms.weights[leaf->leaf].plus);
        out.given = &given;
      }
    }
    return result;
  }

  TermTable& table_;
  const RewriteRule& rule_;
  const LoggedFiring& firing_;
  const RewriteLog& log_;
  std::vector<NodeId> values_;
  std::vector<uint32_t> bits_;
  std::vector<bool> bound_;
  std::vector<ENode> givens_;
  size_t next_ = 0;
};

}  // namespace

Status check_rewrite_log(const RewriteLog& log, const OpGraph& after) {
  TermTable table;
  PLOW_TRY([[maybe_unused]] const uint32_t first, table.append(log.terms));
  const std::vector<RewriteRule>& rules = compiled_rules();
  for (size_t f = 0; f < log.firings.size(); ++f) {
    const LoggedFiring& firing = log.firings[f];
    if (!rules[firing.rule].text.proved) {
      return verification_error(
          fmt::format("rewrite log: firing {} is of the rule {}, which is not proved", f, rules[firing.rule].text.name));
    }
    if (!FiringCheck(table, rules[firing.rule], firing, log).run()) {
      return verification_error(
          fmt::format("rewrite log: firing {} is no instance of the rule {}", f, rules[firing.rule].text.name));
    }
    table.merge(firing.matched[0], firing.right[0]);
  }
  PLOW_TRY(const uint32_t shift, table.append(after));
  if (table.equal(log.terms.tokens, NodeId(after.tokens.value + shift))) return {};
  return verification_error("rewrite log: the firings do not show that the new graph computes what the old one did");
}

}  // namespace plow
