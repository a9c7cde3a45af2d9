// A graph node seen as the tile rules see it: an operator with the shapes of its operands.
#pragma once

#include <vector>

#include "graph/graph.h"
#include "ops/tile_rule.h"

namespace plow {

struct OperatorView {
  OperatorView(const OpGraph& graph, NodeId id) : node(id) {
    for (const NodeId input : graph.inputs_of(id)) add(graph.node(input).shape);
    add(graph.node(id).shape);
    op = graph.node(id).op;
    attributes = graph.node(id).attributes;
  }

  OpInstance instance() const { return {op, attributes, shapes}; }

  NodeId node;
  Op op;
  Attributes attributes;
  std::vector<OperandShape> shapes;

 private:
  void add(const Shape& shape) { shapes.push_back({shape.row_kind, shape.rows, shape.cols}); }
};

}  // namespace plow
