#include "compile/predict_programs.h"

#include "schedule/predict.h"

#include <algorithm>
#include <set>

namespace plow {

namespace {

// Contexts grow by doubling; attention's time is linear in between, but for the place where a window begins
// to cut.
std::vector<double> context_points(const OpGraph& graph, uint32_t max_context) {
  std::set<double> points = {0, double{1} * max_context};
  for (double context = 128; context < max_context; context *= 2) points.insert(context);
  for (const KvStateRef& state : graph.kv_states) {
    if (state.window > 0 && state.window < max_context) points.insert(state.window);
  }
  return {points.begin(), points.end()};
}

// Rows of few: each of the first, then pairs. Of many: the ends of row tiles, where the time grows by steps,
// some eight of them.
std::vector<double> row_points(const ProgramShape& shape) {
  std::set<double> points = {double{1} * shape.max_rows};
  if (shape.max_rows <= shape.token_row_tile) {
    for (uint32_t rows = 1; rows < shape.max_rows; rows += rows < 4 ? 1 : 2) points.insert(rows);
    return {points.begin(), points.end()};
  }
  const uint32_t tiles = shape.max_rows / shape.token_row_tile, stride = std::max(1u, tiles / 8);
  for (uint32_t tile = 1; tile <= tiles; tile += tile == 1 && stride > 1 ? stride - 1 : stride) {
    points.insert(tile * shape.token_row_tile);
  }
  return {points.begin(), points.end()};
}

}  // namespace

std::vector<PredictionGrid> predict_programs(const OpGraph& graph, const std::vector<ProgramStages>& programs,
                                             const Part& part, uint32_t max_context) {
  std::vector<PredictionGrid> grids;
  const auto add_grid = [&](uint32_t program, bool one_sequence, bool samples) {
    const ProgramStages& stages = programs[program];
    PredictionGrid grid{
        program, one_sequence, samples, row_points(stages.tiles.shape), context_points(graph, max_context),
        {}};
    for (const double rows : grid.rows) {
      for (const double context : grid.contexts) {
        const StepSize size{rows,
                            !samples       ? 0
                            : one_sequence ? 1
                                           : std::min<double>(rows, stages.tiles.shape.max_samples),
                            context, one_sequence ? 1 : rows};
        grid.ns.push_back(predict_step(graph, stages.tiles, stages.schedule, part, size).step.value);
      }
    }
    grids.push_back(std::move(grid));
  };
  for (uint32_t p = 0; p < programs.size(); ++p) {
    const bool many = programs[p].tiles.shape.max_rows > programs[p].tiles.shape.token_row_tile;
    if (!many) add_grid(p, false, true);
    add_grid(p, true, true);
    add_grid(p, true, false);
  }
  return grids;
}

}  // namespace plow
