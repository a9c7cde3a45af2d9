// For tests: random instances of a rule, as two graphs over the same weights whose values must be equal.
#pragma once

#include "graph/builder.h"
#include "graph/evaluate.h"
#include "rewrite/apply.h"
#include "rewrite/rule.h"

#include <algorithm>
#include <map>
#include <random>
#include <string>
#include <vector>

namespace plow {

// Numbers between -1 and 1. Vectors have multiples of 1/64, so that f32 holds their sums with a norm's offset.
class RuleWeights final : public WeightSource {
 public:
  Status read_rows(const std::string& name, uint32_t first, uint32_t count, uint32_t cols, float* out) const override {
    uint32_t state = 2166136261u;  // FNV-1a
    for (const char c : name) state = (state ^ static_cast<unsigned char>(c)) * 16777619u;
    std::minstd_rand random(state);
    random.discard(uint64_t{first} * cols);
    for (size_t i = 0; i < size_t{count} * cols; ++i) {
      const auto draw = static_cast<uint32_t>(random());
      out[i] = count == 1 ? (static_cast<float>(draw % 127) - 63.0f) / 64.0f
                          : static_cast<float>(draw % 1000003u) / 500001.5f - 1.0f;
    }
    return {};
  }
};

struct RuleInstance {
  OpGraph left, right;
  NodeId left_value, right_value;  // of which the values must be equal
};

// Chooses types and attributes for the variables of a rule, at random, until its left side infers, its conditions
// hold and its right side can be built.
class RuleInstanceMaker {
 public:
  RuleInstanceMaker(const RewriteRule& rule, std::mt19937& random)
      : rule_(rule),
        random_(random),
        types_(rule.variables.values.size()),
        roles_(rule.variables.values.size(), Role::kPlain),
        match_{{}, {}, std::vector<uint32_t>(rule.variables.attributes.size(), 0)},
        attribute_names_(rule.variables.attributes.size()),
        attribute_kinds_(rule.variables.attributes.size(), AttributeKind::kU32) {
    find_roles();
  }

  // False when no choice fits.
  bool make(RuleInstance& out) {
    if (!choose(0)) return false;
    out.left_value = to_graph(match_.matched[0], out.left);
    out.right_value = to_graph(right_root_, out.right);
    return true;
  }

 private:
  enum class Role { kPlain, kMatrix, kState, kCache, kRows };

  void find_roles() {
    for (const PatternTerm& term : rule_.left.terms) {
      if (term.kind != PatternTerm::Kind::kOperator) continue;
      const OpDef& def = op_def(term.op);
      for (size_t i = 0; i < term.attributes.size(); ++i) {
        if (term.attributes[i].kind != AttributePattern::Kind::kVariable) continue;
        attribute_names_[term.attributes[i].variable] = def.attributes[i].name;
        attribute_kinds_[term.attributes[i].variable] = def.attributes[i].kind;
      }
      for (uint32_t i = 0; i < term.inputs.size(); ++i) {
        const PatternTerm& input = rule_.left.terms[term.inputs[i]];
        if (input.kind != PatternTerm::Kind::kVariable) continue;
        Role& role = roles_[input.variable];
        const bool is_last = i + 1 == term.inputs.size();
        if (matrix_inputs(term.op) >> i & 1) role = Role::kMatrix;
        if (is_last && appends_kv(term.op)) role = Role::kState;
        if (is_last && attends(term.op)) role = Role::kCache;
        if (is_last && term.op == Op::kGatherRows) role = Role::kRows;
      }
    }
  }

  // Attribute variables first, then values: what has been chosen must infer as far as it goes.
  bool choose(size_t i) {
    const size_t n_attributes = match_.attributes.size();
    if (i < n_attributes) {
      for (const uint32_t bits : shuffled(attribute_choices(i))) {
        match_.attributes[i] = bits;
        if (choose(i + 1)) return true;
      }
      return false;
    }
    const size_t v = i - n_attributes;
    if (v == types_.size()) return complete();
    for (const ValueType& type : shuffled(type_choices(roles_[v]))) {
      types_[v] = type;
      n_chosen_ = v + 1;
      if (infers(0) && choose(i + 1)) return true;
    }
    return false;
  }

