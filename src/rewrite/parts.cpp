#include "rewrite/parts.h"

#include "graph/op_def.h"

#include <algorithm>
#include <bit>
#include <map>
#include <string>
#include <tuple>

namespace plow {
namespace {

void add_type(std::vector<uint32_t>& words, const Node& node) {
  words.push_back(static_cast<uint32_t>(node.dtype));
  words.push_back(static_cast<uint32_t>(node.shape.row_kind));
  words.push_back(node.shape.rows);
  words.push_back(node.shape.cols);
}

// What makes a leaf the same as another one: weights by name, constants by their values, caches by their number.
using LeafKey = std::tuple<uint32_t, std::string, std::vector<double>, std::vector<uint32_t>>;

LeafKey leaf_key(const OpGraph& graph, const Node& node) {
  LeafKey key{static_cast<uint32_t>(node.op), {}, {}, {}};
  add_type(std::get<3>(key), node);
  if (node.op == Op::kWeight) {
    std::get<1>(key) = graph.weights[node.leaf].name;
    std::get<3>(key).push_back(attribute_bits(graph.weights[node.leaf].plus));
  } else if (node.op == Op::kConstant) {
    std::get<2>(key) = graph.constants[node.leaf].values;
  } else {
    std::get<3>(key).push_back(node.leaf);
  }
  return key;
}

constexpr uint32_t kNoPart = 0xffffffffu;

class GraphCutter {
 public:
  GraphCutter(const OpGraph& graph, const ValueNumbering& numbering)
      : graph_(graph), numbering_(numbering), part_of_(graph.nodes.size(), kNoPart) {}

  std::vector<GraphPart> run() {
    if (!assign_by_layer()) {
      for (uint32_t i = 0; i < part_of_.size(); ++i) part_of_[i] = is_operator(i) ? 0 : kNoPart;
    }
    std::vector<GraphPart> parts(1);
    for (uint32_t i = 0; i < part_of_.size(); ++i) {
      if (part_of_[i] == kNoPart) continue;
      if (part_of_[i] >= parts.size()) parts.resize(part_of_[i] + size_t{1});
      parts[part_of_[i]].nodes.emplace_back(i);
    }
    std::erase_if(parts, [](const GraphPart& part) { return part.nodes.empty(); });
    for (uint32_t p = 0; p < parts.size(); ++p) {
      for (const NodeId node : parts[p].nodes) part_of_[node.value] = p;
    }
    find_roots(parts);
    for (GraphPart& part : parts) describe(part);
    return parts;
  }

 private:
  bool is_operator(uint32_t i) const { return numbering_.is_live[i] && !is_leaf(graph_.nodes[i].op); }

  NodeId input(NodeId id, uint32_t i) const { return numbering_.same_as[graph_.inputs_of(id)[i].value]; }

  // A node of no layer belongs to the last part that it reads. False when a layer reads a later one.
  bool assign_by_layer() {
    for (uint32_t i = 0; i < part_of_.size(); ++i) {
      if (!is_operator(i)) continue;
      const Node& node = graph_.nodes[i];
      uint32_t latest = 0;
      for (uint32_t k = 0; k < node.n_inputs; ++k) {
        const uint32_t part = part_of_[input(NodeId(i), k).value];
        if (part != kNoPart) latest = std::max(latest, part);
      }
      part_of_[i] = node.layer == Node::kNoLayer ? latest : node.layer + 1;
      if (part_of_[i] < latest) return false;
    }
    return true;
  }

  void find_roots(std::vector<GraphPart>& parts) const {
    std::vector<bool> is_root(part_of_.size(), false);
    is_root[numbering_.same_as[graph_.tokens.value].value] = true;
    for (uint32_t i = 0; i < part_of_.size(); ++i) {
      if (part_of_[i] == kNoPart) continue;
      for (uint32_t k = 0; k < graph_.nodes[i].n_inputs; ++k) {
        const NodeId from = input(NodeId(i), k);
        if (part_of_[from.value] != part_of_[i]) is_root[from.value] = true;
      }
    }
    for (GraphPart& part : parts) {
      for (const NodeId node : part.nodes) {
        if (is_root[node.value]) part.roots.push_back(node);
      }
    }
  }

