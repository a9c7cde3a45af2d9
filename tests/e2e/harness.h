// Compiles a checkpoint and drives the engine as the references were made.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "base/testing/temp_dir.h"
#include "compile/pipeline.h"
#include "golden.h"
#include "runtime/engine.h"

namespace plow {

// A bundle in a temporary directory of its own.
class TestBundle {
 public:
  // Throws std::runtime_error with the compiler's message: the tests that use it cannot go on.
  explicit TestBundle(CompileOptions options);

  const std::filesystem::path& path() const { return path_; }
  Engine engine(IsaLevel isa = IsaLevel::kAuto) const;

 private:
  TempDir folder_;
  std::filesystem::path path_;
};

// Bundles of one test program that several of its tests use, by a name that says the options that differ.
using SharedBundles = std::map<std::string, TestBundle>;

// That of `name`, which is compiled when it is asked for first.
const TestBundle& shared_bundle(SharedBundles& bundles, const std::string& name, const CompileOptions& options);

// Logits of one sequence by position.
using LogitsByPosition = std::map<uint32_t, std::vector<float>>;

// Feeds each prompt's sequence up to its last reference position, `chunk` tokens a step at most, all prompts side by side, and returns the
// logits at the references' positions.
std::vector<LogitsByPosition> teacher_forced(Engine& engine, const std::vector<const GoldenPrompt*>& prompts, uint32_t chunk);

// The largest difference from the reference.
double worst_error(const GoldenPrompt& prompt, const LogitsByPosition& logits);

// A greedy answer where it differs from the reference's.
struct Divergence {
  size_t prompt = 0;
  size_t token = 0;     // of the answer
  double margin = 0;    // of the reference there
};

struct GreedyOutcome {
  size_t tokens = 0;                    // compared
  std::vector<Divergence> divergences;  // after one, the reference's token is fed, so that all later ones still count
};

// Answers all prompts side by side, `chunk` prompt tokens a step at most.
GreedyOutcome greedy_outcome(Engine& engine, const std::vector<GoldenPrompt>& prompts, uint32_t chunk);

}  // namespace plow