  template <class T>
  std::vector<T> shuffled(std::vector<T> choices) {
    std::shuffle(choices.begin(), choices.end(), random_);
    return choices;
  }

  static std::vector<uint32_t> bits_of(std::initializer_list<float> values) {
    std::vector<uint32_t> bits;
    for (const float value : values) bits.push_back(attribute_bits(value));
    return bits;
  }

  std::vector<uint32_t> attribute_choices(size_t i) const {
    const std::string& name = attribute_names_[i];
    if (name == "eps") return bits_of({1e-6f, 1e-5f, 0.25f});
    if (name == "offset") return bits_of({0.0f, 1.0f, 0.5f});
    if (name == "factor") return bits_of({1.0f, 2.0f, 0.5f, -0.25f, 3.0f, 6.25f});
    if (name == "scale") return bits_of({0.25f, 0.375f});
    if (name == "softcap") return bits_of({0.0f, 4.0f});
    if (name == "cap") return bits_of({2.0f, 30.0f});
    if (name == "activation") return {0, 1, 2};
    if (name == "window") return {0, 3};
    if (name == "head_dim") return {4, 8};
    if (name == "group") return {4, 8, 24};
    if (name == "k_begin") return {0, 32};
    if (name == "k_end") return {1088, 1216};
    PLOW_CHECK(false, "no choices for the attribute {}", name);
  }

  static std::vector<ValueType> type_choices(Role role) {
    std::vector<ValueType> types;
    for (const uint32_t cols : {8u, 24u, 1216u}) {
      switch (role) {
        case Role::kPlain:
          types.push_back({DType::kF32, {Rows::kTokens, 1, cols}});
          types.push_back({DType::kF32, {Rows::kSamples, 1, cols}});
          types.push_back({DType::kF32, {Rows::kFixed, 1, cols}});
          if (cols == 8) types.push_back({DType::kF32, {Rows::kFixed, 1, 4}});
          if (cols == 8) types.push_back({DType::kF32, {Rows::kTokens, 1, 4}});
          break;
        case Role::kMatrix:
          types.push_back({DType::kBf16, {Rows::kFixed, 8, cols}});
          types.push_back({DType::kF32, {Rows::kFixed, 24, cols}});
          break;
        case Role::kState:
        case Role::kCache:
          if (cols <= 24) types.push_back({DType::kBf16, {Rows::kFixed, 1, cols}});
          break;
        case Role::kRows:
          if (cols == 8) types.push_back({DType::kU32, {Rows::kSamples, 1, 1}});
          break;
      }
    }
    return types;
  }

  // The type of a term when all its variables are chosen, none when one is not, false when it does not infer.
  bool infers(uint32_t index) {
    std::optional<ValueType> type;
    return infer(index, type);
  }
  bool infer(uint32_t index, std::optional<ValueType>& type) {
    const PatternTerm& term = rule_.left.terms[index];
    type.reset();
    if (term.kind == PatternTerm::Kind::kVariable) {
      if (term.variable < n_chosen_) type = types_[term.variable];
      return true;
    }
    std::vector<ValueType> inputs;
    for (const uint32_t input : term.inputs) {
      std::optional<ValueType> below;
      if (!infer(input, below)) return false;
      if (below) inputs.push_back(*below);
    }
    if (inputs.size() < term.inputs.size()) return true;
    const Result<ValueType> inferred = op_def(term.op).infer(inputs, attributes_of(term));
    if (inferred.ok()) type = *inferred;
    return inferred.ok();
  }

  Attributes attributes_of(const PatternTerm& term) const {
    Attributes attributes{};
    for (size_t i = 0; i < term.attributes.size(); ++i) {
      const AttributePattern& pattern = term.attributes[i];
      attributes[i] = pattern.kind == AttributePattern::Kind::kNumber ? pattern.bits : match_.attributes[pattern.variable];
    }
    return attributes;
  }

