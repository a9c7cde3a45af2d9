// Predicted beside measured, for the steps that the cost model is judged by:
//
//     predicted_bench SECONDS BUNDLE...
//
// runs, for each bundle, decode steps of 1, 4 and 16 sequences after 128 tokens and chunks of a prompt of 128
// and of 1,024 tokens, each for so many seconds, and prints a table in Markdown. Measured is the fastest step
// by the wall clock: what else runs on the machine can only make a step longer. Beside it is the median of
// the fastest quarter, which tells how far to trust the fastest.
#include "bundle/predictions.h"
#include "tune/race.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>

namespace plow {
namespace {

struct BenchCase {
  const char* name;
  std::vector<RaceWork> works;  // whose times are added up
};

const BenchCase kCases[] = {{"decode, 1 row", {{1, false, 128}}},
                            {"decode, 4 rows", {{4, false, 128}}},
                            {"decode, 16 rows", {{16, false, 128}}},
                            {"prefill, 128 rows", {{128, true, 0}}},
                            {"prefill, 1,024 rows", {{512, true, 0}, {512, true, 512}}}};

Result<double> predicted_of(const Engine& engine, const RaceWork& work) {
  PLOW_TRY(const auto grids, predictions_of(engine.bundle().build_record()));
  const auto programs = engine.bundle().programs();
  const auto fits = std::find_if(programs.begin(), programs.end(),
                                 [&](const ProgramView& p) { return work.rows <= p.entry->max_rows; });
  const auto ns = predicted_ns(grids, {static_cast<uint32_t>(fits - programs.begin()), double{1} * work.rows,
                                       double{1} * work.context, work.one_sequence, true});
  if (!ns) return input_error("the bundle carries no prediction of such a step");
  return *ns;
}

// All cases are gone through so many times: what shares the machine, or its host, may slow everything for
// seconds.
constexpr int kRounds = 3;

// Runs a work for so long and appends the times of its steps.
Status run_work(Engine& engine, const RaceWork& work, double seconds, std::vector<double>& times) {
  using Clock = std::chrono::steady_clock;
  PLOW_TRY(Racer racer, Racer::create(engine, work));
  const auto end = Clock::now() + std::chrono::duration<double>(seconds);
  for (int i = 0; i < 2 || Clock::now() < end; ++i) {
    PLOW_TRY(const double ns, racer.run());
    times.push_back(ns);
  }
  racer.finish();
  return {};
}

Status run_bundle(const std::string& path, double seconds) {
  EngineOptions options;
  options.slots = 16;
  PLOW_TRY(Engine engine, Engine::load(path, options));
  std::vector<std::vector<std::vector<double>>> times(std::size(kCases));  // by case and work
  for (int round = 0; round < kRounds; ++round) {
    for (size_t c = 0; c < times.size(); ++c) {
      const std::vector<RaceWork>& works = kCases[c].works;
      times[c].resize(works.size());
      for (size_t w = 0; w < works.size(); ++w)
        PLOW_TRY_STATUS(
            run_work(engine, works[w], seconds / kRounds / static_cast<double>(works.size()), times[c][w]));
    }
  }
  for (size_t c = 0; c < times.size(); ++c) {
    double predicted = 0, best = 0, quarter = 0;
    size_t count = 0;
    for (size_t w = 0; w < times[c].size(); ++w) {
      PLOW_TRY(const double ns, predicted_of(engine, kCases[c].works[w]));
      predicted += ns;
      best += *std::min_element(times[c][w].begin(), times[c][w].end());
      quarter += summarise_times(times[c][w]).ns;
      count += times[c][w].size();
    }
    fmt::print("| {} | {} | {:.2f} | {:.2f} | {:.2f} | {:.2f} | {} |\n", path.substr(path.rfind('/') + 1),
               kCases[c].name, predicted / 1e6, best / 1e6, best / predicted, quarter / 1e6, count);
    std::fflush(stdout);
  }
  return {};
}

}  // namespace
}  // namespace plow

int main(int argc, char** argv) {
  if (argc < 3) {
    fmt::print(stderr, "usage: predicted_bench SECONDS BUNDLE...\n");
    return 2;
  }
  fmt::print(
      "| model | step | predicted ms | fastest ms | fastest / predicted | fastest quarter ms | steps "
      "|\n|---|---|---|---|---|---|---|\n");
  for (int i = 2; i < argc; ++i) {
    if (plow::Status status = plow::run_bundle(argv[i], std::atof(argv[1])); !status.ok()) {
      fmt::print(stderr, "predicted_bench: {}: {}\n", argv[i], status.error().message);
      return 1;
    }
  }
  return 0;
}
