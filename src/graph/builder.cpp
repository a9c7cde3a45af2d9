#include "graph/builder.h"

#include "graph/op_def.h"

namespace plow {

NodeId GraphBuilder::push(Node node, std::span<const NodeId> inputs) {
  node.first_input = static_cast<uint32_t>(graph_.inputs.size());
  node.n_inputs = static_cast<uint32_t>(inputs.size());
  node.layer = layer_;
  graph_.inputs.insert(graph_.inputs.end(), inputs.begin(), inputs.end());
  graph_.nodes.push_back(node);
  return NodeId(graph_.nodes.size() - 1);
}

NodeId GraphBuilder::weight(std::string name, DType dtype, uint32_t rows, uint32_t cols, float plus) {
  Node node{.op = Op::kWeight, .dtype = dtype, .shape = {Rows::kFixed, rows, cols}};
  node.leaf = static_cast<uint32_t>(graph_.weights.size());
  graph_.weights.push_back({std::move(name), plus});
  return push(node, {});
}

NodeId GraphBuilder::constant(std::string name, DType dtype, uint32_t rows, uint32_t cols,
                              std::vector<double> values) {
  Node node{.op = Op::kConstant, .dtype = dtype, .shape = {Rows::kFixed, rows, cols}};
  node.leaf = static_cast<uint32_t>(graph_.constants.size());
  graph_.constants.push_back({std::move(name), std::move(values)});
  return push(node, {});
}

NodeId GraphBuilder::kv_state(const KvStateRef& state, DType dtype) {
  Node node{.op = Op::kKvState, .dtype = dtype, .shape = {Rows::kFixed, 1, state.kv_heads * state.head_dim}};
  node.leaf = static_cast<uint32_t>(graph_.kv_states.size());
  graph_.kv_states.push_back(state);
  return push(node, {});
}

NodeId GraphBuilder::step_input(StepColumn column) {
  const Rows rows = column == StepColumn::kSampleRows ? Rows::kSamples : Rows::kTokens;
  Node node{.op = Op::kStepInput, .dtype = DType::kU32, .shape = {rows, 1, 1}};
  node.leaf = static_cast<uint32_t>(column);
  return push(node, {});
}

NodeId GraphBuilder::add(Op op, std::span<const NodeId> inputs, const Attributes& attributes) {
  const OpDef& def = op_def(op);
  PLOW_CHECK(inputs.size() == def.n_inputs, "{} takes {} inputs", op_name(op), def.n_inputs);
  std::vector<ValueType> types;
  for (NodeId input : inputs) {
    PLOW_CHECK(input.value < graph_.nodes.size(), "%{} is not a node yet", input.value);
    types.push_back({graph_.node(input).dtype, graph_.node(input).shape});
  }
  Node node;
  node.op = op;
  node.attributes = attributes;
  const Result<ValueType> type = def.infer(types, attributes);
  if (type.ok()) {
    node.dtype = type->dtype;
    node.shape = type->shape;
  } else if (!error_) {
    error_ = type.error().at(fmt::format("operator graph: %{}", graph_.nodes.size()));
  }
  return push(node, inputs);
}

Result<OpGraph> GraphBuilder::finish(NodeId tokens, uint32_t vocab, uint32_t hidden, uint32_t n_layers,
                                     uint32_t max_position) {
  if (error_) return *error_;
  graph_.tokens = tokens;
  graph_.vocab = vocab;
  graph_.hidden = hidden;
  graph_.n_layers = n_layers;
  graph_.max_position = max_position;
  PLOW_TRY_STATUS(verify_graph(graph_));
  return std::move(graph_);
}

}  // namespace plow
