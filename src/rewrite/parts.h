// A graph is rewritten part by part: what comes before the layers, each layer, and the last layer together with
// what follows it (gather_rows moves up into it). Layers are cut where the residual stream passes from one to the
// next. Parts of one form, equal but for the leaves and values that they are given, are solved once.
#pragma once

#include "graph/graph.h"

#include <cstdint>
#include <vector>

namespace plow {

// Which nodes compute the same value by the same operators (hash-consing over the whole graph), and which ones the
// product needs.
struct ValueNumbering {
  std::vector<NodeId> same_as;  // by node: the first node of the same value
  std::vector<bool> is_live;    // by node; of representatives only
  uint32_t n_common = 0;        // operators that compute what another one does
  uint32_t n_dead = 0;          // operators that nothing needs
};
ValueNumbering number_values(const OpGraph& graph);

struct GraphPart {
  std::vector<NodeId> nodes;    // operators, in the order of the graph
  std::vector<NodeId> givens;   // leaves, and values of earlier parts
  std::vector<NodeId> roots;    // of `nodes`: what later parts read, and the product
  std::vector<uint32_t> form;   // equal for parts that are solved alike
};

// Every live node is in exactly one part; parts read earlier parts only. Inputs of nodes are representatives when
// seen through numbering.same_as. A graph whose layers do not follow each other is one part.
std::vector<GraphPart> cut_graph(const OpGraph& graph, const ValueNumbering& numbering);

}  // namespace plow
