// Measures the figures of the cost model on this machine, through the interpreter and the workers that serve.
#pragma once

#include "cost/part.h"
#include "isa/x86_64/interpreter.h"

#include <array>

namespace plow {

struct CalibrateOptions {
  IsaLevel level = IsaLevel::kAuto;
  uint32_t n_workers = 1;
  double seconds = 60;  // about how long it may take
};

struct FigureMeasurement {
  double value = 0;
  double spread = 0;   // (median - best) / best of the steps that it was computed from
  uint32_t count = 0;  // of these steps
};

struct Calibration {
  IsaLevel level = IsaLevel::kAuto;
  std::array<FigureMeasurement, kFigures> figures{};

  Part part(std::string name, uint32_t n_workers) const;
};

class TuneSink {
 public:
  virtual ~TuneSink() = default;
  virtual void progress(std::string_view what, uint64_t done, uint64_t total) = 0;
  virtual bool cancelled() const = 0;
};

// Times are the best of many short steps: what else runs on the machine can only make a step longer. Errors:
// kDevice, the level is not here or a worker got no processor; kDoesNotFit; kInput, it was cancelled.
Result<Calibration> calibrate(const CalibrateOptions& options, TuneSink& sink);

}  // namespace plow
