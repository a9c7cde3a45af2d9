// plowc tune: measures this machine and sweeps settings; and what a compile takes from there.
#pragma once

#include "base/error.h"
#include "compile/plan.h"

#include <cstdint>
#include <filesystem>
#include <string>

namespace plow {

// Where measured figures are looked for.
struct TuneSource {
  std::string file;   // --tunedb; empty: $XDG_DATA_HOME/plow/tune.db, else ~/.local/share/plow/tune.db
  bool none = false;  // --no-tunedb
  std::string part;   // --part: a part that ships, by name, and no database
};

struct ChosenPlan {
  Plan plan;
  std::string note;  // where it comes from, for people
};
// Errors: kUsage, no such part or two sources at once; kInput, a database that cannot be read.
Result<ChosenPlan> choose_plan(const TuneSource& source, Isa isa, uint32_t n_workers);

struct TuneOptions {
  TuneSource source;
  double seconds = 0;      // 0: as the command finds right
  uint32_t n_workers = 0;  // 0: all cores that this process may use
  std::string level = "auto";
  std::string checkpoint;     // to be compiled, tuned and thrown away, when there is no bundle
  std::string bundle;         // to be tuned
  std::string what = "both";  // decode, prefill or both
  std::string output;         // of export
  bool json = false;
};

// Sweeps the settings of a bundle and stores those that win. REQUIRES a bundle or a checkpoint.
Status tune_bundle(const TuneOptions& options);
Status tune_calibrate(const TuneOptions& options);
Status tune_status(const TuneOptions& options);  // which parts and how many rows there are
Status tune_show(const TuneOptions& options);    // the figures of this machine
Status tune_best(const TuneOptions& options);    // the settings of this machine
Status tune_export(const TuneOptions& options);  // all of it as JSON

}  // namespace plow
