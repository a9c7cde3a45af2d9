#include "rewrite/assemble.h"

#include "base/check.h"

#include <algorithm>
#include <queue>
#include <tuple>

namespace plow {

GraphAssembler::GraphAssembler(const OpGraph& graph, const ValueNumbering& numbering, RewriteLog& log)
    : graph_(graph), numbering_(numbering), log_(log) {
  log.terms = graph;
  log.n_before = static_cast<uint32_t>(graph.nodes.size());
}

// The term of an e-node, made when there is none. Its inputs' e-nodes are older, and so are their terms.
NodeId GraphAssembler::add_term(const GraphPart& part, const PartSolution& solution, ENodeId id) {
  NodeId& term = term_of_[id.value];
  if (term.valid()) return term;
  const ENode& enode = solution.egraph.node(id);
  const ValueType& type = solution.egraph.eclass(id).type;
  Node node;
  node.op = enode.op;
  node.dtype = type.dtype;
  node.shape = type.shape;
  std::vector<NodeId> inputs;
  if (enode.is_given()) {  // a weight with a number added; all others have their terms already
    const NodeId weight = numbering_.same_as[part.givens[enode.leaf].value];
    const auto [entry, is_new] = raised_.emplace(std::pair(weight.value, enode.attributes[0]), NodeId(log_.terms.nodes.size()));
    if (!is_new) return term = entry->second;
    node.leaf = static_cast<uint32_t>(log_.terms.weights.size());
    log_.terms.weights.push_back({graph_.weights[graph_.node(weight).leaf].name, attribute_f32(enode.attributes, 0)});
    node.layer = graph_.node(weight).layer;
  } else {
    node.attributes = enode.attributes;
    for (const ENodeId input : solution.egraph.inputs_of(id)) inputs.push_back(add_term(part, solution, input));
    node.layer = graph_.node(part.nodes.front()).layer;
  }
  node.first_input = static_cast<uint32_t>(log_.terms.inputs.size());
  node.n_inputs = static_cast<uint32_t>(inputs.size());
  log_.terms.inputs.insert(log_.terms.inputs.end(), inputs.begin(), inputs.end());
  log_.terms.nodes.push_back(node);
  return term_of_[id.value] = NodeId(log_.terms.nodes.size() - 1);
}

void GraphAssembler::log_firings(const GraphPart& part, const PartSolution& solution) {
  for (const uint32_t f : solution.needed) {
    const RuleFiring& firing = solution.saturation.firings[f];
    LoggedFiring logged;
    logged.rule = firing.rule;
    for (const ENodeId id : firing.matched) logged.matched.push_back(add_term(part, solution, id));
    for (const ENodeId id : firing.built) logged.right.push_back(add_term(part, solution, id));
    if (firing.built.empty()) logged.right.push_back(add_term(part, solution, firing.right_root));
    log_.firings.push_back(std::move(logged));
  }
}

uint32_t GraphAssembler::push(NewNode node) {
  made_.push_back(std::move(node));
  return static_cast<uint32_t>(made_.size() - 1);
}

uint32_t GraphAssembler::make_leaf(NodeId term) {
  const auto [entry, is_new] = leaf_of_.emplace(term, static_cast<uint32_t>(made_.size()));
  if (is_new) push({log_.terms.node(term), {}, term.value});
  return entry->second;
}

void GraphAssembler::add(const GraphPart& part, const PartSolution& solution) {
  const EGraph& egraph = solution.egraph;
  term_of_.assign(egraph.n_nodes(), NodeId{});
  for (size_t i = 0; i < part.givens.size(); ++i) term_of_[solution.given_nodes[i].value] = part.givens[i];
  for (size_t i = 0; i < part.nodes.size(); ++i) {
    NodeId& term = term_of_[solution.original_nodes[i].value];
    if (!term.valid()) term = part.nodes[i];
  }
  // Where a class of the new graph was in the old one.
  std::map<ENodeId, NodeId> old_of;
  for (size_t i = 0; i < part.nodes.size(); ++i) old_of.emplace(egraph.find(solution.original_nodes[i]), part.nodes[i]);
  log_firings(part, solution);

  std::map<ENodeId, uint32_t> made_of;  // by representative
  for (const ENodeId id : solution.chosen) {
    const ENode& enode = egraph.node(id);
    const ENodeId eclass = egraph.find(id);
    if (enode.op == kOuterValue) {
      made_of[eclass] = value_of_.at(part.givens[enode.leaf]);
      continue;
    }
    if (enode.is_given()) {
      made_of[eclass] = make_leaf(add_term(part, solution, id));
      continue;
    }
    const ValueType& type = egraph.eclass(id).type;
    NewNode made;
    made.node.op = enode.op;
    made.node.attributes = enode.attributes;
    made.node.dtype = type.dtype;
    made.node.shape = type.shape;
    for (const ENodeId input : egraph.inputs_of(id)) {
      made.inputs.push_back(made_of.at(egraph.find(input)));
      made.place = std::max(made.place, made_[made.inputs.back()].place);
    }
    const auto old = old_of.find(eclass);
    if (old != old_of.end()) made.place = old->second.value;
    made.node.layer = graph_.node(old != old_of.end() ? old->second : part.nodes.front()).layer;
    made_of[eclass] = push(std::move(made));
  }
  for (size_t i = 0; i < part.nodes.size(); ++i) {
    const auto made = made_of.find(egraph.find(solution.original_nodes[i]));
    if (made != made_of.end()) value_of_[part.nodes[i]] = made->second;
  }
}

OpGraph GraphAssembler::finish() {
  std::vector<uint32_t> missing(made_.size(), 0);
  std::vector<std::vector<uint32_t>> readers(made_.size());
  using Entry = std::tuple<uint32_t, uint32_t>;  // place, then order of making
  std::priority_queue<Entry, std::vector<Entry>, std::greater<>> ready;
  for (uint32_t i = 0; i < made_.size(); ++i) {
    missing[i] = static_cast<uint32_t>(made_[i].inputs.size());
    for (const uint32_t input : made_[i].inputs) readers[input].push_back(i);
    if (missing[i] == 0) ready.emplace(made_[i].place, i);
  }
  OpGraph out;
  out.vocab = graph_.vocab;
  out.hidden = graph_.hidden;
  out.n_layers = graph_.n_layers;
  out.max_position = graph_.max_position;
  std::vector<NodeId> id_of(made_.size());
  while (!ready.empty()) {
    const uint32_t i = std::get<1>(ready.top());
    ready.pop();
    Node node = made_[i].node;
    const auto copy_leaf = [&node](const auto& from, auto& to) {
      to.push_back(from[node.leaf]);
      node.leaf = static_cast<uint32_t>(to.size() - 1);
    };
    if (node.op == Op::kWeight) copy_leaf(log_.terms.weights, out.weights);
    if (node.op == Op::kConstant) copy_leaf(log_.terms.constants, out.constants);
    if (node.op == Op::kKvState) copy_leaf(log_.terms.kv_states, out.kv_states);
    node.first_input = static_cast<uint32_t>(out.inputs.size());
    node.n_inputs = static_cast<uint32_t>(made_[i].inputs.size());
    for (const uint32_t input : made_[i].inputs) out.inputs.push_back(id_of[input]);
    id_of[i] = NodeId(out.nodes.size());
    out.nodes.push_back(node);
    for (const uint32_t reader : readers[i]) {
      if (--missing[reader] == 0) ready.emplace(made_[reader].place, reader);
    }
  }
  PLOW_CHECK(out.nodes.size() == made_.size(), "the new graph has a circle");
  out.tokens = id_of[value_of_.at(numbering_.same_as[graph_.tokens.value])];
  return out;
}

}  // namespace plow
