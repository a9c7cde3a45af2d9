// Every tiny checkpoint, compiled and run, against transformers in float64.

#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>

#include "harness.h"

namespace plow {
namespace {

namespace fs = std::filesystem;

const fs::path kTiny = fs::path(PLOW_SOURCE_DIR) / "build/fixtures/tiny";
const fs::path kGolden = fs::path(PLOW_SOURCE_DIR) / "tests/golden/models";

std::vector<std::string> tiny_models() {
  std::vector<std::string> names;
  for (const auto& entry : fs::directory_iterator(kGolden)) {
    if (entry.path().extension() == ".json" && fs::exists(kTiny / entry.path().stem())) names.push_back(entry.path().stem().string());
  }
  std::sort(names.begin(), names.end());
  return names;
}

CompileOptions options_for(const std::string& name, DType kv_dtype, uint32_t workers) {
  CompileOptions options;
  options.checkpoint = kTiny / name;
  options.max_context = 256;
  options.max_slots = 8;
  options.chunk_rows = 100;  // not a multiple of the row tile
  options.kv_dtype = kv_dtype;
  options.n_workers = workers;
  return options;
}

struct Cut {
  uint32_t chunk;
  size_t batch;
};

// Rows of a prompt's chunk, prompts at once: every pair.
std::vector<Cut> all_cuts() {
  std::vector<Cut> all;
  for (const uint32_t chunk : {1u, 7u, 64u, 512u}) {
    for (const size_t batch : {size_t{1}, size_t{3}, size_t{8}}) all.push_back({chunk, batch});
  }
  return all;
}

// Every chunk and every batch once; PLOW_TEST_FULL=1 takes every pair.
std::vector<Cut> few_cuts() {
  if (std::getenv("PLOW_TEST_FULL") != nullptr) return all_cuts();
  return {{1, 3}, {7, 8}, {64, 1}, {512, 3}};
}

class TinyModel : public testing::TestWithParam<std::string> {
 protected:
  static void TearDownTestSuite() { bundles_.clear(); }
  void SetUp() override {
    auto golden = read_golden(kGolden / (GetParam() + ".json"));
    ASSERT_TRUE(golden.ok()) << golden.error().message;
    golden_ = std::move(golden).value();
  }

  std::vector<const GoldenPrompt*> prompts(size_t count) const {
    std::vector<const GoldenPrompt*> list;
    for (size_t i = 0; i < count; ++i) list.push_back(&golden_.prompts[i % golden_.prompts.size()]);
    return list;
  }

  // Compiled once for all tests of a model.
  const TestBundle& bundle(DType kv_dtype, uint32_t workers) const {
    return shared_bundle(bundles_, GetParam() + " " + dtype_name(kv_dtype) + " " + std::to_string(workers),
                         options_for(GetParam(), kv_dtype, workers));
  }

  // Every prompt's logits lie within the tolerance, alone and in company, however the prompts are cut.
  void expect_within(Engine& engine, double tolerance, const std::vector<Cut>& cuts = all_cuts()) {
    for (const auto& [chunk, batch] : cuts) {
      for (size_t first = 0; first < golden_.prompts.size(); first += batch) {
        std::vector<const GoldenPrompt*> group;
        for (size_t i = 0; i < batch; ++i) group.push_back(&golden_.prompts[(first + i) % golden_.prompts.size()]);
        const auto logits = teacher_forced(engine, group, chunk);
        for (size_t i = 0; i < batch; ++i) {
          EXPECT_LE(worst_error(*group[i], logits[i]), tolerance)
              << "prompt of " << group[i]->ids.size() << " tokens, chunk " << chunk << ", batch " << batch;
        }
      }
    }
  }

  static inline SharedBundles bundles_;
  Golden golden_;
};

// With two workers every instruction set is taken, and every cut, below.
TEST_P(TinyModel, LogitsAreTransformersWithTheCacheInF32) {
  for (const uint32_t workers : {1u, 2u, 3u}) {
    Engine engine = bundle(DType::kF32, workers).engine();
    expect_within(engine, golden_.tolerance_f32, few_cuts());
  }
}

TEST_P(TinyModel, LogitsAreTransformersWithTheCacheInBf16) {
  Engine engine = bundle(DType::kBf16, 2).engine();
  expect_within(engine, golden_.tolerance_kv_bf16);
}

TEST_P(TinyModel, EveryInstructionSetHereIsWithinItsTolerance) {
  for (const IsaLevel level : available_isa_levels()) {
    Engine engine = bundle(DType::kF32, 2).engine(level);
    EXPECT_EQ(engine.isa_level(), level) << "the level that was asked for is the one that runs";
    expect_within(engine, level == IsaLevel::kAvx512Bf16 ? golden_.tolerance_bf16 : golden_.tolerance_f32);
  }
}

TEST_P(TinyModel, GreedyAnswersAreTransformers) {
  for (const DType kv_dtype : {DType::kF32, DType::kBf16}) {
    Engine engine = bundle(kv_dtype, 2).engine();
    const double tolerance = kv_dtype == DType::kF32 ? golden_.tolerance_f32 : golden_.tolerance_kv_bf16;
    const GreedyOutcome outcome = greedy_outcome(engine, golden_.prompts, 64);
    EXPECT_GT(outcome.tokens, 100u);
    for (const Divergence& d : outcome.divergences) {
      EXPECT_LE(d.margin, 2 * tolerance) << "prompt " << d.prompt << ", token " << d.token;
    }
  }
}

// A row's result has the same bits whatever shares its step.
TEST_P(TinyModel, ABatchChangesNoBit) {
  Engine engine = bundle(DType::kBf16, 2).engine();
  for (const uint32_t chunk : {1u, 7u}) {
    const auto together = teacher_forced(engine, prompts(8), chunk);
    for (size_t i = 0; i < 8; ++i) {
      const auto alone = teacher_forced(engine, {prompts(8)[i]}, chunk);
      EXPECT_EQ(alone[0], together[i]) << "prompt " << i << ", chunk " << chunk;
    }
  }
}

INSTANTIATE_TEST_SUITE_P(All, TinyModel, testing::ValuesIn(tiny_models()), [](const auto& test) {
  std::string name = test.param;
  std::replace_if(name.begin(), name.end(), [](char c) { return c == '-' || c == '.'; }, '_');
  return name;
});

TEST(TinyModels, AreAllHere) { EXPECT_GE(tiny_models().size(), 13u) << "made by tools/fixtures/make_tiny_models.py into " << kTiny; }

}  // namespace
}  // namespace plow
