#include "cost/cost.h"

#include <algorithm>

namespace plow {

Load op_load(Op op, std::span<const ValueType> inputs, const ValueType& output, const Attributes& attributes,
             const StepSize& size) {
  const Work work = op_def(op).work(inputs, output, attributes, size.tokens, size.samples);
  Load load;
  load.bytes = work.weight_bytes + work.kv_bytes_per_position * size.context;
  load.flops = work.flops;
  load.elements = work.activation_bytes / sizeof(float);
  return load;
}

Load node_load(const OpGraph& graph, NodeId id, const StepSize& size) {
  const Node& node = graph.node(id);
  if (is_leaf(node.op)) return {};
  std::vector<ValueType> inputs;
  for (const NodeId input : graph.inputs_of(id))
    inputs.push_back({graph.node(input).dtype, graph.node(input).shape});
  return op_load(node.op, inputs, {node.dtype, node.shape}, node.attributes, size);
}

double load_ns(const Part& part, const Load& load) {
  const double stream = load.bytes / part.read_bytes_per_ns;
  const double arithmetic = load.flops / part.flops_per_ns;
  return std::max(stream, arithmetic) + load.elements * part.element_ns + part.packet_ns;
}

double node_ns(const Part& part, const Load& load, uint32_t workers) {
  return load_ns(part, share_of(load, 1.0 / workers));
}

double wait_ns(const Part& part) { return part.hop_ns; }

}  // namespace plow
