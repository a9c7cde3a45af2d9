// How long a step of a scheduled program takes by the cost model: its queues are replayed, row tile by row
// tile, with the waits and signals that the schedule has. A pure function, for any number of rows.
#pragma once

#include "cost/cost.h"
#include "schedule/schedule.h"

#include <map>

namespace plow {

struct Prediction {
  Nanoseconds step;                // from the host's ring to its return
  std::map<Op, Nanoseconds> busy;  // of all workers together, by operator
  Nanoseconds waiting;             // likewise: workers that had nothing to do until a wait was met
};

// REQUIRES size.tokens in 1 .. max_rows, size.samples in 0 .. max_samples of the program, and a schedule that
// verifies.
Prediction predict_step(const OpGraph& graph, const TileGraph& tiles, const Schedule& schedule,
                        const Part& part, const StepSize& size);

}  // namespace plow
