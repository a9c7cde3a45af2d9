#include "tune/tunedb.h"

#include <fmt/format.h>
#include <sqlite3.h>

#include <utility>

namespace plow {

namespace {

constexpr int kSchemaVersion = 1;

constexpr const char* kSchema = R"sql(
CREATE TABLE meta(key TEXT PRIMARY KEY, value TEXT NOT NULL);
CREATE TABLE part(id INTEGER PRIMARY KEY, cpu TEXT NOT NULL, level TEXT NOT NULL, workers INTEGER NOT NULL,
  bodies TEXT NOT NULL, measured_at TEXT NOT NULL, version TEXT NOT NULL, UNIQUE(cpu, level, workers));
CREATE TABLE figure(part INTEGER NOT NULL REFERENCES part(id), name TEXT NOT NULL, value REAL NOT NULL,
  spread REAL NOT NULL, count INTEGER NOT NULL, PRIMARY KEY(part, name));
CREATE TABLE setting(part INTEGER NOT NULL REFERENCES part(id), program TEXT NOT NULL, op INTEGER NOT NULL,
  inputs INTEGER NOT NULL, outputs INTEGER NOT NULL, value INTEGER NOT NULL, split TEXT NOT NULL, body TEXT NOT NULL,
  median_ns REAL NOT NULL, spread REAL NOT NULL, before_ns REAL NOT NULL, before_spread REAL NOT NULL,
  count INTEGER NOT NULL, model TEXT NOT NULL, measured_at TEXT NOT NULL, version TEXT NOT NULL,
  PRIMARY KEY(part, program, op, inputs, outputs));
INSERT INTO meta VALUES('schema_version', '1');
)sql";

Error sql_error(sqlite3* handle, const char* doing) {
  return input_error(fmt::format(
      "the tunedb could not be {}: {}. Choose another file with --tunedb, or none with --no-tunedb.", doing,
      sqlite3_errmsg(handle)));
}

// One statement, its parameters bound in order.
class Statement {
 public:
  static Result<Statement> prepare(sqlite3* handle, const char* sql) {
    sqlite3_stmt* statement = nullptr;
    if (sqlite3_prepare_v2(handle, sql, -1, &statement, nullptr) != SQLITE_OK)
      return sql_error(handle, "read");
    return Statement(handle, statement);
  }
  Statement(Statement&& other) noexcept
      : handle_(other.handle_), statement_(std::exchange(other.statement_, nullptr)), bound_(other.bound_) {}
  Statement& operator=(Statement&&) = delete;
  ~Statement() { sqlite3_finalize(statement_); }

  Statement& bind(const std::string& text) {
    sqlite3_bind_text(statement_, ++bound_, text.c_str(), -1, SQLITE_TRANSIENT);
    return *this;
  }
  Statement& bind(const char* text) { return bind(std::string(text)); }
  Statement& bind(int64_t value) { return sqlite3_bind_int64(statement_, ++bound_, value), *this; }
  Statement& bind(uint32_t value) { return bind(int64_t{value}); }
  Statement& bind(double value) { return sqlite3_bind_double(statement_, ++bound_, value), *this; }

  // Whether there is another row.
  Result<bool> step() {
    const int code = sqlite3_step(statement_);
    if (code == SQLITE_ROW) return true;
    if (code == SQLITE_DONE) return false;
    return sql_error(handle_, "used");
  }
  Status run() {
    if (auto more = step(); !more.ok()) return more.error();
    return {};
  }

  std::string text(int column) const {
    const unsigned char* value = sqlite3_column_text(statement_, column);
    return value == nullptr ? "" : reinterpret_cast<const char*>(value);
  }
  int64_t integer(int column) const { return sqlite3_column_int64(statement_, column); }
  uint32_t number(int column) const { return static_cast<uint32_t>(integer(column)); }
  double real(int column) const { return sqlite3_column_double(statement_, column); }

 private:
  Statement(sqlite3* handle, sqlite3_stmt* statement) : handle_(handle), statement_(statement) {}

