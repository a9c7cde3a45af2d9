#include "rewrite/egraph.h"

#include "base/check.h"

#include <algorithm>

namespace plow {

size_t EGraph::KeyHash::operator()(const ENode& node) const {
  uint64_t hash = 0xcbf29ce484222325u;  // FNV-1a, 64 bits
  const auto mix = [&hash](uint32_t word) { hash = (hash ^ word) * 0x100000001b3u; };
  mix(static_cast<uint32_t>(node.op));
  for (const uint32_t word : node.attributes) mix(word);
  mix(node.leaf);
  for (uint32_t i = 0; i < node.n_inputs; ++i) mix(node.inputs[i].value);
  return hash;
}

bool EGraph::KeyEqual::operator()(const ENode& a, const ENode& b) const {
  return a.op == b.op && a.attributes == b.attributes && a.leaf == b.leaf && a.n_inputs == b.n_inputs &&
         std::equal(a.inputs.begin(), a.inputs.begin() + a.n_inputs, b.inputs.begin());
}

ENode EGraph::canonical(ENodeId id) const {
  ENode key = node(id);
  for (uint32_t i = 0; i < key.n_inputs; ++i) key.inputs[i] = find(key.inputs[i]);
  return key;
}

ENodeId EGraph::push(const ENode& node, const ValueType& type) {
  const ENodeId id(nodes_.size());
  nodes_.push_back(node);
  leader_.push_back(id);
  proof_next_.push_back(id);
  proof_why_.emplace_back();
  classes_.push_back({type, node.is_given() ? id : ENodeId{}, {id}, {}});
  keys_.push_back(canonical(id));
  memo_.emplace(keys_.back(), id);
  for (uint32_t i = 0; i < node.n_inputs; ++i) {
    std::vector<ENodeId>& parents = classes_[find(node.inputs[i]).value].parents;
    if (parents.empty() || parents.back() != id) parents.push_back(id);
  }
  return id;
}

ENodeId EGraph::add_given(Op op, uint32_t leaf, const ValueType& type, float plus) {
  ENode node;
  node.op = op;
  node.leaf = leaf;
  node.attributes[0] = attribute_bits(plus);
  PLOW_CHECK(node.is_given(), "{} is computed", op_name(op));
  const auto found = memo_.find(node);
  return found != memo_.end() ? found->second : push(node, type);
}

std::optional<ENodeId> EGraph::add(Op op, const Attributes& attributes, std::span<const ENodeId> inputs) {
  const OpDef& def = op_def(op);
  PLOW_CHECK(inputs.size() == def.n_inputs, "{} takes {} inputs", op_name(op), def.n_inputs);
  ENode node;
  node.op = op;
  node.attributes = attributes;
  node.n_inputs = def.n_inputs;
  std::copy(inputs.begin(), inputs.end(), node.inputs.begin());
  ENode key = node;
  std::vector<ValueType> types;
  for (uint32_t i = 0; i < def.n_inputs; ++i) {
    key.inputs[i] = find(inputs[i]);
    types.push_back(eclass(inputs[i]).type);
  }
  if (const auto found = memo_.find(key); found != memo_.end()) return found->second;
  const Result<ValueType> type = def.infer(types, attributes);
  if (!type.ok()) return std::nullopt;
  return push(node, *type);
}

bool EGraph::merge(ENodeId a, ENodeId b, Justification why) {
  ENodeId winner = find(a);
  ENodeId loser = find(b);
  if (winner == loser) return false;
  PLOW_CHECK(classes_[winner.value].type == classes_[loser.value].type, "e-nodes {} and {} of types {} and {} are not equal",
             a.value, b.value, to_text(classes_[winner.value].type), to_text(classes_[loser.value].type));
  // The forest: a's tree is turned until a is its root, which then hangs below b.
  ENodeId next = b;
  Justification reason = why;
  for (ENodeId at = a;;) {
    const ENodeId old_next = proof_next_[at.value];
    const Justification old_reason = proof_why_[at.value];
    proof_next_[at.value] = next;
    proof_why_[at.value] = reason;
    if (old_next == at) break;
    next = at;
    reason = old_reason;
    at = old_next;
  }
  // The class that more nodes look at stays, so that fewer are repaired.
  const size_t parents_a = classes_[winner.value].parents.size();
  const size_t parents_b = classes_[loser.value].parents.size();
  if (parents_a < parents_b || (parents_a == parents_b && loser < winner)) std::swap(winner, loser);
  EClass& into = classes_[winner.value];
  EClass& from = classes_[loser.value];
  leader_[loser.value] = winner;
  into.nodes.insert(into.nodes.end(), from.nodes.begin(), from.nodes.end());
  into.parents.insert(into.parents.end(), from.parents.begin(), from.parents.end());
  if (from.given.valid() && (!into.given.valid() || from.given < into.given)) into.given = from.given;
  from.nodes = {};
  from.parents = {};
  pending_.push_back(winner);
  ++n_merges_;
  return true;
}

void EGraph::rebuild() {
  while (!pending_.empty()) {
    std::vector<ENodeId> roots;
    for (const ENodeId id : pending_) roots.push_back(find(id));
    pending_.clear();
    std::sort(roots.begin(), roots.end());
    roots.erase(std::unique(roots.begin(), roots.end()), roots.end());
    for (const ENodeId root : roots) repair(root);
  }
  normalise_classes();
}

// Puts the parents of a class under their new keys; two that then have the same key are congruent.
void EGraph::repair(ENodeId root) {
  const std::vector<ENodeId> parents = classes_[find(root).value].parents;
  for (const ENodeId parent : parents) {
    const auto old = memo_.find(keys_[parent.value]);
    if (old != memo_.end() && old->second == parent) memo_.erase(old);
    keys_[parent.value] = canonical(parent);
    const auto [place, is_new] = memo_.emplace(keys_[parent.value], parent);
    if (is_new || place->second == parent) continue;
    merge(place->second, parent, {});
    place->second = std::min(place->second, parent);  // the older node speaks for both
  }
}

void EGraph::normalise_classes() {
  for (uint32_t i = 0; i < nodes_.size(); ++i) {
    if (leader_[i] != ENodeId(i)) continue;
    std::vector<ENodeId>& members = classes_[i].nodes;
    std::sort(members.begin(), members.end());
    // Of congruent nodes the one that memo_ names stays.
    std::erase_if(members, [&](ENodeId id) { return memo_.at(canonical(id)) != id; });
    std::vector<ENodeId>& parents = classes_[i].parents;
    std::sort(parents.begin(), parents.end());
    parents.erase(std::unique(parents.begin(), parents.end()), parents.end());
  }
}

std::vector<ENodeId> EGraph::classes() const {
  std::vector<ENodeId> result;
  for (uint32_t i = 0; i < nodes_.size(); ++i) {
    if (leader_[i] == ENodeId(i)) result.emplace_back(i);
  }
  return result;
}

std::vector<ENodeId> EGraph::path_to_root(ENodeId id) const {
  std::vector<ENodeId> path{id};
  while (proof_next_[path.back().value] != path.back()) path.push_back(proof_next_[path.back().value]);
  return path;
}

std::vector<ProofStep> EGraph::explain(ENodeId a, ENodeId b) const {
  PLOW_CHECK(equal(a, b), "e-nodes {} and {} are not known to be equal", a.value, b.value);
  std::vector<ENodeId> up = path_to_root(a);
  std::vector<ENodeId> down = path_to_root(b);
  // What both ways share, but for the node where they meet, is no part of the chain.
  while (up.size() > 1 && down.size() > 1 && up[up.size() - 2] == down[down.size() - 2]) {
    up.pop_back();
    down.pop_back();
  }
  std::vector<ProofStep> steps;
  for (size_t i = 0; i + 1 < up.size(); ++i) steps.push_back({up[i], up[i + 1], proof_why_[up[i].value]});
  for (size_t i = down.size(); i-- > 1;) steps.push_back({down[i], down[i - 1], proof_why_[down[i - 1].value]});
  return steps;
}

}  // namespace plow
