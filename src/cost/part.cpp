#include "cost/part.h"

#include "base/check.h"

#include <fmt/format.h>

#include <cmath>

namespace plow {

namespace {

constexpr FigureInfo kInfos[] = {
#define PLOW_FIGURE(Name, unit, text) {#Name, unit, text},
#include "cost/figures.def"
};
static_assert(std::size(kInfos) == kFigures);

std::vector<Part> make_parts() {
  std::vector<Part> parts;
#define PLOW_PART(part_name, part_isa)                \
  parts.push_back(parts.empty() ? Part{} : parts[0]); \
  parts.back().name = part_name;                      \
  parts.back().isa = Isa::part_isa;                   \
  parts.back().n_workers = 0;
#define PLOW_WORKERS(n) parts.back().n_workers = n;
#define PLOW_VALUE(Name, value) parts.back()[Figure::k##Name] = value;
#include "cost/parts.def"
  return parts;
}

}  // namespace

const FigureInfo& figure_info(Figure figure) { return kInfos[static_cast<size_t>(figure)]; }

Result<Figure> parse_figure(std::string_view name) {
  for (size_t i = 0; i < kFigures; ++i) {
    if (kInfos[i].name == name) return static_cast<Figure>(i);
  }
  return input_error(fmt::format("'{}' is not a figure of the cost model", name));
}

Status check_part(const Part& part) {
  for (size_t i = 0; i < kFigures; ++i) {
    const double value = part.figures[i];
    const bool may_be_zero = static_cast<Figure>(i) == Figure::kOverlap;
    if (std::isfinite(value) && (value > 0 || (may_be_zero && value == 0))) continue;
    return input_error(fmt::format("part {}: the figure {} is {}; it must be a finite number above 0",
                                   part.name, kInfos[i].name, value));
  }
  return {};
}

std::span<const Part> known_parts() {
  static const std::vector<Part> parts = make_parts();
  return parts;
}

const Part* find_part(std::string_view name) {
  for (const Part& part : known_parts()) {
    if (part.name == name) return &part;
  }
  return nullptr;
}

const Part& default_part(Isa isa) {
  for (const Part& part : known_parts()) {
    if (part.isa == isa) return part;
  }
  PLOW_CHECK(false, "no part for ISA {}", isa_name(isa));
  __builtin_unreachable();
}

}  // namespace plow
