// What a part can do, in the units that the cost model adds up. Parts that ship are rows of parts.def; what
// `plowc tune calibrate` has measured on a machine replaces them there.
#pragma once

#include "abi/header.h"
#include "base/error.h"

#include <array>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace plow {

enum class Figure : uint32_t {
#define PLOW_FIGURE(Name, unit, text) k##Name,
#include "cost/figures.def"
  kCount
};
constexpr size_t kFigures = static_cast<size_t>(Figure::kCount);

struct FigureInfo {
  const char* name;
  const char* unit;
  const char* text;
};
const FigureInfo& figure_info(Figure figure);
Result<Figure> parse_figure(std::string_view name);  // kInput: no such figure

struct Part {
  std::string name;
  Isa isa = Isa::kX86_64;
  uint32_t n_workers = 0;  // that ran when it was measured; 0: any number
  std::array<double, kFigures> figures{};

  double operator[](Figure figure) const { return figures[static_cast<size_t>(figure)]; }
  double& operator[](Figure figure) { return figures[static_cast<size_t>(figure)]; }
  bool operator==(const Part&) const = default;
};

// Errors (kInput): a figure that is not a finite number above 0 (Overlap may be 0), named.
Status check_part(const Part& part);

std::span<const Part> known_parts();

// Null when the name is not known.
const Part* find_part(std::string_view name);

// The first part of an ISA: what is assumed when none is named.
const Part& default_part(Isa isa);

}  // namespace plow
