// Solves one part of a graph: saturation, then extraction.
#pragma once

#include "rewrite/extract.h"
#include "rewrite/node_cost.h"
#include "rewrite/parts.h"
#include "rewrite/saturate.h"

#include <cstdint>
#include <vector>

namespace plow {

// In terms of places: givens and nodes of the part in order of GraphPart.
struct PartSolution {
  EGraph egraph;
  std::vector<ENodeId> given_nodes;     // by given
  std::vector<ENodeId> original_nodes;  // by node of the part
  Saturation saturation;
  std::vector<ENodeId> chosen;   // the nodes of the answer, inputs before those who read them
  std::vector<ENodeId> answer;   // by representative: the chosen node of the class, or none
  std::vector<uint32_t> needed;  // firings that show the answer to be equal to the part
  uint32_t n_eclasses = 0;
  Extraction before, after;  // costs of the part as it was and of the answer (after.exact, after.steps)
};

struct SolveLimits {
  SaturationLimits saturation;
  ExtractionLimits extraction;
};

PartSolution solve_part(const OpGraph& graph, const ValueNumbering& numbering, const GraphPart& part,
                        const std::vector<bool>& enabled, const RewriteCost& cost, const SolveLimits& limits);

}  // namespace plow
