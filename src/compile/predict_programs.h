// The predictions that a bundle carries.
#pragma once

#include "bundle/predictions.h"
#include "compile/pipeline.h"

#include <vector>

namespace plow {

// Of every program: decode steps (each row its own sequence) of few rows, chunks of one sequence of many.
std::vector<PredictionGrid> predict_programs(const OpGraph& graph, const std::vector<ProgramStages>& programs,
                                             const Part& part, uint32_t max_context);

}  // namespace plow
