// What the compiler decides that no graph says: the part that it compiles for, and how operators are cut. It
// is in the bundle's build record, so that the stages can be derived again from the bundle alone.
#pragma once

#include "base/error.h"
#include "cost/part.h"
#include "tile/tile_graph.h"

#include <boost/json.hpp>

#include <cstdint>
#include <string>
#include <vector>

namespace plow {

// A setting that a tuner found better than what is done without it, and where it applies.
struct TunedSetting {
  bool many_rows = false;  // of the program of many rows, else of few
  // Op::kLeave: the row tile of the whole program, for models with `inputs` = hidden and `outputs` = vocab.
  Op op = Op::kLeave;
  uint32_t inputs = 0;   // columns of the first input
  uint32_t outputs = 0;  // columns of the output
  uint32_t value = 0;    // columns of a tile, or rows of a row tile; 0: as without the setting
  Split split = Split::kAuto;

  bool operator==(const TunedSetting&) const = default;
};

struct Plan {
  Part part;
  std::vector<TunedSetting> settings;  // at most one for each place

  bool operator==(const Plan&) const = default;
};

// The ISA's part as it ships, and no settings.
Plan default_plan(Isa isa);

// The settings that apply to some operator of the graph.
std::vector<TunedSetting> settings_for(const OpGraph& graph, const std::vector<TunedSetting>& settings);

// "few linear 576 x 1536: tile 32, split rows"
std::string to_text(const TunedSetting& setting);

boost::json::object plan_to_json(const Plan& plan);
// Errors (kInput): a field that is missing or not what it must be.
Result<Plan> plan_from_json(const boost::json::object& object);

}  // namespace plow