  ENodeId add_left(uint32_t index) {
    const PatternTerm& term = rule_.left.terms[index];
    if (term.kind == PatternTerm::Kind::kVariable) {
      const bool stored = types_[term.variable].shape.row_kind == Rows::kFixed && roles_[term.variable] != Role::kCache;
      return egraph_.add_given(stored ? Op::kWeight : kOuterValue, term.variable, types_[term.variable]);
    }
    std::vector<ENodeId> inputs;
    for (const uint32_t input : term.inputs) inputs.push_back(add_left(input));
    return *egraph_.add(term.op, attributes_of(term), inputs);
  }

  bool complete() {
    egraph_ = {};
    const ENodeId root = add_left(0);
    const std::vector<RuleMatch> matches = match_class(egraph_, rule_.program, root);
    if (matches.size() != 1) return false;
    const std::vector<uint32_t> attributes = match_.attributes;
    match_ = matches[0];
    PLOW_CHECK(match_.attributes == attributes, "matching reads other attributes than were put in");
    if (!conditions_hold(egraph_, rule_, match_)) return false;
    const std::optional<BuiltSide> side = build_right_side(egraph_, rule_, match_);
    if (side) right_root_ = side->root;
    return side.has_value();
  }

  uint32_t attribute_named(const std::string& name, uint32_t otherwise) const {
    for (size_t i = 0; i < attribute_names_.size(); ++i) {
      if (attribute_names_[i] == name) return match_.attributes[i];
    }
    return otherwise;
  }

  // A graph that computes a node of the e-graph. Variables are rows of tables that the step's tokens pick, stored
  // vectors and matrices, a cache, or columns of the step.
  class GraphWriter {
   public:
    explicit GraphWriter(const RuleInstanceMaker& maker) : maker_(maker) {
      ids_ = builder_.step_input(StepColumn::kTokenIds);
      rows_ = builder_.step_input(StepColumn::kSampleRows);
      table_ = builder_.weight("vocabulary", DType::kF32, kVocab, kVocab);
      tokens_ = builder_.add(Op::kSample, {gathered(builder_.add(Op::kEmbed, {table_, ids_}))});
    }

    NodeId write(ENodeId id, OpGraph& out) {
      NodeId value = node(id);
      // What a cache holds is seen by who attends to it.
      const ENode& enode = maker_.egraph_.node(id);
      if (appends_kv(enode.op)) {
        const NodeId query = activation("query", {DType::kF32, {Rows::kTokens, 1, maker_.egraph_.eclass(id).type.shape.cols}});
        value = builder_.add(Op::kAttention, {query, value},
                             {enode.attributes[0], maker_.attribute_named("window", 0), attribute_bits(0.3f), 0});
      }
      Result<OpGraph> graph = builder_.finish(tokens_, kVocab, kVocab, 1, 256);
      PLOW_CHECK(graph.ok(), "{}", graph.error().message);
      out = std::move(graph).value();
      return value;
    }

   private:
    static constexpr uint32_t kVocab = 13;

    NodeId gathered(NodeId x) { return builder_.add(Op::kGatherRows, {x, rows_}); }

    NodeId activation(const std::string& name, const ValueType& type) {
      const NodeId table = builder_.weight(name, DType::kF32, kVocab, type.shape.cols);
      const NodeId x = builder_.add(Op::kEmbed, {table, ids_});
      return type.shape.row_kind == Rows::kSamples ? gathered(x) : x;
    }

    NodeId state(const ValueType& type, uint32_t head_dim) {
      return builder_.kv_state({0, type.shape.cols / head_dim, head_dim, maker_.attribute_named("window", 0)}, type.dtype);
    }

