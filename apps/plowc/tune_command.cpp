#include "plowc/tune_command.h"

#include "base/text_table.h"
#include "compile/pipeline.h"
#include "console/bundle_dir.h"
#include "console/host.h"
#include "console/interrupt.h"
#include "console/progress_bar.h"
#include "console/terminal.h"
#include "tune/sweep.h"
#include "tune/tunedb.h"

#include <fmt/chrono.h>
#include <fmt/format.h>
#include <unistd.h>

#include <cstdlib>
#include <ctime>

namespace plow {

namespace {

namespace json = boost::json;

std::string variable(const char* name) {
  const char* value = std::getenv(name);
  return value == nullptr ? "" : value;
}

// Empty when the user has no home: then there is no database.
std::filesystem::path database_file(const TuneSource& source) {
  if (!source.file.empty()) return source.file;
  if (const std::string data = variable("XDG_DATA_HOME"); !data.empty())
    return std::filesystem::path(data) / "plow/tune.db";
  if (const std::string home = variable("HOME"); !home.empty())
    return std::filesystem::path(home) / ".local/share/plow/tune.db";
  return {};
}

Result<MachineKey> machine_key(const std::string& level_name, uint32_t n_workers) {
  const HostFacts host = read_host_facts();
  PLOW_TRY(const IsaLevel wanted, parse_isa_level(level_name));
  PLOW_TRY(const IsaLevel level, choose_isa_level(wanted));
  return MachineKey{host.cpu, isa_level_name(level), n_workers == 0 ? host.cores : n_workers};
}

std::string utc_now() { return fmt::format("{:%Y-%m-%dT%H:%M:%SZ}", fmt::gmtime(std::time(nullptr))); }

Result<TuneDb> open_database(const TuneOptions& options) {
  const std::filesystem::path file = database_file(options.source);
  if (file.empty())
    return usage_error("there is no home directory to keep the tunedb in. Name a file with --tunedb.");
  return TuneDb::open(file);
}

// What is in the database of this machine. Errors (kInput): nothing.
Result<PartRow> this_machine(const TuneDb& db, const TuneOptions& options) {
  PLOW_TRY(const MachineKey key, machine_key(options.level, options.n_workers));
  PLOW_TRY(auto row, db.find_part(key));
  if (row) return std::move(*row);
  return input_error(fmt::format("{} with {} and {} workers has not been measured. Run: plowc tune calibrate",
                                 key.cpu, key.level, key.n_workers));
}

json::object part_to_json(const PartRow& part) {
  json::object figures;
  for (size_t i = 0; i < kFigures; ++i) {
    const FigureMeasurement& figure = part.calibration.figures[i];
    const FigureInfo& info = figure_info(static_cast<Figure>(i));
    figures[info.name] = json::object{{"value", figure.value},
                                      {"unit", info.unit},
                                      {"spread", figure.spread},
                                      {"count", figure.count},
                                      {"text", info.text}};
  }
  return {{"cpu", part.key.cpu},
          {"level", part.key.level},
          {"workers", part.key.n_workers},
          {"measured_at", part.measured_at},
          {"version", part.version},
          {"bodies", part.bodies},
          {"bodies_changed", part.bodies != digest_of_all_bodies()},
          {"figures", std::move(figures)}};
}

json::object setting_to_json(const SettingRow& row) {
  return {{"setting", to_text(row.setting)},
          {"step_ns", row.median_ns},
          {"spread", row.spread},
          {"before_ns", row.before_ns},
          {"before_spread", row.before_spread},
          {"count", row.count},
          {"model", row.model},
          {"measured_at", row.measured_at},
          {"version", row.version},
          {"body", row.body},
          {"stale", row.body != body_digest(row.setting.op)}};
}

std::string figures_table(const PartRow& part) {
  TextTable table({"figure", ">value", "unit", ">spread", ">steps", "of what"});
  for (size_t i = 0; i < kFigures; ++i) {
    const FigureMeasurement& figure = part.calibration.figures[i];
    const FigureInfo& info = figure_info(static_cast<Figure>(i));
    table.add_row({info.name, fmt::format("{:.4g}", figure.value), info.unit,
                   fmt::format("{:.0f}%", figure.spread * 100), std::to_string(figure.count), info.text});
  }
  return table.to_string();
}

class BarSink : public TuneSink {
 public:
  explicit BarSink(bool quiet) : quiet_(quiet), bar_(stderr, Terminal::of(STDERR_FILENO)) {
    bar_.keep_lines(false);
  }
  void progress(std::string_view what, uint64_t done, uint64_t total) override {
    if (!quiet_) bar_.update(std::string(what), done, total, ProgressUnit::kItems);
  }
  bool cancelled() const override { return interrupted() != 0; }
  void clear() { bar_.clear(); }

