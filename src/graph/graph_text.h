// Names that the graph's printer and parser share.
#pragma once

#include "abi/step.h"

namespace plow {

// Null for a number that no column has.
constexpr const char* step_column_name(StepColumn column) {
  switch (column) {
    case StepColumn::kTokenIds:
      return "token_ids";
    case StepColumn::kPositions:
      return "positions";
    case StepColumn::kRowSlots:
      return "row_slots";
    case StepColumn::kSampleRows:
      return "sample_rows";
    case StepColumn::kSampled:
      return "sampled";
  }
  return nullptr;
}

}  // namespace plow
