// The real models against transformers: greedy answers in float32, logits in float64.

#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>

#include "harness.h"

namespace plow {
namespace {

namespace fs = std::filesystem;

// All 24 prompts and every way of cutting them take a quarter of an hour on two cores. The suite takes a third of the prompts and a way of each
// kind; PLOW_TEST_FULL=1 takes all.
bool full() { return std::getenv("PLOW_TEST_FULL") != nullptr; }

class RealModel : public testing::TestWithParam<std::string> {
 protected:
  static void TearDownTestSuite() { bundles_.clear(); }

  void SetUp() override {
    const fs::path checkpoint = fs::path(PLOW_SOURCE_DIR) / "build/models" / GetParam() / "checkpoint";
    ASSERT_TRUE(fs::exists(checkpoint)) << "scripts/fetch_model.sh " << GetParam() << " fetches it";
    auto golden = read_golden(fs::path(PLOW_SOURCE_DIR) / "tests/golden/models" / (GetParam() + ".json"));
    ASSERT_TRUE(golden.ok()) << golden.error().message;
    golden_ = std::move(golden).value();
    options_.checkpoint = checkpoint;
    options_.max_context = 2048;
    options_.max_slots = 8;
    options_.chunk_rows = 256;
    options_.n_workers = 2;
  }

  void keep(bool (*wanted)(size_t index, const GoldenPrompt& prompt)) {
    std::vector<GoldenPrompt> kept;
    for (size_t i = 0; i < golden_.prompts.size(); ++i) {
      if (wanted(i, golden_.prompts[i])) kept.push_back(golden_.prompts[i]);
    }
    golden_.prompts = std::move(kept);
  }

  // Compiled once for all tests of a model, and removed after the last: it has up to 1.3 GB.
  const TestBundle& bundle(DType kv_dtype) {
    options_.kv_dtype = kv_dtype;
    return shared_bundle(bundles_, bundle_name(kv_dtype), options_);
  }
  void remove_bundle(DType kv_dtype) { bundles_.erase(bundle_name(kv_dtype)); }
  std::string bundle_name(DType kv_dtype) const { return GetParam() + " " + dtype_name(kv_dtype); }

  static inline SharedBundles bundles_;
  Golden golden_;
  CompileOptions options_;
};

struct Cut {
  uint32_t chunk;
  size_t batch;
};

std::vector<Cut> cuts() {
  if (!full()) return {{7, 8}, {64, 3}, {512, 1}};
  std::vector<Cut> all;
  for (const uint32_t chunk : {1u, 7u, 64u, 512u}) {
    for (const size_t batch : {size_t{1}, size_t{3}, size_t{8}}) all.push_back({chunk, batch});
  }
  return all;
}

// What two programs in float32 may differ by before they choose another token: each logit of the two best may be off by the tolerance here and by
// the reference's own error there (docs/numerics.md).
double allowed_margin(const Golden& golden, double tolerance) { return 2 * (tolerance + golden.reference_error); }

TEST_P(RealModel, GreedyAnswersAreTransformers) {
  if (!full()) keep([](size_t i, const GoldenPrompt&) { return i % 3 == 0; });
  for (const DType kv_dtype : {DType::kF32, DType::kBf16}) {
    Engine engine = bundle(kv_dtype).engine();
    const double tolerance = kv_dtype == DType::kF32 ? golden_.tolerance_f32 : golden_.tolerance_kv_bf16;
    const GreedyOutcome outcome = greedy_outcome(engine, golden_.prompts, 256);
    EXPECT_GE(outcome.tokens, golden_.prompts.size() * 32);
    std::printf("%s, cache in %s: %zu of %zu tokens are the reference's\n", GetParam().c_str(), dtype_name(kv_dtype),
                outcome.tokens - outcome.divergences.size(), outcome.tokens);
    for (const Divergence& d : outcome.divergences) {
      std::printf("  prompt %zu, token %zu: margin %.3g, allowed %.3g\n", d.prompt, d.token, d.margin, allowed_margin(golden_, tolerance));
      EXPECT_LE(d.margin, allowed_margin(golden_, tolerance)) << "prompt " << d.prompt << ", token " << d.token;
    }
  }
  remove_bundle(DType::kBf16);
}

TEST_P(RealModel, LogitsAreTransformersHoweverPromptsAreCut) {
  if (!full()) keep([](size_t, const GoldenPrompt& prompt) { return prompt.ids.size() < 200; });
  Engine engine = bundle(DType::kF32).engine();
  std::vector<const GoldenPrompt*> prompts;
  for (const GoldenPrompt& prompt : golden_.prompts) {
    if (!prompt.logits.empty()) prompts.push_back(&prompt);
  }
  ASSERT_FALSE(prompts.empty());
  for (const Cut& cut : cuts()) {
    double worst = 0;
    for (size_t first = 0; first < prompts.size(); first += cut.batch) {
      const std::vector<const GoldenPrompt*> group(prompts.begin() + static_cast<ptrdiff_t>(first),
                                                   prompts.begin() + static_cast<ptrdiff_t>(std::min(first + cut.batch, prompts.size())));
      const auto logits = teacher_forced(engine, group, cut.chunk);
      for (size_t i = 0; i < group.size(); ++i) worst = std::max(worst, worst_error(*group[i], logits[i]));
    }
    std::printf("%s, chunk %u, batch %zu: worst error %.3g, allowed %.3g\n", GetParam().c_str(), cut.chunk, cut.batch, worst,
                golden_.tolerance_f32);
    EXPECT_LE(worst, golden_.tolerance_f32) << "chunk " << cut.chunk << ", batch " << cut.batch;
  }
  remove_bundle(DType::kF32);
}

// The models whose references are here (tests/golden/models).
std::vector<std::string> models() {
  std::vector<std::string> names;
  for (const char* name : {"smollm2-135m", "gemma3-270m", "qwen2.5-coder-0.5b"}) {
    if (fs::exists(fs::path(PLOW_SOURCE_DIR) / "tests/golden/models" / (std::string(name) + ".json"))) names.emplace_back(name);
  }
  return names;
}

TEST(RealModels, HaveReferences) { EXPECT_GE(models().size(), 2u); }

INSTANTIATE_TEST_SUITE_P(All, RealModel, testing::ValuesIn(models()), [](const auto& test) {
  std::string name = test.param;
  std::replace_if(name.begin(), name.end(), [](char c) { return c == '-' || c == '.'; }, '_');
  return name;
});

}  // namespace
}  // namespace plow
