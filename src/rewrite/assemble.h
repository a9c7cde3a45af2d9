// Puts solved parts together: the new graph, and the log's terms and firings in the names of the old one.
#pragma once

#include "rewrite/log.h"
#include "rewrite/parts.h"
#include "rewrite/solve.h"

#include <cstdint>
#include <map>
#include <vector>

namespace plow {

class GraphAssembler {
 public:
  // Fills log.terms, n_before and firings. All must outlive the assembler.
  GraphAssembler(const OpGraph& graph, const ValueNumbering& numbering, RewriteLog& log);

  // One instance of a solution. Parts come in the order of the graph.
  void add(const GraphPart& part, const PartSolution& solution);

  // Nodes lie in the order of the old graph as far as they can: where no rule fired, nothing moves.
  OpGraph finish();

 private:
  struct NewNode {
    Node node;
    std::vector<uint32_t> inputs;  // into made_
    uint32_t place = 0;            // of the old node that it stands for, or of the last that it reads
  };

  void log_firings(const GraphPart& part, const PartSolution& solution);
  NodeId add_term(const GraphPart& part, const PartSolution& solution, ENodeId id);
  uint32_t make_leaf(NodeId term);
  uint32_t push(NewNode node);

  const OpGraph& graph_;
  const ValueNumbering& numbering_;
  RewriteLog& log_;
  std::vector<NodeId> term_of_;       // by e-node of the part that is added
  std::vector<NewNode> made_;
  std::map<NodeId, uint32_t> leaf_of_;   // by term: into made_
  std::map<NodeId, uint32_t> value_of_;  // by old node that is a root of its part: into made_
  std::map<std::pair<uint32_t, uint32_t>, NodeId> raised_;  // (weight term, plus) -> term of the stored sum
};

}  // namespace plow
