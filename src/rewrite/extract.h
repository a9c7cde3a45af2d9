// Extraction: one node for every class that is needed, so that the graph they make costs least. The cost is that
// of a DAG (a node that several read counts once) plus that of its longest chain of waits:
//
//   sum of node costs + wait * (most waits on a way from an input to a root)
//
// Finding the least is NP-hard. Small problems are solved exactly by branch and bound; beyond a number of steps
// the best that was found stands, and the answer says so.
#pragma once

#include <cstdint>
#include <vector>

namespace plow {

struct ExtractionNode {
  struct Input {
    uint32_t eclass;
    bool waits;  // for another worker
  };
  double cost = 0;  // at least 0
  std::vector<Input> inputs;
};

struct ExtractionProblem {
  std::vector<std::vector<ExtractionNode>> classes;
  std::vector<uint32_t> roots;
  double wait = 0;
};

struct Extraction {
  static constexpr uint32_t kUnused = 0xffffffffu;
  std::vector<uint32_t> choice;  // by class: a node, or kUnused where the roots do not need it
  double cost = 0;
  uint32_t chain = 0;   // waits
  bool exact = true;    // no cheaper choice exists
  uint64_t steps = 0;   // of the search
};

struct ExtractionLimits {
  uint64_t max_steps = 1000000;  // half a second or so; a layer of a small model takes some hundreds
};

// Fills cost and chain of a choice, and sets to kUnused what the roots do not need. False when the choice lacks
// a class or goes in a circle.
bool measure_choice(const ExtractionProblem& problem, Extraction& extraction);

// REQUIRES that every root can be computed.
Extraction extract(const ExtractionProblem& problem, const ExtractionLimits& limits);

}  // namespace plow
