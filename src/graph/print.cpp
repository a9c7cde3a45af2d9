#include "abi/step.h"
#include "graph/graph.h"
#include "graph/op_def.h"

namespace plow {
namespace {

// Printable ASCII as it is; quotes, backslashes and all other bytes as \xNN.
std::string quoted(const std::string& text) {
  std::string out = "\"";
  for (const char c : text) {
    if (c >= 0x20 && c < 0x7f && c != '"' && c != '\\') {
      out += c;
    } else {
      out += fmt::format("\\x{:02x}", static_cast<unsigned char>(c));
    }
  }
  return out + '"';
}

std::string weight_text(const WeightRef& weight) {
  return quoted(weight.name) + (weight.plus == 0 ? "" : fmt::format(" plus={}", weight.plus));
}

std::string leaf_text(const OpGraph& graph, const Node& node) {
  switch (node.op) {
    case Op::kWeight:
      return weight_text(graph.weights[node.leaf]);
    case Op::kConstant: {
      const ConstantData& constant = graph.constants[node.leaf];
      return fmt::format("{} {{{}}}", quoted(constant.name), fmt::join(constant.values, ", "));
    }
    case Op::kKvState: {
      const KvStateRef& state = graph.kv_states[node.leaf];
      return fmt::format("layer={} kv_heads={} head_dim={} window={}", state.layer, state.kv_heads,
                         state.head_dim, state.window);
    }
    default:
      return step_column_name(static_cast<StepColumn>(node.leaf));
  }
}

// fmt prints the shortest digits that read back to the same float.
std::string attributes_text(const Node& node) {
  std::string out;
  const OpDef& def = op_def(node.op);
  for (size_t i = 0; i < def.attributes.size(); ++i) {
    out += fmt::format(" {}=", def.attributes[i].name);
    out += def.attributes[i].kind == AttributeKind::kU32 ? fmt::to_string(node.attributes[i])
                                                         : fmt::to_string(attribute_f32(node.attributes, i));
  }
  return out;
}

std::string node_text(const OpGraph& graph, NodeId id) {
  const Node& node = graph.node(id);
  std::string out = fmt::format("%{} = {}", id.value, op_name(node.op));
  if (is_leaf(node.op)) {
    out += " " + leaf_text(graph, node);
  } else {
    std::vector<std::string> inputs;
    for (NodeId input : graph.inputs_of(id)) inputs.push_back(fmt::format("%{}", input.value));
    out += fmt::format("({}){}", fmt::join(inputs, ", "), attributes_text(node));
  }
  out += " : " + to_text({node.dtype, node.shape});
  if (node.layer != Node::kNoLayer) out += fmt::format(" @layer {}", node.layer);
  return out + "\n";
}

}  // namespace

std::string print_graph(const OpGraph& graph) {
  std::string out =
      fmt::format("graph vocab={} hidden={} layers={} max_position={} tokens=%{}\n", graph.vocab,
                  graph.hidden, graph.n_layers, graph.max_position, graph.tokens.value);
  for (uint32_t i = 0; i < graph.nodes.size(); ++i) out += node_text(graph, NodeId(i));
  return out;
}

}  // namespace plow