  sqlite3* handle_;
  sqlite3_stmt* statement_;
  int bound_ = 0;
};

Status read_figures(sqlite3* handle, PartRow& part) {
  PLOW_TRY(Statement select,
           Statement::prepare(handle, "SELECT name, value, spread, count FROM figure WHERE part = ?"));
  select.bind(part.id);
  for (;;) {
    PLOW_TRY(const bool more, select.step());
    if (!more) return {};
    const auto figure = parse_figure(select.text(0));
    if (!figure.ok()) continue;  // of another version of plow
    part.calibration.figures[static_cast<size_t>(*figure)] = {select.real(1), select.real(2),
                                                              select.number(3)};
  }
}

}  // namespace

std::string PartRow::name() const {
  return fmt::format("{}, {}, {} worker{}", key.cpu, key.level, key.n_workers, key.n_workers == 1 ? "" : "s");
}

Result<TuneDb> TuneDb::open(const std::filesystem::path& file) {
  std::error_code ignored;  // what is missing shows when the file is opened
  if (file.has_parent_path()) std::filesystem::create_directories(file.parent_path(), ignored);
  sqlite3* handle = nullptr;
  const int code =
      sqlite3_open_v2(file.c_str(), &handle, SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE, nullptr);
  TuneDb db(handle);
  if (code != SQLITE_OK) return sql_error(handle, "opened").at(file.string());
  sqlite3_busy_timeout(handle, 5000);  // another plowc may be writing
  if (Status status = db.prepare_schema(); !status.ok()) return status.error().at(file.string());
  return db;
}

Result<std::optional<TuneDb>> TuneDb::open_existing(const std::filesystem::path& file) {
  std::error_code ignored;
  if (!std::filesystem::exists(file, ignored)) return std::optional<TuneDb>();
  PLOW_TRY(TuneDb db, open(file));
  return std::optional<TuneDb>(std::move(db));
}

TuneDb::TuneDb(TuneDb&& other) noexcept : handle_(std::exchange(other.handle_, nullptr)) {}
TuneDb& TuneDb::operator=(TuneDb&& other) noexcept {
  std::swap(handle_, other.handle_);
  return *this;
}
TuneDb::~TuneDb() { sqlite3_close(handle_); }

Status TuneDb::prepare_schema() {
  PLOW_TRY(Statement tables, Statement::prepare(handle_, "SELECT count(*) FROM sqlite_master"));
  PLOW_TRY(const bool any, tables.step());
  if (!any || tables.integer(0) == 0) {
    if (sqlite3_exec(handle_, kSchema, nullptr, nullptr, nullptr) != SQLITE_OK)
      return sql_error(handle_, "made");
    return {};
  }
  PLOW_TRY(Statement version,
           Statement::prepare(handle_, "SELECT value FROM meta WHERE key = 'schema_version'"));
  PLOW_TRY(const bool found, version.step());
  if (found && version.text(0) == std::to_string(kSchemaVersion)) return {};
  return input_error(fmt::format(
      "the tunedb has schema version {}, and this plowc reads version {}. Choose another file with "
      "--tunedb.",
      found ? version.text(0) : "none", kSchemaVersion));
}

Result<std::vector<PartRow>> TuneDb::parts() const {
  PLOW_TRY(Statement select,
           Statement::prepare(handle_,
                              "SELECT id, cpu, level, workers, bodies, measured_at, version FROM part "
                              "ORDER BY cpu, level, workers"));
  std::vector<PartRow> rows;
  for (;;) {
    PLOW_TRY(const bool more, select.step());
    if (!more) return rows;
    PartRow row;
    row.id = select.integer(0);
    row.key = {select.text(1), select.text(2), select.number(3)};
    row.bodies = select.text(4);
    row.measured_at = select.text(5);
    row.version = select.text(6);
    PLOW_TRY_STATUS(read_figures(handle_, row));
    rows.push_back(std::move(row));
  }
}

Result<std::optional<PartRow>> TuneDb::find_part(const MachineKey& key) const {
  PLOW_TRY(std::vector<PartRow> rows, parts());
  for (PartRow& row : rows) {
    if (row.key.cpu == key.cpu && row.key.level == key.level && row.key.n_workers == key.n_workers)
      return std::optional<PartRow>(std::move(row));
  }
  return std::optional<PartRow>();
}

