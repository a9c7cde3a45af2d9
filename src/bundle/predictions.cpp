#include "bundle/predictions.h"

#include <algorithm>
#include <cmath>

namespace plow {

namespace {

namespace json = boost::json;

Error wrong() { return input_error("the predictions in the build record are not a grid of times"); }

Result<std::vector<double>> numbers(const json::object& object, const char* key) {
  const json::value* field = object.if_contains(key);
  if (field == nullptr || !field->is_array()) return wrong();
  std::vector<double> values;
  for (const json::value& value : field->get_array()) {
    if (!value.is_number() || !(value.to_number<double>() >= 0) || !std::isfinite(value.to_number<double>()))
      return wrong();
    values.push_back(value.to_number<double>());
  }
  return values;
}

Result<PredictionGrid> grid_from_json(const json::value& value) {
  const json::object* object = value.if_object();
  if (object == nullptr) return wrong();
  PredictionGrid grid;
  const json::value* program = object->if_contains("program");
  const json::value* one = object->if_contains("one_sequence");
  const json::value* samples = object->if_contains("samples");
  if (program == nullptr || !program->is_int64() || program->get_int64() < 0 || one == nullptr ||
      !one->is_bool() || samples == nullptr || !samples->is_bool()) {
    return wrong();
  }
  grid.program = static_cast<uint32_t>(program->get_int64());
  grid.one_sequence = one->get_bool();
  grid.samples = samples->get_bool();
  PLOW_TRY(grid.rows, numbers(*object, "rows"));
  PLOW_TRY(grid.contexts, numbers(*object, "contexts"));
  PLOW_TRY(grid.ns, numbers(*object, "ns"));
  const auto ascending = [](const std::vector<double>& points) {
    return !points.empty() &&
           std::adjacent_find(points.begin(), points.end(), std::greater_equal<>()) == points.end();
  };
  if (!ascending(grid.rows) || !ascending(grid.contexts) ||
      grid.ns.size() != grid.rows.size() * grid.contexts.size())
    return wrong();
  return grid;
}

// Between which points x lies: the index of the left one, and how far it is to the right one.
std::pair<size_t, double> locate(const std::vector<double>& points, double x) {
  if (points.size() == 1 || x <= points.front()) return {0, 0.0};
  size_t i = 0;
  while (i + 2 < points.size() && x > points[i + 1]) ++i;
  return {i, std::min(1.0, (x - points[i]) / (points[i + 1] - points[i]))};
}

}  // namespace

json::array predictions_to_json(const std::vector<PredictionGrid>& grids) {
  json::array all;
  for (const PredictionGrid& grid : grids) {
    all.push_back({{"program", grid.program},
                   {"one_sequence", grid.one_sequence},
                   {"samples", grid.samples},
                   {"rows", json::array(grid.rows.begin(), grid.rows.end())},
                   {"contexts", json::array(grid.contexts.begin(), grid.contexts.end())},
                   {"ns", json::array(grid.ns.begin(), grid.ns.end())}});
  }
  return all;
}

Result<std::vector<PredictionGrid>> predictions_of(std::string_view build_record) {
  boost::system::error_code error;
  const json::value record = json::parse(build_record, error);
  std::vector<PredictionGrid> grids;
  const json::value* all =
      !error && record.is_object() ? record.get_object().if_contains("predictions") : nullptr;
  if (all == nullptr) return grids;
  if (!all->is_array()) return wrong();
  for (const json::value& value : all->get_array()) {
    PLOW_TRY(grids.emplace_back(), grid_from_json(value));
  }
  return grids;
}

std::optional<double> predicted_ns(const std::vector<PredictionGrid>& grids, const PredictedStep& step) {
  const auto grid = std::find_if(grids.begin(), grids.end(), [&](const PredictionGrid& g) {
    return g.program == step.program && g.one_sequence == step.one_sequence && g.samples == step.samples;
  });
  if (grid == grids.end()) return std::nullopt;
  const auto [r, row_share] = locate(grid->rows, step.rows);
  const auto [c, context_share] = locate(grid->contexts, step.context);
  const size_t width = grid->contexts.size();
  const size_t right = c + 1 < width ? c + 1 : c, below = r + 1 < grid->rows.size() ? r + 1 : r;
  // Bindings by name: clang 14, which builds the fuzz targets, captures none.
  const auto along = [&, left_context = c, context = context_share](size_t row) {
    const double left = grid->ns[row * width + left_context];
    return left + (grid->ns[row * width + right] - left) * context;
  };
  return along(r) + (along(below) - along(r)) * row_share;
}

}  // namespace plow
