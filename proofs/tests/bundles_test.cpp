// plow_verify accepts what the compiler makes: every tiny checkpoint, cut in different ways, and the real
// models' bundles where they were compiled.
#include "base/testing/temp_dir.h"
#include "base/text_table.h"
#include "compile/pipeline.h"
#include "verifier.h"

#include <gtest/gtest.h>

#include <chrono>
#include <filesystem>

namespace plow {
namespace {

namespace fs = std::filesystem;

const fs::path kBuild = fs::path(PLOW_SOURCE_DIR) / "build";

class Silent final : public ProgressSink {
 public:
  void summary(const CompileSummary&) override {}
  void stage(std::string_view, uint64_t, uint64_t) override {}
  bool cancelled() const override { return false; }
};

std::vector<fs::path> folders_with(const fs::path& parent, const std::string& file) {
  std::vector<fs::path> found;
  if (!fs::exists(parent)) return found;
  for (const auto& entry : fs::directory_iterator(parent)) {
    if (fs::exists(entry.path() / file)) found.push_back(entry.path());
  }
  std::sort(found.begin(), found.end());
  return found;
}

std::string file_bytes(const fs::path& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), {}};
}

TEST(Bundles, OfTheTinyCheckpointsAreAccepted) {
  const auto models = folders_with(kBuild / "fixtures/tiny", "config.json");
  if (models.empty()) GTEST_SKIP() << "no tiny checkpoints: scripts/test.sh makes them";
  VerifierBatch batch;
  std::vector<std::string> names;
  for (const fs::path& model : models) {
    for (const uint32_t workers : {1u, 2u, 7u}) {
      const TempDir folder;
      CompileOptions options;
      options.checkpoint = model;
      options.out = folder.path() / "bundle";
      options.n_workers = workers;
      options.max_context = 256;
      options.max_slots = 8;
      options.chunk_rows = workers == 7 ? 200 : 100;  // not a multiple of the row tile
      Silent silent;
      const auto report = compile_model(options, silent);
      ASSERT_TRUE(report.ok()) << model << ": " << report.error().message;
      const std::string bytes = file_bytes(options.out / "model.pkt");
      batch.add(std::as_bytes(std::span(bytes)));
      names.push_back(model.filename().string() + " on " + std::to_string(workers) + " workers");
    }
  }
  const auto verdicts = batch.verdicts();
  ASSERT_EQ(verdicts.size(), names.size());
  for (size_t i = 0; i < names.size(); ++i) EXPECT_EQ(verdicts[i], "accepted") << names[i];
  std::printf("%zu bundles of %zu tiny checkpoints\n", names.size(), models.size());
}

TEST(Bundles, OfTheRealModelsAreAccepted) {
  const auto models = folders_with(kBuild / "models", "bundle/model.pkt");
  if (models.empty()) GTEST_SKIP() << "no real model was compiled: scripts/quickstart.sh compiles one";
  TextTable table({"model", ">bytes", ">seconds"});
  for (const fs::path& model : models) {
    const std::string bytes = file_bytes(model / "bundle/model.pkt");
    VerifierBatch batch;
    batch.add(std::as_bytes(std::span(bytes)));
    const auto start = std::chrono::steady_clock::now();
    const auto verdicts = batch.verdicts();
    const std::chrono::duration<double> seconds = std::chrono::steady_clock::now() - start;
    ASSERT_EQ(verdicts.size(), 1u);
    EXPECT_EQ(verdicts[0], "accepted") << model;
    table.add_row(
        {model.filename().string(), std::to_string(bytes.size()), fmt::format("{:.2f}", seconds.count())});
  }
  std::printf("%s", table.to_string().c_str());
}

}  // namespace
}  // namespace plow