Result<int64_t> TuneDb::store_part(const PartRow& part) {
  PLOW_TRY(
      Statement insert,
      Statement::prepare(handle_,
                         "INSERT INTO part(cpu, level, workers, bodies, measured_at, version) "
                         "VALUES(?, ?, ?, ?, ?, ?) ON CONFLICT(cpu, level, workers) DO UPDATE SET bodies = "
                         "excluded.bodies, measured_at = excluded.measured_at, version = excluded.version "
                         "RETURNING id"));
  insert.bind(part.key.cpu)
      .bind(part.key.level)
      .bind(part.key.n_workers)
      .bind(part.bodies)
      .bind(part.measured_at)
      .bind(part.version);
  PLOW_TRY(const bool stored, insert.step());
  if (!stored) return sql_error(handle_, "written");
  const int64_t id = insert.integer(0);
  PLOW_TRY_STATUS(insert.run());
  for (size_t i = 0; i < kFigures; ++i) {
    const FigureMeasurement& figure = part.calibration.figures[i];
    PLOW_TRY(Statement replace,
             Statement::prepare(handle_, "INSERT OR REPLACE INTO figure VALUES(?, ?, ?, ?, ?)"));
    replace.bind(id)
        .bind(figure_info(static_cast<Figure>(i)).name)
        .bind(figure.value)
        .bind(figure.spread)
        .bind(figure.count);
    PLOW_TRY_STATUS(replace.run());
  }
  return id;
}

Result<std::vector<SettingRow>> TuneDb::settings(int64_t part) const {
  PLOW_TRY(Statement select,
           Statement::prepare(handle_,
                              "SELECT program, op, inputs, outputs, value, split, body, median_ns, spread, "
                              "before_ns, before_spread, count, model, measured_at, version FROM setting "
                              "WHERE part = ? ORDER BY program, op, inputs, outputs"));
  select.bind(part);
  std::vector<SettingRow> rows;
  for (;;) {
    PLOW_TRY(const bool more, select.step());
    if (!more) return rows;
    SettingRow row;
    row.setting = {select.text(0) == "many", static_cast<Op>(select.number(1)),
                   select.number(2),         select.number(3),
                   select.number(4),         parse_split(select.text(5)).value_or(Split::kAuto)};
    row.body = select.text(6);
    row.median_ns = select.real(7);
    row.spread = select.real(8);
    row.before_ns = select.real(9);
    row.before_spread = select.real(10);
    row.count = select.number(11);
    row.model = select.text(12);
    row.measured_at = select.text(13);
    row.version = select.text(14);
    rows.push_back(std::move(row));
  }
}

Status TuneDb::store_setting(int64_t part, const SettingRow& row) {
  PLOW_TRY(
      Statement replace,
      Statement::prepare(
          handle_, "INSERT OR REPLACE INTO setting VALUES(?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)"));
  const TunedSetting& s = row.setting;
  replace.bind(part)
      .bind(s.many_rows ? "many" : "few")
      .bind(static_cast<uint32_t>(s.op))
      .bind(s.inputs)
      .bind(s.outputs);
  replace.bind(s.value)
      .bind(split_name(s.split))
      .bind(row.body)
      .bind(row.median_ns)
      .bind(row.spread)
      .bind(row.before_ns);
  replace.bind(row.before_spread).bind(row.count).bind(row.model).bind(row.measured_at).bind(row.version);
  return replace.run();
}

Result<MachinePlan> plan_for_machine(const TuneDb& db, const MachineKey& key) {
  MachinePlan result{default_plan(Isa::kX86_64)};
  PLOW_TRY(const auto row, db.find_part(key));
  if (!row) return result;
  Part part = row->calibration.part(row->name(), key.n_workers);
  // Figures that a newer plow has and the database lacks.
  for (size_t i = 0; i < kFigures; ++i) {
    if (row->calibration.figures[i].count == 0) part.figures[i] = result.plan.part.figures[i];
  }
  PLOW_TRY_STATUS(check_part(part));
  result.plan.part = std::move(part);
  result.calibrated = true;
  result.bodies_changed = row->bodies != digest_of_all_bodies();
  PLOW_TRY(const auto settings, db.settings(row->id));
  for (const SettingRow& setting : settings) {
    if (setting.body == body_digest(setting.setting.op)) {
      result.plan.settings.push_back(setting.setting);
    } else {
      ++result.stale_settings;
    }
  }
  return result;
}

}  // namespace plow
