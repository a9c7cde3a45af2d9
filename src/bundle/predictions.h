// How long steps of a bundle take by the cost model, at a grid of rows and contexts: what compile writes into
// the build record and bench prints beside what it measures.
#pragma once

#include "base/error.h"

#include <boost/json.hpp>

#include <cstdint>
#include <optional>
#include <string_view>
#include <vector>

namespace plow {

// Steps of one program, by rows and by the positions in the cache before them.
struct PredictionGrid {
  uint32_t program = 0;
  bool one_sequence = false;           // all rows are of one sequence; else every row is of its own
  bool samples = true;                 // whether rows pick tokens: every row's own, or one of one sequence
  std::vector<double> rows, contexts;  // ascending
  std::vector<double> ns;              // [rows][contexts]
};

boost::json::array predictions_to_json(const std::vector<PredictionGrid>& grids);

// The grids of a build record; none when it has none. Errors (kInput): grids that are not ones.
Result<std::vector<PredictionGrid>> predictions_of(std::string_view build_record);

struct PredictedStep {
  uint32_t program = 0;
  double rows = 1;
  double context = 0;
  bool one_sequence = false;
  bool samples = true;
};

// Nanoseconds, linear between the grid's points and at its ends beyond them. Nothing when no grid is of such
// steps.
std::optional<double> predicted_ns(const std::vector<PredictionGrid>& grids, const PredictedStep& step);

}  // namespace plow
