// Every tiny checkpoint, compiled for sm_90a and run on a GPU where there is one, and for sm_90a, gfx942 and
// gfx950 and run on an emulated one everywhere, against transformers in float64 and against the very same
// bits however a step is filled.

#include "base/mapped_file.h"
#include "cost/part.h"
#include "harness.h"
#include "runtime/cuda/cuda_driver.h"
#include "runtime/testing/emulated_driver.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <filesystem>
#include <string_view>

namespace plow {
namespace {

namespace fs = std::filesystem;

const fs::path kTiny = fs::path(PLOW_SOURCE_DIR) / "build/fixtures/tiny";
const fs::path kGolden = fs::path(PLOW_SOURCE_DIR) / "tests/golden/models";

// Whether all is to be run that an emulated GPU takes minutes for.
bool full() { return std::getenv("PLOW_TEST_FULL") != nullptr; }

// A model of a family that runs on emulated GPUs in every run.
bool stands_for_its_family(std::string_view model) {
  constexpr std::array<std::string_view, 5> kOneOfEach = {"llama", "mistral", "qwen2", "qwen3", "gemma3"};
  return std::find(kOneOfEach.begin(), kOneOfEach.end(), model) != kOneOfEach.end();
}
constexpr const char* kWhySkipped = "one model a family stands for all; set PLOW_TEST_FULL=1";

// Rows of a prompt's chunk, prompts at once. PLOW_TEST_FULL=1 takes every pair.
std::vector<std::pair<uint32_t, size_t>> cuts() {
  if (!full()) return {{1, 1}, {7, 8}, {64, 3}};
  return {{1, 1}, {1, 3}, {1, 8}, {7, 1}, {7, 3}, {7, 8}, {64, 1}, {64, 3}, {64, 8}};
}

std::vector<std::string> tiny_models() {
  std::vector<std::string> names;
  for (const auto& entry : fs::directory_iterator(kGolden)) {
    if (entry.path().extension() == ".json" && fs::exists(kTiny / entry.path().stem()))
      names.push_back(entry.path().stem().string());
  }
  std::sort(names.begin(), names.end());
  return names;
}

// A bundle with its tape mapped, and engines on it.
class GpuBundle {
 public:
  GpuBundle(const std::string& model, Isa isa, DType kv_dtype, uint32_t workers, bool batch_invariant = false)
      : bundle_(options_for(model, isa, kv_dtype, workers, batch_invariant)) {
    tape_ = MappedFile::open(bundle_.path() / "weights.tape").value();
  }

  Engine engine(std::unique_ptr<GpuDriver> driver) const {
    auto engine = Engine::create_on(BundleFile::open(bundle_.path() / "model.pkt").value(), tape_.bytes(), {},
                                    std::move(driver));
    if (!engine.ok()) throw std::runtime_error(engine.error().message);
    return std::move(engine).value();
  }

 private:
  static CompileOptions options_for(const std::string& model, Isa isa, DType kv_dtype, uint32_t workers,
                                    bool batch_invariant) {
    CompileOptions options;
    options.checkpoint = kTiny / model;
    options.max_context = 256;
    options.max_slots = 8;
    options.chunk_rows = 100;  // not a multiple of the row tile
    options.kv_dtype = kv_dtype;
    options.isa = isa;
    options.n_workers = workers;
    options.batch_invariant = batch_invariant;
    return options;
  }

