#include "plowrt/bench_command.h"

#include "base/text_table.h"
#include "bundle/predictions.h"
#include "console/bundle_dir.h"
#include "console/host.h"
#include "plowrt/bandwidth.h"
#include "plowrt/step_work.h"

#include <boost/json.hpp>
#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <optional>
#include <vector>

namespace plow {

namespace {

namespace json = boost::json;
using Clock = std::chrono::steady_clock;

// Repeats of the same work on a quiet machine differ by a few per cent; a quarter means that something else
// ran.
constexpr double kMostSpread = 0.25;

double seconds_since(Clock::time_point begin) {
  return std::chrono::duration<double>(Clock::now() - begin).count();
}

struct Repeat {
  double seconds = 0;
  std::vector<uint32_t> tokens;  // that were picked: the same in every repeat, or something is wrong
};

struct Measured {
  double median_seconds = 0, best_seconds = 0;
  double spread = 0;  // (longest - shortest) / median
};

// Refuses repeats whose figures mean nothing.
Result<Measured> judge(const std::vector<Repeat>& repeats) {
  std::vector<double> seconds;
  for (const Repeat& repeat : repeats) {
    if (repeat.tokens != repeats.front().tokens) {
      return verification_error(
          "the repeats gave different tokens, so no figure is printed. This is a fault of plow; please "
          "report it with the bundle's build record.");
    }
    seconds.push_back(repeat.seconds);
  }
  std::sort(seconds.begin(), seconds.end());
  Measured measured;
  measured.median_seconds = seconds[seconds.size() / 2];
  measured.best_seconds = seconds.front();
  measured.spread = (seconds.back() - seconds.front()) / measured.median_seconds;
  if (measured.spread <= kMostSpread) return measured;
  return device_error(
      fmt::format("the repeats took from {} to {}, a spread of {:.0f}% (at most {:.0f}% is allowed): "
                  "something else uses this "
                  "machine. No figure is printed; run it again when the machine is quiet.",
                  format_ns(seconds.front() * 1e9), format_ns(seconds.back() * 1e9), measured.spread * 100,
                  kMostSpread * 100));
}

// Ids spread over the vocabulary; what they mean does not matter, only that they are the same in every run.
std::vector<uint32_t> filler_tokens(uint32_t count, uint32_t vocab, uint32_t sequence) {
  std::vector<uint32_t> tokens;
  for (uint32_t i = 0; i < count; ++i)
    tokens.push_back(static_cast<uint32_t>((uint64_t{i} * 7919 + sequence * 104729 + 17) % vocab));
  return tokens;
}

// Tokens of one sequence, in chunks; the last row picks one when `sample`.
Result<std::vector<uint32_t>> feed(Engine& engine, uint32_t slot, std::span<const uint32_t> tokens,
                                   bool sample) {
  std::vector<uint32_t> picked;
  while (!tokens.empty()) {
    const auto chunk = tokens.first(std::min<size_t>(tokens.size(), engine.max_rows()));
    tokens = tokens.subspan(chunk.size());
    const auto last = static_cast<uint32_t>(chunk.size() - 1);
    StepRequest request{slot, chunk, {}, greedy_sampling()};
    if (sample && tokens.empty()) request.sample_at = std::span(&last, 1);
    PLOW_TRY(const StepResult result, engine.step(std::span(&request, 1)));
    for (const StepToken& token : result.tokens) picked.push_back(token.token);
  }
  return picked;
}

struct DecodeRun {
  Repeat repeat;
  uint32_t program = 0;
};

// Brings every slot to its first `context` tokens, and computes them again when a window has let some of them
// go.
Status restore(Engine& engine, std::vector<uint32_t>& slots, uint32_t context) {
  for (uint32_t i = 0; i < slots.size(); ++i) {
    if (engine.position(slots[i]) >= context && engine.rewind(slots[i], context).ok()) continue;
    engine.close_slot(slots[i]);
    PLOW_TRY(slots[i], engine.open_slot());
    PLOW_TRY(const auto picked, feed(engine, slots[i], filler_tokens(context, engine.vocab(), i), false));
  }
  return {};
}

// `steps` steps of one token for each slot, from `context` on.
Result<DecodeRun> decode_once(Engine& engine, std::vector<uint32_t>& slots, const BenchOptions& options) {
  std::vector<uint32_t> next(slots.size(), 1);  // the first token is any
  PLOW_TRY_STATUS(restore(engine, slots, options.context));
  const uint32_t row = 0;
  DecodeRun run;
  const auto begin = Clock::now();
  for (uint32_t step = 0; step < options.steps; ++step) {
    std::vector<StepRequest> requests;
    for (size_t i = 0; i < slots.size(); ++i)
      requests.push_back({slots[i], std::span(&next[i], 1), std::span(&row, 1), greedy_sampling()});
    PLOW_TRY(const StepResult result, engine.step(requests));
    run.program = result.program;
    for (const StepToken& token : result.tokens) {
      if (!std::isfinite(token.logprob))
        return verification_error("a step gave a probability that is not a number, so no figure is printed.");
      next[token.request] = token.token;
      run.repeat.tokens.push_back(token.token);
    }
  }
  run.repeat.seconds = seconds_since(begin);
  return run;
}

// The read bandwidth, unless others held the cores meanwhile: a thread's own time counts what it waits for
// memory but not what it waits for a core, so on a quiet machine both clocks tell the same rate.
Result<ReadBandwidth> bandwidth_here(Engine& engine) {
  PLOW_TRY(const double of_device, engine.read_bandwidth());
  if (of_device > 0) return ReadBandwidth{of_device, of_device, of_device / engine.n_workers()};
  PLOW_TRY(const ReadBandwidth measured,
           measure_read_bandwidth(engine.n_workers(), read_host_facts().memory_available));
  const double undisturbed = measured.own_core * engine.n_workers();
  if (measured.median >= (1 - kMostSpread) * undisturbed) return measured;
  return device_error(fmt::format(
      "the cores read {}/s by the clock and {}/s by their own time: something else uses this machine, so the "
      "floor would be wrong. No figure is printed; run it again when the machine is quiet.",
      format_bytes(measured.median), format_bytes(undisturbed)));
}

// The predicted seconds of steps that follow each other: the k-th of `n_steps` has `rows(k)` rows after
// `context(k)` positions. Nothing when the bundle carries no predictions of such steps.
template <class Step>
Result<std::optional<double>> predicted_seconds(const Engine& engine, uint32_t n_steps, const Step& step) {
  PLOW_TRY(const auto grids, predictions_of(engine.bundle().build_record()));
  double total = 0;
  for (uint32_t k = 0; k < n_steps; ++k) {
    const auto ns = predicted_ns(grids, step(k));
    if (!ns) return std::optional<double>();
    total += *ns * 1e-9;
  }
  return std::optional<double>(total);
}

// The program that a step of so many rows runs, as the engine chooses it.
uint32_t program_of(const Engine& engine, uint32_t rows) {
  const auto programs = engine.bundle().programs();
  const auto fits = std::find_if(programs.begin(), programs.end(),
                                 [&](const ProgramView& program) { return rows <= program.entry->max_rows; });
  return static_cast<uint32_t>(fits - programs.begin());
}

std::string predicted_text(const std::optional<double>& predicted, double measured) {
  if (!predicted) return "the bundle carries no prediction of such steps";
  return fmt::format("{:.3f} ms by the cost model; measured is {:+.1f}% of it", *predicted * 1e3,
                     (measured / *predicted - 1) * 100);
}

json::value predicted_json(const std::optional<double>& predicted) {
  return predicted ? json::value(*predicted * 1e3) : json::value(nullptr);
}

void print_row(const char* what, const std::string& value) { fmt::print("  {:<22} {}\n", what, value); }

Status check_context(const Engine& engine, uint64_t positions) {
  if (positions <= engine.context()) return {};
  return does_not_fit(fmt::format(
      "{} positions are needed and the bundle's context is {}. Ask for less with --ctx or --steps.",
      positions, engine.context()));
}

Result<Engine> load_engine(const BenchOptions& options) {
  PLOW_TRY_STATUS(check_bundle_dir(options.bundle));
  return Engine::load(options.bundle, options.engine);
}

// What ran: the level of a CPU's instructions, or the GPU's name.
std::string instructions(const Engine& engine) {
  return engine.device_name() == "cpu" ? isa_level_name(engine.isa_level()) : engine.device_name();
}

struct DecodeFigures {
  Measured measured;
  ReadBandwidth bandwidth;
  double step_seconds = 0, bytes = 0, floor_seconds = 0;
  std::optional<double> predicted_seconds;
};

void print_decode(const Engine& engine, const BenchOptions& options, const DecodeFigures& f) {
  const std::string name = model_names(engine.bundle(), options.bundle).served_name;
  const double used = f.bytes / f.step_seconds / f.bandwidth.median;
  const double tokens_per_second = options.rows / f.step_seconds;
  if (options.json) {
    const json::object out{{"bench", "decode"},
                           {"model", name},
                           {"isa", instructions(engine)},
                           {"workers", engine.n_workers()},
                           {"rows", options.rows},
                           {"context", options.context},
                           {"steps", options.steps},
                           {"repeat", options.repeat},
                           {"tokens_per_second", tokens_per_second},
                           {"step_ms", f.step_seconds * 1e3},
                           {"spread", f.measured.spread},
                           {"bytes_per_step", f.bytes},
                           {"read_bandwidth", f.bandwidth.median},
                           {"floor_ms", f.floor_seconds * 1e3},
                           {"multiple_of_floor", f.step_seconds / f.floor_seconds},
                           {"share_of_bandwidth", used},
                           {"predicted_ms", predicted_json(f.predicted_seconds)},
                           {"best_ms", f.measured.best_seconds / options.steps * 1e3}};
    fmt::print("{}\n", json::serialize(out));
    return;
  }
  fmt::print("decode of {} ({}, {} workers): {} sequence(s), from {} tokens on, {} steps, {} repeats\n", name,
             instructions(engine), engine.n_workers(), options.rows, options.context, options.steps,
             options.repeat);
  print_row("tokens a second", fmt::format("{:.1f}", tokens_per_second));
  print_row("a step",
            fmt::format("{:.3f} ms (median; spread {:.1f}%)", f.step_seconds * 1e3, f.measured.spread * 100));
  print_row("reads", fmt::format("{} a step", format_bytes(f.bytes)));
  print_row("read bandwidth", fmt::format("{}/s (median of this run, {} threads)",
                                          format_bytes(f.bandwidth.median), engine.n_workers()));
  print_row("floor", fmt::format("{:.3f} ms: bytes over bandwidth", f.floor_seconds * 1e3));
  print_row("multiple of the floor",
            fmt::format("{:.2f}, or {:.1f}% of the bandwidth", f.step_seconds / f.floor_seconds, used * 100));
  print_row("predicted", predicted_text(f.predicted_seconds, f.step_seconds));
}

struct PrefillFigures {
  Measured measured;
  ReadBandwidth bandwidth;
  double flops = 0, floor_seconds = 0;
  std::optional<double> predicted_seconds;
};

void print_prefill(const Engine& engine, const BenchOptions& options, const PrefillFigures& f) {
  const std::string name = model_names(engine.bundle(), options.bundle).served_name;
  const double seconds = f.measured.median_seconds;
  const double tokens_per_second = options.context / seconds;
  if (options.json) {
    const json::object out{{"bench", "prefill"},
                           {"model", name},
                           {"isa", instructions(engine)},
                           {"workers", engine.n_workers()},
                           {"tokens", options.context},
                           {"chunk", engine.max_rows()},
                           {"repeat", options.repeat},
                           {"tokens_per_second", tokens_per_second},
                           {"prompt_ms", seconds * 1e3},
                           {"spread", f.measured.spread},
                           {"gflop_per_second", f.flops / seconds * 1e-9},
                           {"read_bandwidth", f.bandwidth.median},
                           {"floor_ms", f.floor_seconds * 1e3},
                           {"multiple_of_floor", seconds / f.floor_seconds},
                           {"predicted_ms", predicted_json(f.predicted_seconds)},
                           {"best_ms", f.measured.best_seconds * 1e3}};
    fmt::print("{}\n", json::serialize(out));
    return;
  }
  fmt::print("prefill of {} ({}, {} workers): {} tokens in chunks of up to {}, {} repeats\n", name,
             instructions(engine), engine.n_workers(), options.context, engine.max_rows(), options.repeat);
  print_row("tokens a second", fmt::format("{:.1f}", tokens_per_second));
  print_row("the prompt",
            fmt::format("{:.3f} ms (median; spread {:.1f}%)", seconds * 1e3, f.measured.spread * 100));
  print_row("matrix products", fmt::format("{:.1f} GFLOP/s", f.flops / seconds * 1e-9));
  print_row("read bandwidth", fmt::format("{}/s (median of this run, {} threads)",
                                          format_bytes(f.bandwidth.median), engine.n_workers()));
  print_row("floor of the reads", fmt::format("{:.3f} ms: the weights once a chunk", f.floor_seconds * 1e3));
  print_row("multiple of that floor", fmt::format("{:.2f}", seconds / f.floor_seconds));
  print_row("predicted", predicted_text(f.predicted_seconds, seconds));
}

}  // namespace

Status bench_decode(const BenchOptions& options) {
  PLOW_TRY(Engine engine, load_engine(options));
  PLOW_TRY_STATUS(check_context(engine, uint64_t{options.context} + options.steps));
  std::vector<uint32_t> slots;
  for (uint32_t i = 0; i < options.rows; ++i) {
    PLOW_TRY(const uint32_t slot, engine.open_slot());
    slots.push_back(slot);
  }
  PLOW_TRY(DecodeRun run, decode_once(engine, slots, options));  // warms caches up; not counted
  DecodeFigures figures;
  PLOW_TRY(figures.bandwidth, bandwidth_here(engine));
  std::vector<Repeat> repeats;
  for (uint32_t i = 0; i < options.repeat; ++i) {
    PLOW_TRY(run, decode_once(engine, slots, options));
    repeats.push_back(std::move(run.repeat));
  }
  PLOW_TRY(figures.measured, judge(repeats));
  const ProgramView& program = engine.bundle().programs()[run.program];
  const uint32_t middle = options.context + options.steps / 2;
  figures.step_seconds = figures.measured.median_seconds / options.steps;
  figures.bytes = step_work(program).weight_bytes + options.rows * kv_bytes_read(engine.bundle(), middle);
  figures.floor_seconds = figures.bytes / figures.bandwidth.median;
  PLOW_TRY(figures.predicted_seconds, predicted_seconds(engine, options.steps, [&](uint32_t k) {
             return PredictedStep{run.program, double{1} * options.rows, double{1} * options.context + k,
                                  false, true};
           }));
  if (figures.predicted_seconds) *figures.predicted_seconds /= options.steps;
  print_decode(engine, options, figures);
  return {};
}

Status bench_prefill(const BenchOptions& options) {
  PLOW_TRY(Engine engine, load_engine(options));
  PLOW_TRY_STATUS(check_context(engine, options.context));
  PLOW_TRY(const uint32_t slot, engine.open_slot());
  const std::vector<uint32_t> tokens = filler_tokens(options.context, engine.vocab(), 0);
  PrefillFigures figures;
  PLOW_TRY(auto warm, feed(engine, slot, tokens, true));
  PLOW_TRY(figures.bandwidth, bandwidth_here(engine));
  std::vector<Repeat> repeats;
  for (uint32_t i = 0; i < options.repeat; ++i) {
    PLOW_TRY_STATUS(engine.rewind(slot, 0));
    Repeat repeat;
    const auto begin = Clock::now();
    PLOW_TRY(repeat.tokens, feed(engine, slot, tokens, true));
    repeat.seconds = seconds_since(begin);
    repeats.push_back(std::move(repeat));
  }
  PLOW_TRY(figures.measured, judge(repeats));
  const StepWork work = step_work(engine.bundle().programs().back());
  const double chunks = std::ceil(static_cast<double>(options.context) / engine.max_rows());
  figures.flops = work.flops_per_row * options.context + work.flops_per_sample;
  PLOW_TRY(figures.predicted_seconds,
           predicted_seconds(engine, static_cast<uint32_t>(chunks), [&](uint32_t k) {
             const uint32_t before = k * engine.max_rows(),
                            rows = std::min(engine.max_rows(), options.context - before);
             return PredictedStep{program_of(engine, rows), double{1} * rows, double{1} * before, true,
                                  before + rows == options.context};
           }));
  figures.floor_seconds = chunks * work.weight_bytes / figures.bandwidth.median;
  print_prefill(engine, options, figures);
  return {};
}

}  // namespace plow
