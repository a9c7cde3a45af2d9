#include "abi/step.h"
#include "graph/graph.h"
#include "graph/op_def.h"

#include <cmath>
#include <set>

namespace plow {
namespace {

// One walk over the nodes. Leaves are numbered in the order of their nodes, and inputs lie in the order of
// their nodes, so that a graph has one form and its text parses back to the same arrays.
class GraphVerifier {
 public:
  explicit GraphVerifier(const OpGraph& graph) : graph_(graph), appended_(graph.kv_states.size(), false) {}

  Status run() {
    for (uint32_t i = 0; i < graph_.nodes.size(); ++i) PLOW_TRY_STATUS(check_node(NodeId(i)));
    if (n_inputs_ != graph_.inputs.size()) return fail("there are inputs that belong to no node");
    if (n_weights_ != graph_.weights.size() || n_constants_ != graph_.constants.size() ||
        n_kv_states_ != graph_.kv_states.size()) {
      return fail("there are weights, constants or KV states that no node names");
    }
    return check_product();
  }

 private:
  static Error fail(const std::string& what) { return verification_error("operator graph: " + what); }
  Error fail(NodeId id, const std::string& what) const {
    const char* name = op_name(graph_.node(id).op);
    return verification_error(
        fmt::format("operator graph: %{} ({}): {}", id.value, name ? name : "no operator", what));
  }

  Status check_node(NodeId id) {
    const Node& node = graph_.node(id);
    if (op_name(node.op) == nullptr || is_protocol(node.op)) {
      return fail(id, fmt::format("{} is not the number of an operator", static_cast<unsigned>(node.op)));
    }
    if (dtype_name(node.dtype) == nullptr || rows_name(node.shape.row_kind) == nullptr ||
        node.shape.cols == 0 || node.shape.rows == 0 ||
        (node.shape.row_kind != Rows::kFixed && node.shape.rows != 1)) {
      return fail(id, "its type is not one that a value can have");
    }
    if (node.layer != Node::kNoLayer && node.layer >= graph_.n_layers) {
      return fail(id, fmt::format("layer {} is not one of {}", node.layer, graph_.n_layers));
    }
    if (node.first_input != n_inputs_ || node.n_inputs > graph_.inputs.size() - n_inputs_) {
      return fail(id, "its inputs do not follow those of the node before");
    }
    n_inputs_ += node.n_inputs;
    return is_leaf(node.op) ? check_leaf(id) : check_operator(id);
  }

  Status check_leaf(NodeId id) {
    const Node& node = graph_.node(id);
    if (node.n_inputs != 0) return fail(id, "a leaf has no inputs");
    if (node.attributes != Attributes{}) return fail(id, "a leaf has no attributes");
    switch (node.op) {
      case Op::kWeight:
        return check_weight(id);
      case Op::kConstant:
        return check_constant(id);
      case Op::kKvState:
        return check_kv_state(id);
      default:
        return check_step_input(id);
    }
  }

  Status check_weight(NodeId id) {
    const Node& node = graph_.node(id);
    if (node.leaf != n_weights_++ || node.leaf >= graph_.weights.size())
      return fail(id, "weights are not in order");
    const auto& [name, plus] = graph_.weights[node.leaf];
    if (name.empty() || !weights_.insert({name, plus}).second)
      return fail(id, "its name '" + name + "' is empty or used twice");
    if (!std::isfinite(plus) || (plus != 0 && node.dtype != DType::kF32))
      return fail(id, fmt::format("a {} weight cannot have plus={}", dtype_name(node.dtype), plus));
    if (node.shape.row_kind != Rows::kFixed || !(is_stored_float(node.dtype) || is_of_blocks(node.dtype))) {
      return fail(id, "a weight must be f32, bf16, f16, q8_0 or q4_0 with fixed rows");
    }
    if (node.shape.cols % dtype_block_values(node.dtype) != 0) {
      return fail(
          id, fmt::format("{} columns are no whole blocks of {}", node.shape.cols, dtype_name(node.dtype)));
    }
    return {};
  }

  Status check_constant(NodeId id) {
    const Node& node = graph_.node(id);
    if (node.leaf != n_constants_++ || node.leaf >= graph_.constants.size())
      return fail(id, "constants are not in order");
    const std::vector<double>& values = graph_.constants[node.leaf].values;
    if (node.shape.row_kind != Rows::kFixed || values.size() != uint64_t{node.shape.rows} * node.shape.cols) {
      return fail(id, fmt::format("a constant of {} values has the type {}", values.size(),
                                  to_text({node.dtype, node.shape})));
    }
    for (double value : values) {
      if (!std::isfinite(value)) return fail(id, "a constant is not a finite number");
    }
    return {};
  }

  Status check_kv_state(NodeId id) {
    const Node& node = graph_.node(id);
    if (node.leaf != n_kv_states_++ || node.leaf >= graph_.kv_states.size())
      return fail(id, "KV states are not in order");
    const KvStateRef& state = graph_.kv_states[node.leaf];
    const bool fits = node.shape.row_kind == Rows::kFixed && node.shape.rows == 1 && state.head_dim > 0 &&
                      uint64_t{state.kv_heads} * state.head_dim == node.shape.cols &&
                      is_stored_float(node.dtype);
    if (!fits || state.layer >= graph_.n_layers) {
      return fail(id, fmt::format("a state of layer {} with {} heads of {} has the type {}", state.layer,
                                  state.kv_heads, state.head_dim, to_text({node.dtype, node.shape})));
    }
    return {};
  }

