// The e-graph: many graphs at once. An e-node is an operator with its attributes over classes of equal values;
// a class holds every known way to compute one value. Nodes are hash-consed (the same operator over the same
// classes is one node), classes are a union-find, and congruence (equal inputs make equal values) is restored
// by rebuild(), once for many unions, as in Willsey et al., "egg: Fast and Extensible Equality Saturation"
// (POPL 2021).
//
// Every union is remembered with its reason in a forest over the nodes (Nieuwenhuis and Oliveras, "Proof-
// Producing Congruence Closure", RTA 2005), so that explain() can say why two nodes are equal. Everything is
// deterministic: ids grow in the order of insertion and no hash order is ever seen.
#pragma once

#include "base/ids.h"
#include "graph/op_def.h"

#include <array>
#include <cstdint>
#include <optional>
#include <span>
#include <unordered_map>
#include <vector>

namespace plow {

// Names a node, and the class that the node is in: find() gives the class's representative.
using ENodeId = Id<struct ENodeTag>;

// A value that the e-graph takes as given and that is no leaf of the graph: what another part of the graph
// computes.
constexpr Op kOuterValue = static_cast<Op>(0);

constexpr uint32_t kMaxENodeInputs = kPacketOperands - 1;

struct ENode {
  Op op = kOuterValue;
  // Of a leaf or an outer value: attributes[0] is the bit pattern of WeightRef::plus.
  Attributes attributes{};
  uint32_t leaf = 0;  // which leaf or outer value, as the owner of the e-graph counts them
  uint32_t n_inputs = 0;
  std::array<ENodeId, kMaxENodeInputs> inputs{};  // the nodes that it was made over; find() for their classes

  bool is_given() const { return op == kOuterValue || is_leaf(op); }
};

// Why two nodes are equal: a firing of a rule (numbered by the caller), or congruence.
struct Justification {
  static constexpr uint32_t kCongruence = 0xffffffffu;
  uint32_t firing = kCongruence;
};

struct ProofStep {
  ENodeId from, to;
  Justification why;
};

// What is known of a class; `nodes` are canonical, ascending and without two that are congruent.
struct EClass {
  ValueType type;
  ENodeId given;  // the leaf or outer value that is in the class, or none
  std::vector<ENodeId> nodes;
  std::vector<ENodeId> parents;  // nodes with an input in the class
};

class EGraph {
 public:
  // A leaf or an outer value. The same (op, leaf, plus) gives the same node.
  ENodeId add_given(Op op, uint32_t leaf, const ValueType& type, float plus = 0);
  // An operator over classes. Nothing when its shape rule refuses the inputs. REQUIRES as many inputs as its
  // definition says.
  std::optional<ENodeId> add(Op op, const Attributes& attributes, std::span<const ENodeId> inputs);

  // Makes the classes of a and b one; false when they are already. REQUIRES equal types. The e-graph may be
  // incongruent until rebuild().
  bool merge(ENodeId a, ENodeId b, Justification why);
  void rebuild();

  ENodeId find(ENodeId id) const {
    while (leader_[id.value] != id) id = leader_[id.value];
    return id;
  }
  bool equal(ENodeId a, ENodeId b) const { return find(a) == find(b); }
  const ENode& node(ENodeId id) const { return nodes_[id.value]; }
  std::span<const ENodeId> inputs_of(ENodeId id) const {
    return {node(id).inputs.data(), node(id).n_inputs};
  }
  const EClass& eclass(ENodeId id) const { return classes_[find(id).value]; }

  uint32_t n_nodes() const { return static_cast<uint32_t>(nodes_.size()); }
  std::vector<ENodeId> classes() const;  // the representatives, ascending
  uint32_t n_merges() const { return n_merges_; }

  // The chain of reasons from a to b. REQUIRES equal(a, b).
  std::vector<ProofStep> explain(ENodeId a, ENodeId b) const;

 private:
  struct KeyHash {
    size_t operator()(const ENode& node) const;
  };
  struct KeyEqual {
    bool operator()(const ENode& a, const ENode& b) const;
  };

  ENode canonical(ENodeId id) const;
  ENodeId push(const ENode& node, const ValueType& type);
  void repair(ENodeId root);
  void normalise_classes();
  std::vector<ENodeId> path_to_root(ENodeId id) const;

  std::vector<ENode> nodes_;
  std::vector<ENode> keys_;         // by node: under what it is in memo_
  std::vector<ENodeId> leader_;     // union-find
  std::vector<EClass> classes_;     // by node; of representatives only
  std::vector<ENodeId> proof_next_;  // the forest of reasons: each node's way towards its tree's root
  std::vector<Justification> proof_why_;
  std::unordered_map<ENode, ENodeId, KeyHash, KeyEqual> memo_;  // over canonical inputs
  std::vector<ENodeId> pending_;    // classes whose parents may be congruent now
  uint32_t n_merges_ = 0;
};

}  // namespace plow
