// What was measured on machines, in one SQLite file: figures of parts, and settings of operators that were
// better than what is done without them. Rows carry where they come from; a changed body makes its rows
// stale.
//
// Tables (schema version 1): meta(key, value); part(id, name, cpu, level, workers, bodies, measured_at,
// version); figure(part, name, value, spread, count); setting(part, program, op, inputs, outputs, value,
// split, body, median_ns, before_ns, before_spread, count, model, measured_at, version).
#pragma once

#include "base/error.h"
#include "compile/plan.h"
#include "tune/calibrate.h"

#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <vector>

struct sqlite3;

namespace plow {

// What a part is known by: rows of one machine are never used on another.
struct MachineKey {
  std::string cpu;    // as the system names it
  std::string level;  // isa_level_name
  uint32_t n_workers = 1;
};

struct PartRow {
  int64_t id = 0;
  MachineKey key;
  Calibration calibration;
  std::string bodies;       // digest_of_all_bodies() when it was measured
  std::string measured_at;  // UTC, "2026-11-30T12:00:00Z"
  std::string version;      // of plow

  std::string name() const;  // "AMD EPYC, avx2, 2 workers"
};

struct SettingRow {
  TunedSetting setting;
  std::string body;                         // body_digest() of the operator when it was measured
  double median_ns = 0, spread = 0;         // of a step with it
  double before_ns = 0, before_spread = 0;  // of the incumbent, in the same run
  uint32_t count = 0;                       // steps of either
  std::string model, measured_at, version;
};

class TuneDb {
 public:
  // Opens the file, or makes it with its folder. Errors (kInput): not a tunedb, of a newer schema, or not to
  // be written.
  static Result<TuneDb> open(const std::filesystem::path& file);
  // Only when it is there: nothing otherwise.
  static Result<std::optional<TuneDb>> open_existing(const std::filesystem::path& file);

  TuneDb(TuneDb&&) noexcept;
  TuneDb& operator=(TuneDb&&) noexcept;
  ~TuneDb();

  Result<std::vector<PartRow>> parts() const;
  // Nothing when this machine has not been calibrated.
  Result<std::optional<PartRow>> find_part(const MachineKey& key) const;
  // Replaces the figures of the machine; its settings stay.
  Result<int64_t> store_part(const PartRow& part);

  // By program, operator and shape.
  Result<std::vector<SettingRow>> settings(int64_t part) const;
  // Replaces a row of the same place.
  Status store_setting(int64_t part, const SettingRow& row);

 private:
  explicit TuneDb(sqlite3* handle) : handle_(handle) {}
  Status prepare_schema();

  sqlite3* handle_ = nullptr;
};

// The plan of this machine: its calibrated part, or the ISA's default, and those settings whose bodies are as
// they were.
struct MachinePlan {
  Plan plan;
  bool calibrated = false;
  bool bodies_changed = false;  // since it was calibrated
  size_t stale_settings = 0;    // left out
};
Result<MachinePlan> plan_for_machine(const TuneDb& db, const MachineKey& key);

// Digests of the sources that a body is compiled from, computed when plow was built.
std::string body_digest(Op op);
std::string digest_of_all_bodies();

}  // namespace plow
