// plowrt bench: how fast a bundle runs here, beside what the memory of this machine allows, measured in the
// same run.
#pragma once

#include "base/error.h"
#include "runtime/engine.h"

#include <cstdint>
#include <filesystem>

namespace plow {

struct BenchOptions {
  std::filesystem::path bundle;
  EngineOptions engine;
  uint32_t context = 128;  // decode: tokens that are in the cache before; prefill: tokens of the prompt
  uint32_t rows = 1;       // decode: sequences that decode side by side
  uint32_t steps = 64;     // decode: steps of a repeat
  uint32_t repeat = 5;
  bool json = false;
};

// Errors (kDevice) when the run is not valid: the repeats differ by more than a quarter, so something else
// used the machine; (kVerification) when they gave different tokens. No figure is printed then.
Status bench_decode(const BenchOptions& options);
Status bench_prefill(const BenchOptions& options);

}  // namespace plow