  TestBundle bundle_;
  MappedFile tape_;
};

// Prompts alone have the bits that they have together: all positions, or those of chunks that fill a step, which the program
// of many rows makes either way. Some positions' logits are asked for, so that a step has room for the chunks.
void expect_the_same_bits(Engine& engine, const Golden& golden, uint32_t chunk, bool all) {
  const std::vector<const GoldenPrompt*> group = {&golden.prompts.at(6), &golden.prompts.at(7), &golden.prompts.at(6)};
  const auto together = teacher_forced(engine, group, chunk);
  size_t compared = 0;
  for (size_t i = 0; i < group.size(); ++i) {
    const auto alone = teacher_forced(engine, {group[i]}, chunk)[0];
    ASSERT_EQ(alone.size(), together[i].size());
    const uint32_t length = alone.rbegin()->first + 1;
    for (const auto& [position, logits] : alone) {
      if (!all && position >= length / chunk * chunk) continue;
      EXPECT_EQ(logits, together[i].at(position)) << "a batch changes no bit, chunk " << chunk << ", position " << position;
      ++compared;
    }
  }
  EXPECT_GT(compared, group.size());
}

class TinyModelOnGpu : public testing::TestWithParam<std::string> {
 protected:
  void SetUp() override {
    auto golden = read_golden(kGolden / (GetParam() + ".json"));
    ASSERT_TRUE(golden.ok()) << golden.error().message;
    golden_ = std::move(golden).value();
  }

  // `count` prompts from `first` on, each within the tolerance.
  void expect_within(Engine& engine, double tolerance, uint32_t chunk, size_t first, size_t count) {
    std::vector<const GoldenPrompt*> group;
    for (size_t i = 0; i < count; ++i)
      group.push_back(&golden_.prompts[(first + i) % golden_.prompts.size()]);
    const auto logits = teacher_forced(engine, group, chunk);
    for (size_t i = 0; i < count; ++i) {
      const double error = worst_error(*group[i], logits[i]);
      EXPECT_LE(error, tolerance) << "prompt of " << group[i]->ids.size() << " tokens, chunk " << chunk
                                  << ", batch " << count;
      worst_ = std::max(worst_, error / tolerance);
    }
  }

  template <class Team>
  void expect_within_on_emulated(Isa isa, DType kv_dtype = DType::kF32, uint32_t chunk = 7, size_t prompt = 0) {
    const GpuBundle bundle(GetParam(), isa, kv_dtype, 3);
    Engine engine = bundle.engine(std::make_unique<emulated::EmulatedDriver<Team>>(
        emulated::EmulatedOptions{.n_workers = 3, .isa = isa}));
    const double tolerance = kv_dtype == DType::kF32 ? golden_.tolerance_f32 : golden_.tolerance_kv_bf16;
    expect_within(engine, tolerance, chunk, prompt, 1);  // fibers take their time
  }

  // A GPU of this machine, or nothing with a reason.
  static std::unique_ptr<GpuDriver> gpu(std::string& why_not) {
    auto driver = open_cuda(0);
    if (driver.ok()) return std::move(driver).value();
    why_not = driver.error().message;
    return nullptr;
  }