 private:
  bool quiet_;
  ProgressBar bar_;
};

}  // namespace

Result<ChosenPlan> choose_plan(const TuneSource& source, Isa isa, uint32_t n_workers) {
  if (!source.part.empty()) {
    const Part* part = find_part(source.part);
    if (part != nullptr) return ChosenPlan{{*part, {}}, "as it ships, by name"};
    std::string known;
    for (const Part& each : known_parts()) known += (known.empty() ? "" : ", ") + each.name;
    return usage_error(fmt::format("there is no part '{}'; there are {}.", source.part, known));
  }
  ChosenPlan chosen{default_plan(isa), "as it ships"};
  const std::filesystem::path file = source.none ? std::filesystem::path() : database_file(source);
  if (isa != Isa::kX86_64 || file.empty()) return chosen;
  PLOW_TRY(const auto db, TuneDb::open_existing(file));
  const auto key = machine_key("auto", n_workers);
  if (!db || !key.ok()) {  // no database, or a machine that only compiles
    chosen.note += "; 'plowc tune calibrate' measures this machine";
    return chosen;
  }
  PLOW_TRY(MachinePlan machine, plan_for_machine(*db, *key));
  chosen.plan = std::move(machine.plan);
  if (machine.calibrated) chosen.note = "measured here";
  if (machine.bodies_changed)
    chosen.note += " before the bodies changed; 'plowc tune calibrate' measures it again";
  if (machine.stale_settings > 0)
    chosen.note += fmt::format("; {} settings are of other bodies", machine.stale_settings);
  return chosen;
}

Status tune_calibrate(const TuneOptions& options) {
  catch_interrupts();
  PLOW_TRY(const MachineKey key, machine_key(options.level, options.n_workers));
  PLOW_TRY(TuneDb db, open_database(options));
  BarSink sink(options.json);
  CalibrateOptions calibration;
  PLOW_TRY(calibration.level, parse_isa_level(key.level));
  calibration.n_workers = key.n_workers;
  if (options.seconds > 0) calibration.seconds = options.seconds;
  Result<Calibration> measured = calibrate(calibration, sink);
  sink.clear();
  if (!measured.ok()) return measured.error();
  const PartRow part{0, key, std::move(*measured), digest_of_all_bodies(), utc_now(), PLOW_VERSION};
  PLOW_TRY_STATUS(check_part(part.calibration.part(part.name(), key.n_workers)));
  PLOW_TRY(const int64_t id, db.store_part(part));
  (void)id;
  if (options.json) {
    fmt::print("{}\n", json::serialize(part_to_json(part)));
  } else {
    fmt::print("{}\n\n{}\nStored in {}. A compile on this machine uses it.\n", part.name(),
               figures_table(part), database_file(options.source).string());
  }
  return {};
}

namespace {

std::string time_text(const RaceTime& time) {
  return fmt::format("{} {:.1f}%", format_ns(time.ns), time.spread * 100);
}

std::string verdict(const Trial& trial) {
  if (!trial.timed) return trial.note;
  if (trial.won) return "wins";
  return trial.race.a_wins() ? "loses" : "within the spread";
}

std::string trials_table(const SweepResult& result) {
  TextTable table({"setting", ">predicted", ">before", ">with it", ">measured", "verdict"});
  for (const Trial& trial : result.trials) {
    if (!trial.timed) continue;
    table.add_row({to_text(trial.setting),
                   fmt::format("{:+.1f}%", (trial.predicted_ns / trial.predicted_before_ns - 1) * 100),
                   time_text(trial.race.a), time_text(trial.race.b),
                   fmt::format("{:+.1f}%", (trial.race.b.ns / trial.race.a.ns - 1) * 100), verdict(trial)});
  }
  return table.to_string();
}

json::object race_to_json(const RaceResult& race) {
  return {{"before_ns", race.a.ns},
          {"before_spread", race.a.spread},
          {"ns", race.b.ns},
          {"spread", race.b.spread},
          {"count", race.b.count}};
}

json::object sweep_to_json(const SweepResult& result) {
  json::array trials;
  for (const Trial& trial : result.trials) {
    trials.push_back({{"setting", to_text(trial.setting)},
                      {"timed", trial.timed},
                      {"verdict", verdict(trial)},
                      {"predicted_before_ns", trial.predicted_before_ns},
                      {"predicted_ns", trial.predicted_ns},
                      {"race", race_to_json(trial.race)}});
  }
  return {{"model", result.model},
          {"trials", std::move(trials)},
          {"decode", race_to_json(result.decode)},
          {"prefill", race_to_json(result.prefill)}};
}

}  // namespace

namespace {

// A folder that is gone when it is no longer needed.
class ScratchFolder {
 public:
  ScratchFolder()
      : path_(std::filesystem::temp_directory_path() / fmt::format("plowc-tune-{}", ::getpid())) {}
  ~ScratchFolder() {
    std::error_code ignored;
    std::filesystem::remove_all(path_, ignored);
  }
  ScratchFolder(const ScratchFolder&) = delete;
  ScratchFolder& operator=(const ScratchFolder&) = delete;
  const std::filesystem::path& path() const { return path_; }

