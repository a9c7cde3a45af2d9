#include "plowrt/bench_startup.h"

#include "base/text_table.h"
#include "console/bundle_dir.h"
#include "plowrt/bench_serve.h"
#include "plowrt/child_server.h"
#include "plowrt/page_cache.h"

#include <boost/json.hpp>
#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <filesystem>
#include <utility>

namespace plow {
namespace {

namespace fs = std::filesystem;
namespace json = boost::json;
using Clock = std::chrono::steady_clock;

// A start is cold when no more than this share of the bundle is in memory: the system may read ahead while
// the rest is forgotten.
constexpr double kMostLeft = 0.01;

// Short ones, so that a prompt's own length does not hide what a first answer costs.
ServeLoad load_of(const StartupBench& bench, uint16_t port) {
  ServeLoad load;
  load.port = port;
  load.requests = bench.requests;
  load.prompt_words = 8;
  load.max_tokens = 8;
  return load;
}

struct BundleFiles {
  std::vector<fs::path> files;
  uint64_t bytes = 0;
};

Result<BundleFiles> files_of(const std::string& bundle) {
  PLOW_TRY_STATUS(check_bundle_dir(bundle));
  BundleFiles found;
  std::error_code failed;
  for (const auto& entry : fs::directory_iterator(bundle, failed)) {
    if (!entry.is_regular_file()) continue;
    found.files.push_back(entry.path());
    found.bytes += entry.file_size();
  }
  if (failed) return input_error(fmt::format("{}: {}.", bundle, failed.message()));
  return found;
}

Status bring_in(const BundleFiles& bundle) {
  for (const fs::path& file : bundle.files) PLOW_TRY_STATUS(read_into_memory(file));
  return {};
}

Status push_out(const BundleFiles& bundle) {
  double left = 0;
  for (const fs::path& file : bundle.files) {
    PLOW_TRY_STATUS(ask_to_forget(file));
    PLOW_TRY(const double share, share_in_memory(file));
    left += share * static_cast<double>(fs::file_size(file));
  }
  left /= static_cast<double>(std::max<uint64_t>(1, bundle.bytes));
  if (left <= kMostLeft) return {};
  return device_error(fmt::format(
      "{:.0f}% of the bundle stay in memory: another process uses it, or it lies on a file system "
      "in memory. End that process, move the bundle to a disk, or ask for --warm-only.",
      left * 100));
}

Result<StartupRun> start_once(const StartupBench& bench) {
  StartupRun run;
  const auto begin = Clock::now();
  PLOW_TRY(ChildServer server, ChildServer::start(bench.bundle));
  run.ready = std::chrono::duration<double>(Clock::now() - begin).count();
  const ServeLoad load = load_of(bench, server.port());
  for (const std::string& prompt : unique_prompts(load)) {
    ServedRequest request;
    ask_server(load, prompt, begin, request);
    if (!request.error.empty()) return device_error("a request failed: " + request.error);
    if (run.to_tokens.empty()) run.first_token = request.first_token;
    run.to_tokens.push_back(request.first_token - request.sent);
  }
  PLOW_TRY_STATUS(server.stop());
  return run;
}

using Titled = std::vector<std::pair<std::string, StartupFigure>>;  // in the order in which they are printed

Titled figures_of(const std::vector<StartupRun>& runs) {
  const auto figure = [&](const auto& value) {
    std::vector<double> values;
    for (const StartupRun& run : runs) values.push_back(value(run));
    return startup_figure(std::move(values));
  };
  const size_t last = runs.front().to_tokens.size() - 1;
  return {{"start to ready", figure([](const StartupRun& run) { return run.ready; })},
          {"start to first token", figure([](const StartupRun& run) { return run.first_token; })},
          {"request 1 to its first token", figure([](const StartupRun& run) { return run.to_tokens[0]; })},
          {fmt::format("request {} to its first token", last + 1),
           figure([last](const StartupRun& run) { return run.to_tokens[last]; })}};
}

json::object as_json(const std::vector<StartupRun>& runs) {
  static constexpr const char* kKeys[] = {"ready", "first_token", "first_request", "last_request"};
  json::object out;
  const Titled figures = figures_of(runs);
  for (size_t i = 0; i < figures.size(); ++i) {
    const StartupFigure& f = figures[i].second;
    out[kKeys[i]] = {{"median_ms", f.median * 1e3}, {"least_ms", f.least * 1e3}, {"most_ms", f.most * 1e3}};
  }
  return out;
}

void print_figures(const StartupBench& bench, uint64_t bytes, const std::vector<StartupRun>& warm,
                   const std::vector<StartupRun>& cold) {
  if (bench.json) {
    json::object out{{"bench", "startup"},
                     {"bundle_bytes", bytes},
                     {"runs", bench.runs},
                     {"requests", bench.requests},
                     {"in_memory", as_json(warm)}};
    if (!cold.empty()) out["on_disk"] = as_json(cold);
    fmt::print("{}\n", json::serialize(out));
    return;
  }
  fmt::print("{} starts each, {} requests each, a bundle of {}\n\n", bench.runs, bench.requests,
             format_bytes(static_cast<double>(bytes)));
  TextTable table({"the bundle is", "milliseconds", ">median", ">least", ">most"});
  for (const auto& [title, runs] : {std::pair("in memory", &warm), {"on the disk", &cold}}) {
    if (runs->empty()) continue;
    for (const auto& [name, f] : figures_of(*runs))
      table.add_row({title, name, fmt::format("{:.1f}", f.median * 1e3), fmt::format("{:.1f}", f.least * 1e3),
                     fmt::format("{:.1f}", f.most * 1e3)});
  }
  fmt::print("{}", table.to_string());
}

}  // namespace

StartupFigure startup_figure(std::vector<double> values) {
  const auto [least, most] = std::ranges::minmax(values);
  return {percentile(std::move(values), 0.5), least, most};
}

Status bench_startup(const StartupBench& bench) {
  PLOW_TRY(const BundleFiles bundle, files_of(bench.bundle));
  std::vector<StartupRun> warm, cold;
  for (uint32_t i = 0; i < bench.runs; ++i) {  // in turn: what slows the machine for a while slows both
    PLOW_TRY_STATUS(bring_in(bundle));
    PLOW_TRY(StartupRun run, start_once(bench));
    warm.push_back(std::move(run));
    if (bench.warm_only) continue;
    PLOW_TRY_STATUS(push_out(bundle));
    PLOW_TRY(run, start_once(bench));
    cold.push_back(std::move(run));
  }
  print_figures(bench, bundle.bytes, warm, cold);
  return {};
}

}  // namespace plow