  // Numbers what the part is given in the order of use, and writes down all that solving it depends on.
  void describe(GraphPart& part) const {
    std::map<NodeId, uint32_t> place;
    for (const NodeId id : part.nodes) {
      const Node& node = graph_.node(id);
      part.form.push_back(static_cast<uint32_t>(node.op));
      part.form.insert(part.form.end(), node.attributes.begin(), node.attributes.end());
      for (uint32_t k = 0; k < node.n_inputs; ++k) {
        const NodeId from = input(id, k);
        const auto [entry, is_new] = place.emplace(from, static_cast<uint32_t>(place.size()));
        if (is_new) {
          part.givens.push_back(from);
          describe_given(part, from);
        }
        part.form.push_back(entry->second);
      }
      place.emplace(id, static_cast<uint32_t>(place.size()));
    }
    for (const NodeId root : part.roots) part.form.push_back(place.at(root));
  }

  void describe_given(GraphPart& part, NodeId id) const {
    const Node& node = graph_.node(id);
    const bool is_value = !is_leaf(node.op);
    part.form.push_back(is_value ? 0 : static_cast<uint32_t>(node.op));
    add_type(part.form, node);
    if (is_value) return;
    switch (node.op) {
      case Op::kWeight:
        part.form.push_back(attribute_bits(graph_.weights[node.leaf].plus));
        break;
      case Op::kKvState: {
        const KvStateRef& state = graph_.kv_states[node.leaf];
        for (const uint32_t word : {state.kv_heads, state.head_dim, state.window}) part.form.push_back(word);
        break;
      }
      default:
        part.form.push_back(node.leaf);
    }
  }

  const OpGraph& graph_;
  const ValueNumbering& numbering_;
  std::vector<uint32_t> part_of_;  // by node; kNoPart of leaves and of what is not live
};

}  // namespace

ValueNumbering number_values(const OpGraph& graph) {
  const size_t n = graph.nodes.size();
  ValueNumbering result{std::vector<NodeId>(n), std::vector<bool>(n, false)};
  std::map<LeafKey, NodeId> leaves;
  std::map<std::vector<uint32_t>, NodeId> operators;
  for (uint32_t i = 0; i < n; ++i) {
    const Node& node = graph.nodes[i];
    if (is_leaf(node.op)) {
      result.same_as[i] = leaves.emplace(leaf_key(graph, node), NodeId(i)).first->second;
      continue;
    }
    std::vector<uint32_t> key{static_cast<uint32_t>(node.op)};
    key.insert(key.end(), node.attributes.begin(), node.attributes.end());
    for (const NodeId input : graph.inputs_of(NodeId(i))) key.push_back(result.same_as[input.value].value);
    result.same_as[i] = operators.emplace(std::move(key), NodeId(i)).first->second;
  }
  result.is_live[result.same_as[graph.tokens.value].value] = true;
  for (uint32_t i = static_cast<uint32_t>(n); i-- > 0;) {
    if (!result.is_live[i]) continue;
    for (const NodeId input : graph.inputs_of(NodeId(i))) result.is_live[result.same_as[input.value].value] = true;
  }
  for (uint32_t i = 0; i < n; ++i) {
    if (is_leaf(graph.nodes[i].op)) continue;
    if (result.same_as[i] != NodeId(i)) {
      ++result.n_common;
    } else if (!result.is_live[i]) {
      ++result.n_dead;
    }
  }
  return result;
}

std::vector<GraphPart> cut_graph(const OpGraph& graph, const ValueNumbering& numbering) {
  return GraphCutter(graph, numbering).run();
}

}  // namespace plow
