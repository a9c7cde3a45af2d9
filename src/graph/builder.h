// Builds an OpGraph node by node; model families and tests use it. Shapes are inferred as nodes are added;
// the first error sticks and is returned by finish().
#pragma once

#include "base/error.h"
#include "graph/graph.h"

#include <initializer_list>
#include <optional>
#include <span>
#include <string>
#include <vector>

namespace plow {

class GraphBuilder {
 public:
  // dtype: as stored in the tape. plus: WeightRef::plus.
  NodeId weight(std::string name, DType dtype, uint32_t rows, uint32_t cols, float plus = 0);
  NodeId constant(std::string name, DType dtype, uint32_t rows, uint32_t cols, std::vector<double> values);
  NodeId kv_state(const KvStateRef& state, DType dtype = DType::kF32);  // dtype: as stored in the cache
  NodeId step_input(StepColumn column);

  // REQUIRES op to have a definition and as many inputs as it says, from this builder.
  NodeId add(Op op, std::span<const NodeId> inputs, const Attributes& attributes = {});
  NodeId add(Op op, std::initializer_list<NodeId> inputs, const Attributes& attributes = {}) {
    return add(op, std::span(inputs.begin(), inputs.size()), attributes);
  }

  void set_layer(uint32_t layer) { layer_ = layer; }  // of the nodes that follow

  // Verifies the whole graph. The builder is empty afterwards.
  Result<OpGraph> finish(NodeId tokens, uint32_t vocab, uint32_t hidden, uint32_t n_layers,
                         uint32_t max_position);

 private:
  NodeId push(Node node, std::span<const NodeId> inputs);

  OpGraph graph_;
  uint32_t layer_ = Node::kNoLayer;
  std::optional<Error> error_;  // the first
};

}  // namespace plow