    NodeId given(const ENode& enode) {
      const std::string& name = maker_.rule_.variables.values[enode.leaf];
      const ValueType& type = maker_.types_[enode.leaf];
      const uint32_t head_dim = maker_.attribute_named("head_dim", 4);
      switch (maker_.roles_[enode.leaf]) {
        case Role::kState:
          return state(type, head_dim);
        case Role::kCache: {
          const ValueType rows{DType::kF32, {Rows::kTokens, 1, type.shape.cols}};
          const NodeId keys = activation(name + ".keys", rows);
          const NodeId values = activation(name + ".values", rows);
          return builder_.add(Op::kKvAppend, {keys, values, state(type, head_dim)}, {head_dim});
        }
        case Role::kRows:
          return rows_;
        default:
          break;
      }
      if (type.shape.row_kind != Rows::kFixed) return activation(name, type);
      return builder_.weight(name, type.dtype, type.shape.rows, type.shape.cols, attribute_f32(enode.attributes, 0));
    }

    NodeId node(ENodeId id) {
      const auto found = made_.find(id);
      if (found != made_.end()) return found->second;
      const ENode& enode = maker_.egraph_.node(id);
      NodeId made;
      if (enode.is_given()) {
        made = given(enode);
      } else {
        std::vector<NodeId> inputs;
        for (const ENodeId input : maker_.egraph_.inputs_of(id)) inputs.push_back(node(input));
        made = builder_.add(enode.op, inputs, enode.attributes);
      }
      made_[id] = made;
      return made;
    }

    const RuleInstanceMaker& maker_;
    GraphBuilder builder_;
    NodeId ids_, rows_, table_, tokens_;
    std::map<ENodeId, NodeId> made_;
  };

  NodeId to_graph(ENodeId id, OpGraph& out) const { return GraphWriter(*this).write(id, out); }

  const RewriteRule& rule_;
  std::mt19937& random_;
  std::vector<ValueType> types_;
  std::vector<Role> roles_;
  RuleMatch match_;
  std::vector<std::string> attribute_names_;
  std::vector<AttributeKind> attribute_kinds_;
  size_t n_chosen_ = 0;
  EGraph egraph_;
  ENodeId right_root_;
};

// The values of both sides in a prompt of two sequences and in a step of decode after it. Where there is
// attention, one of the prompts is longer than two of the units of positions by which attention is split.
inline std::vector<std::pair<Matrix, Matrix>> evaluate_sides(const RuleInstance& instance) {
  const bool attended = std::any_of(instance.left.nodes.begin(), instance.left.nodes.end(),
                                    [](const Node& node) { return attends(node.op); });
  const uint32_t first = attended ? 150 : 4;
  EvalStep prompt;
  prompt.spans = {{0, first, 0, 0}, {first, 3, 2, 0}};
  for (uint32_t i = 0; i < first + 3; ++i) prompt.token_ids.push_back((i * i + 3 * i + 1) % 13);
  prompt.sample_rows = {first - 1, first + 2};
  EvalStep decode;
  decode.spans = {{0, 1, 2, 3}, {1, 1, 0, first}};
  decode.token_ids = {6, 11};
  decode.sample_rows = {1, 0};
  SamplingParams greedy{};
  greedy.flags = kSampleGreedy;
  greedy.repetition_penalty = 1;
  prompt.sampling.assign(2, greedy);
  decode.sampling.assign(2, greedy);
  const auto run = [&](const OpGraph& graph, NodeId value) {
    Evaluator evaluator = Evaluator::create(graph, RuleWeights(), 3).value();
    Matrix first = evaluator.run(prompt)[value.value];
    return std::pair(std::move(first), evaluator.run(decode)[value.value]);
  };
  auto [left_prompt, left_decode] = run(instance.left, instance.left_value);
  auto [right_prompt, right_decode] = run(instance.right, instance.right_value);
  std::vector<std::pair<Matrix, Matrix>> sides;
  sides.emplace_back(std::move(left_prompt), std::move(right_prompt));
  sides.emplace_back(std::move(left_decode), std::move(right_decode));
  return sides;
}

}  // namespace plow
