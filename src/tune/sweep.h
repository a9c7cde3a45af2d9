// Looks for settings with which a bundle runs faster on this machine: every candidate first gives the
// bundle's own logits, bit for bit, and is then timed against the incumbent, turn by turn.
#pragma once

#include "compile/plan.h"
#include "tune/race.h"

#include <filesystem>

namespace plow {

struct SweepOptions {
  std::filesystem::path bundle;
  Part part;  // of this machine
  std::vector<TunedSetting>
      settings;  // that a compile would use now: the first incumbent has those that apply
  IsaLevel level = IsaLevel::kAuto;
  bool decode = true, prefill = true;
  double seconds = 300;  // about how long
};

// One candidate.
struct Trial {
  TunedSetting setting;
  double predicted_before_ns = 0, predicted_ns = 0;
  bool timed = false;  // else it was left out, as `note` says
  RaceResult race;     // a: the incumbent
  bool won = false;
  std::string note;
};

struct SweepResult {
  std::string model;
  std::vector<Trial> trials;
  // The settings that stay, each against what was there before it: those that won, if all of them together
  // win again.
  std::vector<Trial> winners;
  // The bundle with all that won against the bundle without; only what was swept is there.
  RaceResult decode, prefill;
};

// Errors: a bundle that cannot be loaded; kVerification, a candidate gives other logits; kInput, it was
// cancelled.
Result<SweepResult> sweep(const SweepOptions& options, TuneSink& sink);

}  // namespace plow
