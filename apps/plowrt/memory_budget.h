// How much memory the models of a server may take together when it was not said.
#pragma once

#include "base/error.h"
#include "isa/x86_64/interpreter.h"
#include "runtime/engine.h"

#include <cstdint>
#include <span>
#include <string>

namespace plow {

// Nine tenths of what is free now: of this machine for bundles of the CPU, else of the GPU. Errors (kUsage):
// bundles of both; (kDevice) no such GPU.
Result<uint64_t> free_budget(std::span<const Isa> isas, const std::string& device);

}  // namespace plow
