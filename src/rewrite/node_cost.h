// What a node costs a step, for extraction. One number stands for all programs of a bundle: the weighted sum over
// typical steps, which RewriteCost states.
#pragma once

#include "cost/cost.h"
#include "rewrite/egraph.h"
#include "rewrite/extract.h"

#include <span>
#include <vector>

namespace plow {

// A kind of step and how often it is taken.
struct WeightedStep {
  StepSize size;
  double row_tiles = 1;  // what has one column tile is shared out by rows, if there are several tiles of them
  double weight = 1;
};

// How an operator is cut and placed.
struct NodePlacement {
  uint32_t n_tiles = 1;         // of columns
  std::vector<bool> waits;      // by input: some worker reads what another one has written
};

struct RewriteCost {
  const Part* part = nullptr;
  uint32_t n_workers = 1;
  std::vector<WeightedStep> steps;

  // Besides its own work a worker brings what others have written, of the inputs that wait.
  double node(Op op, std::span<const ValueType> inputs, const ValueType& output, const Attributes& attributes,
              const NodePlacement& placement) const;
  // Of a worker for another, over all steps; 0 when there is no other.
  double wait() const;
};

// One request of a full chunk of prompt: the chunk at once, then an answer of a quarter of its tokens, one a step.
// (Chat and code traces have prompts several times as long as their answers; where both programs agree, which is
// nearly everywhere, the ratio does not matter.)
RewriteCost request_cost(const Part& part, uint32_t n_workers, uint32_t chunk_rows);

// The classes of the e-graph with the cost of their nodes. Class i is classes[i] (representatives). An input waits
// when a worker's share of the columns reads what another worker's share has written, by the rules of placement:
// equal runs of column tiles, run i on worker i.
struct EGraphProblem {
  std::vector<ENodeId> classes;
  ExtractionProblem problem;  // its nodes are those of EClass::nodes, in order
};
EGraphProblem extraction_problem(const EGraph& egraph, const RewriteCost& cost, std::span<const ENodeId> roots);

}  // namespace plow
