// The same checkpoint gives the same bytes, whenever and from wherever it is compiled.

#include <gtest/gtest.h>

#include <filesystem>
#include <map>

#include "base/mapped_file.h"
#include "harness.h"

namespace plow {
namespace {

namespace fs = std::filesystem;

const fs::path kTiny = fs::path(PLOW_SOURCE_DIR) / "build/fixtures/tiny";

std::map<std::string, std::string> files_of(const fs::path& folder) {
  std::map<std::string, std::string> files;
  for (const auto& entry : fs::directory_iterator(folder)) {
    files[entry.path().filename().string()] = read_text_file(entry.path()).value();
  }
  return files;
}

CompileOptions options_for(const fs::path& checkpoint) {
  CompileOptions options;
  options.checkpoint = checkpoint;
  options.max_context = 128;
  options.n_workers = 2;
  return options;
}

TEST(Reproducible, TwiceAndFromTwoFolders) {
  for (const char* name : {"llama", "gemma3", "llama-sharded"}) {
    const TestBundle first(options_for(kTiny / name)), second(options_for(kTiny / name));
    const auto files = files_of(first.path());
    EXPECT_GE(files.size(), 6u);
    EXPECT_EQ(files, files_of(second.path())) << name;

    const fs::path elsewhere = first.path().parent_path() / "copy with spaces" / "another-name";
    fs::create_directories(elsewhere.parent_path());
    fs::copy(kTiny / name, elsewhere);
    EXPECT_EQ(files, files_of(TestBundle(options_for(elsewhere)).path())) << name;
  }
}

TEST(Reproducible, AnotherOptionGivesOtherBytes) {
  CompileOptions options = options_for(kTiny / "llama");
  const TestBundle first(options);
  options.max_context = 64;
  const TestBundle second(options);
  EXPECT_NE(files_of(first.path()).at("model.pkt"), files_of(second.path()).at("model.pkt"));
  EXPECT_EQ(files_of(first.path()).at("weights.tape"), files_of(second.path()).at("weights.tape"));
}

// The tape of a graph does not depend on the number of workers. (Which graph is best does: with one worker
// nothing waits, so the rewriter folds less.)
TEST(Reproducible, ATapeIsTheSameForAnyNumberOfWorkers) {
  std::string tape;
  for (const uint32_t workers : {1u, 2u, 5u}) {
    CompileOptions options = options_for(kTiny / "gemma3");
    options.n_workers = workers;
    options.rewrite = false;
    const auto files = files_of(TestBundle(options).path());
    if (tape.empty()) tape = files.at("weights.tape");
    EXPECT_TRUE(tape == files.at("weights.tape")) << workers << " workers";
  }
}

TEST(Reproducible, StagesFromTheBundleAlone) {
  for (const uint32_t workers : {1u, 2u, 5u}) {
    CompileOptions options = options_for(kTiny / "gemma3");
    options.n_workers = workers;
    const TestBundle bundle(options);
    const auto opened = BundleFile::open(bundle.path() / "model.pkt");
    ASSERT_TRUE(opened.ok()) << opened.error().message;
    const auto stages = derive_stages(*opened);
    EXPECT_TRUE(stages.ok()) << stages.error().message;
  }
}

}  // namespace
}  // namespace plow
