#include "tune/tunedb.h"

#include <gtest/gtest.h>
#include <sqlite3.h>

#include <fstream>

namespace plow {
namespace {

namespace fs = std::filesystem;

class TuneDbTest : public ::testing::Test {
 protected:
  void SetUp() override {
    folder_ = fs::path(::testing::TempDir()) /
              (std::string("tunedb_") + ::testing::UnitTest::GetInstance()->current_test_info()->name());
    fs::remove_all(folder_);
  }
  void TearDown() override { fs::remove_all(folder_); }
  fs::path file() const { return folder_ / "deep" / "tune.db"; }

  TuneDb open() const {
    auto db = TuneDb::open(file());
    EXPECT_TRUE(db.ok()) << (db.ok() ? "" : db.error().message);
    return std::move(*db);
  }

  fs::path folder_;
};

PartRow some_part() {
  PartRow part;
  part.key = {"A processor", "avx2", 2};
  part.bodies = digest_of_all_bodies();
  part.measured_at = "2026-11-30T12:00:00Z";
  part.version = "0.1.0";
  for (size_t i = 0; i < kFigures; ++i)
    part.calibration.figures[i] = {1.0 / 3 + static_cast<double>(i), 0.25, static_cast<uint32_t>(i + 1)};
  return part;
}

SettingRow some_setting(Op op) {
  SettingRow row;
  row.setting = {true, op, 576, 1536, 64, Split::kRows};
  row.body = body_digest(op);
  row.median_ns = 900;
  row.spread = 0.01;
  row.before_ns = 1000;
  row.before_spread = 0.02;
  row.count = 40;
  row.model = "smollm2";
  row.measured_at = "2026-11-30T12:01:00Z";
  row.version = "0.1.0";
  return row;
}

TEST_F(TuneDbTest, GivesBackWhatWasStored) {
  const PartRow part = some_part();
  {
    TuneDb db = open();
    auto id = db.store_part(part);
    ASSERT_TRUE(id.ok()) << id.error().message;
    ASSERT_TRUE(db.store_setting(*id, some_setting(Op::kLinear)).ok());
  }
  const TuneDb db = open();
  const auto found = db.find_part(part.key);
  ASSERT_TRUE(found.ok() && found->has_value());
  EXPECT_EQ((*found)->bodies, part.bodies);
  EXPECT_EQ((*found)->measured_at, part.measured_at);
  for (size_t i = 0; i < kFigures; ++i) {
    EXPECT_EQ((*found)->calibration.figures[i].value, part.calibration.figures[i].value) << "to the last bit";
    EXPECT_EQ((*found)->calibration.figures[i].count, part.calibration.figures[i].count);
  }
  const auto settings = db.settings((*found)->id);
  ASSERT_TRUE(settings.ok());
  ASSERT_EQ(settings->size(), 1u);
  EXPECT_EQ(settings->front().setting, some_setting(Op::kLinear).setting);
  EXPECT_EQ(settings->front().before_ns, 1000);
  EXPECT_EQ(settings->front().model, "smollm2");
}

TEST_F(TuneDbTest, HasNothingOfAnotherMachine) {
  TuneDb db = open();
  ASSERT_TRUE(db.store_part(some_part()).ok());
  for (const MachineKey& key : {MachineKey{"Another", "avx2", 2}, MachineKey{"A processor", "avx512", 2},
                                MachineKey{"A processor", "avx2", 3}}) {
    const auto plan = plan_for_machine(db, key);
    ASSERT_TRUE(plan.ok());
    EXPECT_FALSE(plan->calibrated);
    EXPECT_EQ(plan->plan, default_plan(Isa::kX86_64));
  }
}

TEST_F(TuneDbTest, PlansWithFiguresAndSettingsOfThisMachine) {
  TuneDb db = open();
  const auto id = db.store_part(some_part());
  ASSERT_TRUE(id.ok());
  ASSERT_TRUE(db.store_setting(*id, some_setting(Op::kLinear)).ok());
  const auto plan = plan_for_machine(db, some_part().key);
  ASSERT_TRUE(plan.ok()) << plan.error().message;
  EXPECT_TRUE(plan->calibrated);
  EXPECT_FALSE(plan->bodies_changed);
  EXPECT_EQ(plan->plan.part[Figure::kHop],
            some_part().calibration.figures[static_cast<size_t>(Figure::kHop)].value);
  ASSERT_EQ(plan->plan.settings.size(), 1u);
  EXPECT_EQ(plan->plan.settings[0], some_setting(Op::kLinear).setting);
}

TEST_F(TuneDbTest, LeavesOutSettingsOfBodiesThatChanged) {
  TuneDb db = open();
  const auto id = db.store_part(some_part());
  SettingRow stale = some_setting(Op::kRmsNorm);
  stale.body = "of an older body";
  ASSERT_TRUE(db.store_setting(*id, stale).ok());
  ASSERT_TRUE(db.store_setting(*id, some_setting(Op::kLinear)).ok());
  const auto plan = plan_for_machine(db, some_part().key);
  ASSERT_TRUE(plan.ok());
  EXPECT_EQ(plan->stale_settings, 1u);
  ASSERT_EQ(plan->plan.settings.size(), 1u);
  EXPECT_EQ(plan->plan.settings[0].op, Op::kLinear);
}

TEST_F(TuneDbTest, ReplacesARowOfTheSamePlace) {
  TuneDb db = open();
  const auto first = db.store_part(some_part());
  SettingRow row = some_setting(Op::kLinear);
  ASSERT_TRUE(db.store_setting(*first, row).ok());
  row.setting.value = 128;
  ASSERT_TRUE(db.store_setting(*first, row).ok());
  const auto again = db.store_part(some_part());
  EXPECT_EQ(*again, *first) << "measured again, it is still the same machine";
  const auto settings = db.settings(*first);
  ASSERT_EQ(settings->size(), 1u);
  EXPECT_EQ(settings->front().setting.value, 128u);
}

TEST_F(TuneDbTest, RefusesWhatIsNoTuneDb) {
  fs::create_directories(file().parent_path());
  std::ofstream(file()) << "This is not a database, but it is long enough for a header of one. "
                           "......................................";
  const auto db = TuneDb::open(file());
  ASSERT_FALSE(db.ok());
  EXPECT_NE(db.error().message.find(file().string()), std::string::npos) << db.error().message;
  EXPECT_NE(db.error().message.find("--tunedb"), std::string::npos) << db.error().message;
}

TEST_F(TuneDbTest, RefusesANewerSchema) {
  { open(); }
  sqlite3* handle = nullptr;
  ASSERT_EQ(sqlite3_open(file().c_str(), &handle), SQLITE_OK);
  ASSERT_EQ(sqlite3_exec(handle, "UPDATE meta SET value = '2'", nullptr, nullptr, nullptr), SQLITE_OK);
  sqlite3_close(handle);
  const auto db = TuneDb::open(file());
  ASSERT_FALSE(db.ok());
  EXPECT_NE(db.error().message.find("version 2"), std::string::npos) << db.error().message;
}

TEST_F(TuneDbTest, IsNotMadeByLooking) {
  const auto none = TuneDb::open_existing(file());
  ASSERT_TRUE(none.ok());
  EXPECT_FALSE(none->has_value());
  EXPECT_FALSE(fs::exists(file()));
}

TEST(BodyDigest, DiffersFromOperatorToOperator) {
  EXPECT_EQ(body_digest(Op::kLinear).size(), 32u);
  EXPECT_NE(body_digest(Op::kLinear), body_digest(Op::kRmsNorm));
  EXPECT_EQ(body_digest(Op::kLeave), digest_of_all_bodies());
}

}  // namespace
}  // namespace plow