 private:
  std::filesystem::path path_;
};

class CompileBar : public ProgressSink {
 public:
  explicit CompileBar(TuneSink& sink) : sink_(sink) {}
  void summary(const CompileSummary&) override {}
  void stage(std::string_view name, uint64_t done, uint64_t total) override {
    sink_.progress(name, done, total);
  }
  bool cancelled() const override { return sink_.cancelled(); }

 private:
  TuneSink& sink_;
};

}  // namespace

Status tune_bundle(const TuneOptions& given) {
  catch_interrupts();
  TuneOptions options = given;
  const ScratchFolder scratch;
  if (options.bundle.empty()) {
    PLOW_TRY(const MachineKey machine, machine_key(options.level, options.n_workers));
    PLOW_TRY(ChosenPlan chosen, choose_plan(options.source, Isa::kX86_64, machine.n_workers));
    CompileOptions compile;
    compile.checkpoint = options.checkpoint;
    compile.out = scratch.path();
    compile.n_workers = machine.n_workers;
    compile.plan = std::move(chosen.plan);
    BarSink bar(options.json);
    CompileBar progress(bar);
    if (auto compiled = compile_model(compile, progress); !compiled.ok()) return compiled.error();
    options.bundle = scratch.path().string();
  }
  PLOW_TRY(const BundleDir bundle, open_bundle_dir(options.bundle));
  PLOW_TRY(const MachineKey key, machine_key(options.level, bundle.file.header().n_workers));
  PLOW_TRY(TuneDb db, open_database(options));
  PLOW_TRY(const auto part, db.find_part(key));
  if (!part) {
    return input_error(
        fmt::format("{} with {} and {} workers has not been measured. Run: plowc tune calibrate", key.cpu,
                    key.level, key.n_workers));
  }
  PLOW_TRY(const MachinePlan machine, plan_for_machine(db, key));
  SweepOptions sweep_options;
  sweep_options.bundle = options.bundle;
  sweep_options.part = machine.plan.part;
  sweep_options.settings = machine.plan.settings;
  PLOW_TRY(sweep_options.level, parse_isa_level(key.level));
  sweep_options.decode = options.what != "prefill";
  sweep_options.prefill = options.what != "decode";
  if (options.seconds > 0) sweep_options.seconds = options.seconds;
  BarSink sink(options.json);
  Result<SweepResult> result = sweep(sweep_options, sink);
  sink.clear();
  if (!result.ok()) return result.error();
  result->model = given.bundle.empty() ? std::filesystem::path(given.checkpoint).filename().string()
                                       : bundle.names.served_name;
  for (const Trial& trial : result->winners) {
    const SettingRow row{trial.setting,      body_digest(trial.setting.op),
                         trial.race.b.ns,    trial.race.b.spread,
                         trial.race.a.ns,    trial.race.a.spread,
                         trial.race.b.count, result->model,
                         utc_now(),          PLOW_VERSION};
    PLOW_TRY_STATUS(db.store_setting(part->id, row));
  }
  if (options.json) {
    fmt::print("{}\n", json::serialize(sweep_to_json(*result)));
    return {};
  }
  const auto left_out =
      std::count_if(result->trials.begin(), result->trials.end(), [](const Trial& t) { return !t.timed; });
  fmt::print(
      "{}: {} candidates, {} of them not timed (the same packets, or predicted to be much slower)\n\n{}\n",
      result->model, result->trials.size(), left_out, trials_table(*result));
  const auto n_won =
      std::count_if(result->trials.begin(), result->trials.end(), [](const Trial& t) { return t.won; });
  for (const auto& [name, race] :
       {std::pair("decode", result->decode), std::pair("prefill", result->prefill)}) {
    if (race.b.count == 0) continue;
    fmt::print("{} with all {} that won: {} before, {} now ({:+.1f}%)\n", name, n_won, time_text(race.a),
               time_text(race.b), (race.b.ns / race.a.ns - 1) * 100);
  }
  if (result->winners.empty()) {
    fmt::print("Nothing {}was faster by more than the spread.\n", n_won > 0 ? "that won once " : "");
    return {};
  }
  fmt::print("Stored in {}. Compile the model again to use them.\n", database_file(options.source).string());
  return {};
}

Status tune_status(const TuneOptions& options) {
  PLOW_TRY(const TuneDb db, open_database(options));
  PLOW_TRY(const std::vector<PartRow> parts, db.parts());
  json::array all;
  TextTable table({"machine", "measured", "bodies", ">settings", ">stale"});
  for (const PartRow& part : parts) {
    PLOW_TRY(const std::vector<SettingRow> settings, db.settings(part.id));
    const auto stale = std::count_if(settings.begin(), settings.end(), [](const SettingRow& row) {
      return row.body != body_digest(row.setting.op);
    });
    const bool changed = part.bodies != digest_of_all_bodies();
    table.add_row({part.name(), part.measured_at, changed ? "changed since" : "as now",
                   std::to_string(settings.size()), std::to_string(stale)});
    all.push_back({{"machine", part.name()},
                   {"measured_at", part.measured_at},
                   {"bodies_changed", changed},
                   {"settings", settings.size()},
                   {"stale", stale}});
  }
  const std::string file = database_file(options.source).string();
  if (options.json) {
    fmt::print("{}\n", json::serialize(json::object{{"file", file}, {"parts", std::move(all)}}));
  } else if (parts.empty()) {
    fmt::print("{} is empty. 'plowc tune calibrate' measures this machine.\n", file);
  } else {
    fmt::print("{}\n\n{}", file, table.to_string());
  }
  return {};
}

Status tune_show(const TuneOptions& options) {
  PLOW_TRY(const TuneDb db, open_database(options));
  PLOW_TRY(const PartRow part, this_machine(db, options));
  if (options.json) {
    fmt::print("{}\n", json::serialize(part_to_json(part)));
  } else {
    fmt::print("{}, measured {} by plow {}\n\n{}", part.name(), part.measured_at, part.version,
               figures_table(part));
  }
  return {};
}

Status tune_best(const TuneOptions& options) {
  PLOW_TRY(const TuneDb db, open_database(options));
  PLOW_TRY(const PartRow part, this_machine(db, options));
  PLOW_TRY(const std::vector<SettingRow> settings, db.settings(part.id));
  json::array all;
  TextTable table({"setting", ">step", ">spread", ">before", ">spread", ">gain", ">steps", "model",
                   "measured", "bodies"});
  for (const SettingRow& row : settings) {
    table.add_row({to_text(row.setting), format_ns(row.median_ns), fmt::format("{:.1f}%", row.spread * 100),
                   format_ns(row.before_ns), fmt::format("{:.1f}%", row.before_spread * 100),
                   fmt::format("{:.1f}%", (1 - row.median_ns / row.before_ns) * 100),
                   std::to_string(row.count), row.model, row.measured_at,
                   row.body == body_digest(row.setting.op) ? "as now" : "changed: not used"});
    all.push_back(setting_to_json(row));
  }
  if (options.json) {
    fmt::print("{}\n", json::serialize(json::object{{"machine", part.name()}, {"settings", std::move(all)}}));
  } else if (settings.empty()) {
    fmt::print("{} has no tuned settings. 'plowc tune BUNDLE' looks for some.\n", part.name());
  } else {
    fmt::print("{}\n\n{}", part.name(), table.to_string());
  }
  return {};
}

Status tune_export(const TuneOptions& options) {
  PLOW_TRY(const TuneDb db, open_database(options));
  PLOW_TRY(const std::vector<PartRow> parts, db.parts());
  json::array all;
  for (const PartRow& part : parts) {
    PLOW_TRY(const std::vector<SettingRow> settings, db.settings(part.id));
    json::object object = part_to_json(part);
    json::array rows;
    for (const SettingRow& row : settings) rows.push_back(setting_to_json(row));
    object["settings"] = std::move(rows);
    all.push_back(std::move(object));
  }
  const std::string text = json::serialize(json::object{{"schema", 1}, {"parts", std::move(all)}}) + "\n";
  if (!options.output.empty()) return write_whole_file(options.output, text);
  fmt::print("{}", text);
  return {};
}

}  // namespace plow
