// From a doorbell's input to the columns that the device sees, with everything checked that step.h requires
// of the host.
#pragma once

#include "interp/reference/machine.h"
#include "interp/reference/memory.h"

namespace plow::reference {

struct MachineLimits {
  uint32_t slots = 0;
  uint32_t context = 0;
  uint32_t table_width = 0;
  std::vector<uint32_t> pool_blocks;  // by KV group
};

// Errors: kInput, naming the row, span, slot or block.
Result<StepColumns> make_columns(const BundleFile& bundle, const MachineLimits& limits,
                                 const StepInput& input);

}  // namespace plow::reference