  Status check_step_input(NodeId id) const {
    const Node& node = graph_.node(id);
    const auto column = static_cast<StepColumn>(node.leaf);
    if (step_column_name(column) == nullptr || column == StepColumn::kSampled)
      return fail(id, "the step has no such input");
    const Rows rows = column == StepColumn::kSampleRows ? Rows::kSamples : Rows::kTokens;
    if (node.dtype != DType::kU32 || node.shape != Shape{rows, 1, 1}) {
      return fail(id, "its type must be " + to_text({DType::kU32, {rows, 1, 1}}));
    }
    return {};
  }

  Status check_operator(NodeId id) {
    const Node& node = graph_.node(id);
    const OpDef& def = op_def(node.op);
    if (node.leaf != 0) return fail(id, "an operator names no leaf");
    if (node.n_inputs != def.n_inputs) {
      return fail(id, fmt::format("it has {} inputs and takes {}", node.n_inputs, def.n_inputs));
    }
    for (size_t i = def.attributes.size(); i < node.attributes.size(); ++i) {
      if (node.attributes[i] != 0) return fail(id, fmt::format("it has no attribute {}", i));
    }
    std::vector<ValueType> types;
    for (NodeId input : graph_.inputs_of(id)) {
      if (input.value >= id.value)
        return fail(id, fmt::format("its input %{} does not come before it", input.value));
      types.push_back({graph_.node(input).dtype, graph_.node(input).shape});
    }
    const Result<ValueType> type = def.infer(types, node.attributes);
    if (!type.ok()) return type.error().at(fmt::format("operator graph: %{}", id.value));
    if (*type != ValueType{node.dtype, node.shape}) {
      return fail(id, fmt::format("its type must be {}, found {}", to_text(*type),
                                  to_text({node.dtype, node.shape})));
    }
    return check_state_use(id);
  }

  // What the shapes cannot say: caches go nowhere else, are appended to once, and attention sees as much of a
  // cache as is kept.
  Status check_state_use(NodeId id) {
    const Node& node = graph_.node(id);
    const auto inputs = graph_.inputs_of(id);
    for (uint32_t i = 0; i < node.n_inputs; ++i) {
      const Op from = graph_.node(inputs[i]).op;
      const bool is_cache = from == Op::kKvState || appends_kv(from);
      const bool takes_cache = (appends_kv(node.op) || attends(node.op)) && i + 1 == node.n_inputs;
      if (is_cache && !takes_cache) return fail(id, fmt::format("its input {} cannot be a KV cache", i));
    }
    if (appends_kv(node.op)) {
      const Node& state = graph_.node(inputs.back());
      if (state.op != Op::kKvState) return fail(id, "its last input must be a kv_state");
      if (appended_[state.leaf]) return fail(id, "a kv_state is appended to twice");
      appended_[state.leaf] = true;
      if (graph_.kv_states[state.leaf].head_dim != node.attributes[0])
        return fail(id, "head_dim is not that of its kv_state");
    }
    if (attends(node.op)) {
      const NodeId append = inputs.back();
      if (!appends_kv(graph_.node(append).op))
        return fail(id, "its last input must be what appends to a kv_state");
      const KvStateRef& state = graph_.kv_states[graph_.node(graph_.inputs_of(append).back()).leaf];
      if (state.head_dim != node.attributes[0] || state.window != node.attributes[1]) {
        return fail(id, fmt::format("head_dim={} and window={} must be those of its kv_state, {} and {}",
                                    node.attributes[0], node.attributes[1], state.head_dim, state.window));
      }
    }
    return {};
  }

  Status check_product() const {
    if (graph_.tokens.value >= graph_.nodes.size() || graph_.node(graph_.tokens).op != Op::kSample) {
      return fail("its product must be a sample node");
    }
    for (uint32_t i = 0; i < graph_.nodes.size(); ++i) {
      const Node& node = graph_.nodes[i];
      if (node.op == Op::kSample && graph_.tokens != NodeId(i))
        return fail(NodeId(i), "there is a second sample node");
      // The tokens that are sampled are looked up in the next step.
      if (node.op == Op::kEmbed && graph_.node(graph_.inputs_of(NodeId(i))[0]).shape.rows < graph_.vocab) {
        return fail(NodeId(i),
                    fmt::format("its table has fewer rows than the vocabulary of {}", graph_.vocab));
      }
    }
    const Node& logits = graph_.node(graph_.inputs_of(graph_.tokens)[0]);
    if (logits.shape.cols != graph_.vocab) {
      return fail(fmt::format("{} logits for a vocabulary of {}", logits.shape.cols, graph_.vocab));
    }
    if (graph_.hidden == 0 || graph_.max_position == 0)
      return fail("hidden and max_position must be above 0");
    return {};
  }

  static bool is_stored_float(DType dtype) {
    return dtype == DType::kF32 || dtype == DType::kBf16 || dtype == DType::kF16;
  }

  const OpGraph& graph_;
  std::vector<bool> appended_;  // by KV state
  std::set<std::pair<std::string, float>> weights_;
  uint32_t n_inputs_ = 0, n_weights_ = 0, n_constants_ = 0, n_kv_states_ = 0;
};

}  // namespace

Status verify_graph(const OpGraph& graph) { return GraphVerifier(graph).run(); }

}  // namespace plow