  Golden golden_;
  double worst_ = 0;  // share of a tolerance
};

TEST_P(TinyModelOnGpu, LogitsAreTransformersOnAnEmulatedGpu) {
  if (!full() && !stands_for_its_family(GetParam())) GTEST_SKIP() << kWhySkipped;
  expect_within_on_emulated<emulated::EmulatedTapeTeam>(Isa::kSm90a);
}

// A prompt of 65 tokens and its answer, in steps of the program of many rows.
TEST_P(TinyModelOnGpu, LogitsAreTransformersOnAnEmulatedGpuWhoseWarpsMultiplyAsAGroup) {
  if (!full() && !stands_for_its_family(GetParam())) GTEST_SKIP() << kWhySkipped;
  expect_within_on_emulated<emulated::EmulatedGroupTeam>(Isa::kSm90a, DType::kBf16, 64, 6);
}

TEST_P(TinyModelOnGpu, LogitsAreTransformersOnAnEmulatedGpuWithoutTape) {
  if (!full()) GTEST_SKIP() << "toys run on these; set PLOW_TEST_FULL=1";
  expect_within_on_emulated<emulated::EmulatedWarpTeam>(Isa::kSm120);
}

TEST_P(TinyModelOnGpu, LogitsAreTransformersOnAnEmulatedGpuWithWavesOf64Lanes) {
  if (!full())
    GTEST_SKIP() << "a matrix unit's waves are as wide, and toys run on these; set PLOW_TEST_FULL=1";
  expect_within_on_emulated<emulated::EmulatedTeam<64>>(Isa::kGfx942);
}

TEST_P(TinyModelOnGpu, LogitsAreTransformersOnAnEmulatedGpuWithMatrixUnits) {
  if (!full() && !stands_for_its_family(GetParam())) GTEST_SKIP() << kWhySkipped;
  expect_within_on_emulated<emulated::EmulatedMatrixTeam>(Isa::kGfx950);
}

TEST_P(TinyModelOnGpu, LogitsAreTransformers) {
  std::string why_not;
  auto driver = gpu(why_not);
  if (driver == nullptr) GTEST_SKIP() << why_not;
  const uint32_t workers = driver->facts().n_workers;
  driver.reset();
  for (const DType kv_dtype : {DType::kF32, DType::kBf16}) {
    const GpuBundle bundle(GetParam(), Isa::kSm90a, kv_dtype, workers);
    Engine engine = bundle.engine(gpu(why_not));
    const double tolerance = kv_dtype == DType::kF32 ? golden_.tolerance_f32 : golden_.tolerance_kv_bf16;
    for (const auto& [chunk, batch] : cuts()) expect_within(engine, tolerance, chunk, 0, batch);
    const GreedyOutcome outcome = greedy_outcome(engine, golden_.prompts, 64);
    EXPECT_GT(outcome.tokens, 100u);
    for (const Divergence& d : outcome.divergences)
      EXPECT_LE(d.margin, 2 * tolerance) << "prompt " << d.prompt << ", token " << d.token;
    expect_the_same_bits(engine, golden_, 20, false);
    const GpuBundle invariant(GetParam(), Isa::kSm90a, kv_dtype, workers, true);
    Engine of_invariant = invariant.engine(gpu(why_not));
    expect_the_same_bits(of_invariant, golden_, 7, true);
    expect_the_same_bits(of_invariant, golden_, 20, true);
    printf("%s, cache %s: worst logit error %.2f of the tolerance, %zu greedy tokens, %zu differ\n",
           GetParam().c_str(), dtype_name(kv_dtype), worst_, static_cast<size_t>(outcome.tokens),
           outcome.divergences.size());
  }
}

// Within a program bits depend on nothing, and between two of them only where the plan lets them.
TEST(BatchInvariant, ARowHasTheSameBitsInBothProgramsIfThePlanSaysSo) {
  using Team = emulated::EmulatedGroupTeam;
  if (!fs::exists(kTiny / "llama")) GTEST_SKIP() << "no tiny models here";
  Golden golden = read_golden(kGolden / "llama.json").value();
  for (const size_t i : {6, 7})  // their first 29 tokens
    std::erase_if(golden.prompts.at(i).logits, [](const GoldenLogits& logits) { return logits.position > 28; });
  for (const bool batch_invariant : {false, true}) {
    const GpuBundle bundle("llama", Isa::kSm90a, DType::kBf16, 3, batch_invariant);
    Engine engine = bundle.engine(std::make_unique<emulated::EmulatedDriver<Team>>(
        emulated::EmulatedOptions{.n_workers = 3, .isa = Isa::kSm90a}));
    expect_the_same_bits(engine, golden, 29, batch_invariant);
    const GoldenPrompt* prompt = &golden.prompts.at(6);
    const auto few = teacher_forced(engine, {prompt}, 8)[0], many = teacher_forced(engine, {prompt}, 29)[0];
    EXPECT_EQ(few == many, batch_invariant);
  }
}

INSTANTIATE_TEST_SUITE_P(All, TinyModelOnGpu, testing::ValuesIn(tiny_models()), [](const auto& test) {
  std::string name = test.param;
  std::replace_if(
      name.begin(), name.end(), [](char c) { return c == '-' || c == '.'; }, '_');
  return name;
});

}  // namespace
}  // namespace plow
