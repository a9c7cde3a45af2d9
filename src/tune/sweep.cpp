#include "tune/sweep.h"

#include "compile/pipeline.h"
#include "schedule/predict.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cstring>
#include <memory>
#include <optional>

namespace plow {

namespace {

using Clock = std::chrono::steady_clock;

// Sequences that decode side by side in a race, and rows of a chunk.
constexpr uint32_t kDecodeRows = 4;
constexpr uint32_t kPrefillRows = 192;
constexpr uint32_t kContext = 128;
// A candidate that the cost model finds so much slower is not timed: the model is not so wrong.
constexpr double kHopeless = 1.25;
// Of the time, for the candidates; what is left is for all winners together.
constexpr double kTrialShare = 0.85;

// A bundle that was planned in another way, and what runs it.
struct Variant {
  Plan plan;
  std::vector<ProgramStages> programs;
  std::optional<Engine> engine;
  std::vector<Racer> decode, prefill;
};

bool same_program(const ProgramStages& a, const ProgramStages& b) {
  const ProgramTables &x = a.tables, &y = b.tables;
  const auto same = [](const auto& p, const auto& q) {
    return p.size() == q.size() &&
           (p.empty() || std::memcmp(p.data(), q.data(), p.size() * sizeof(p[0])) == 0);
  };
  return x.entry.token_row_tile == y.entry.token_row_tile && same(x.packets, y.packets) &&
         same(x.waits, y.waits) && same(x.signals, y.signals);
}

class Sweeper {
 public:
  Sweeper(const SweepOptions& options, TuneSink& sink) : options_(options), sink_(sink) {}

  Result<SweepResult> run() {
    const auto begin = Clock::now();
    PLOW_TRY(bundle_, BundleFile::open(options_.bundle / "model.pkt"));
    PLOW_TRY(tape_, MappedFile::open(options_.bundle / "weights.tape"));
    PLOW_TRY(graph_, parse_graph(bundle_.graph_text()));
    PLOW_TRY_STATUS(verify_graph(graph_));
    Plan plan{options_.part, settings_for(graph_, options_.settings)};
    const Plan first_plan = plan;
    PLOW_TRY(auto incumbent, make(plan));
    PLOW_TRY_STATUS(start(*incumbent));
    if (options_.decode) {
      PLOW_TRY(decode_logits_, incumbent->decode[0].logits());
    }
    if (options_.prefill) {
      PLOW_TRY(prefill_logits_, incumbent->prefill[0].logits());
    }

    PLOW_TRY(const std::vector<Trial> trials, rank_candidates(*incumbent));
    const auto timed =
        std::count_if(trials.begin(), trials.end(), [](const Trial& t) { return t.note.empty(); });
    const double seconds = options_.seconds / static_cast<double>(timed + 4);
    for (size_t i = 0; i < trials.size(); ++i) {
      sink_.progress("candidates", i, trials.size());
      if (sink_.cancelled())
        return input_error("the sweep was interrupted; what was found so far is not stored");
      Trial trial = trials[i];
      if (trial.note.empty() &&
          Clock::now() > begin + kTrialShare * std::chrono::duration<double>(options_.seconds))
        trial.note = "no time left";
      if (trial.note.empty()) {
        PLOW_TRY(trial, try_candidate(trial.setting, incumbent, seconds));
      }
      if (trial.won) {
        std::erase_if(result_.winners,
                      [&](const Trial& old) { return same_place(old.setting, trial.setting); });
        result_.winners.push_back(trial);
      }
      result_.trials.push_back(std::move(trial));
    }
    if (!result_.winners.empty() && !sink_.cancelled()) PLOW_TRY_STATUS(final_race(first_plan, *incumbent));
    return std::move(result_);
  }

 private:
  static bool same_place(const TunedSetting& a, const TunedSetting& b) {
    return a.many_rows == b.many_rows && a.op == b.op && a.inputs == b.inputs && a.outputs == b.outputs;
  }

  // The plan's programs, without an engine yet.
  Result<std::unique_ptr<Variant>> make(const Plan& plan) const {
    auto variant = std::make_unique<Variant>();
    variant->plan = plan;
    PLOW_TRY(variant->programs,
             build_programs(graph_, bundle_.header().n_workers, bundle_.programs().back().entry->max_rows,
                            bundle_.header().max_slots, plan));
    return variant;
  }

  Status start(Variant& variant) const {
    BundleTables tables = tables_of(bundle_);
    tables.programs.clear();
    for (const ProgramStages& program : variant.programs) tables.programs.push_back(program.tables);
    tables.header.scratch_bytes = static_cast<uint32_t>(scratch_bytes(variant.programs, tables.header.isa));
    PLOW_TRY(BundleFile file, BundleFile::from_bytes(serialise_bundle(tables)));
    EngineOptions engine;
    engine.isa = options_.level;
    engine.pin = true;  // two workers on one processor would measure the scheduler
    engine.slots = std::min(bundle_.header().max_slots, kDecodeRows + 2);
    engine.context = std::min(bundle_.header().max_context, kContext + kPrefillRows);
    PLOW_TRY(variant.engine, Engine::create(std::move(file), tape_.bytes(), engine));
    const auto add_racer = [&](std::vector<Racer>& racers, const RaceWork& work) -> Status {
      PLOW_TRY(Racer racer, Racer::create(*variant.engine, work));
      racers.push_back(std::move(racer));
      return {};
    };
    if (options_.decode) {
      const uint32_t context = std::min(kContext, engine.context / 2);
      const uint32_t rows = std::min(kDecodeRows, engine.slots > 2 ? engine.slots - 2 : 1);
      PLOW_TRY_STATUS(add_racer(variant.decode, {1, false, context}));
      if (rows > 1) PLOW_TRY_STATUS(add_racer(variant.decode, {rows, false, context}));
    }
    if (options_.prefill) {
      const uint32_t rows = std::min({kPrefillRows, variant.engine->max_rows(), engine.context});
      PLOW_TRY_STATUS(add_racer(variant.prefill, {rows, true, 0}));
    }
    return {};
  }

  // All candidates against the first incumbent, those first that the model finds best: time may run out.
  Result<std::vector<Trial>> rank_candidates(const Variant& incumbent) const {
    std::vector<Trial> trials;
    for (const TunedSetting& setting : list_candidates(incumbent.plan.settings)) {
      PLOW_TRY(const auto candidate, make(plan_with(incumbent.plan, setting)));
      trials.push_back(predict_trial(setting, incumbent, *candidate));
    }
    const auto ratio = [](const Trial& t) {
      return t.note.empty() ? t.predicted_ns / t.predicted_before_ns : kHopeless;
    };
    std::stable_sort(trials.begin(), trials.end(),
                     [&](const Trial& a, const Trial& b) { return ratio(a) < ratio(b); });
    return trials;
  }

  static Plan plan_with(Plan plan, const TunedSetting& setting) {
    std::erase_if(plan.settings, [&](const TunedSetting& old) { return same_place(old, setting); });
    plan.settings.push_back(setting);
    return plan;
  }

  // Not timed yet; with a note when it is not worth that.
  Trial predict_trial(const TunedSetting& setting, const Variant& incumbent, const Variant& candidate) const {
    Trial trial;
    trial.setting = setting;
    const size_t program = setting.many_rows ? candidate.programs.size() - 1 : 0;
    if (same_program(candidate.programs[program], incumbent.programs[program])) {
      trial.note = "the same packets";
      return trial;
    }
    trial.predicted_before_ns = predicted(incumbent, setting.many_rows);
    trial.predicted_ns = predicted(candidate, setting.many_rows);
    if (trial.predicted_ns > kHopeless * trial.predicted_before_ns)
      trial.note = "predicted to be much slower";
    return trial;
  }

  // What may be set, the whole programs first, then operators from the one with the most work on.
  std::vector<TunedSetting> list_candidates(const std::vector<TunedSetting>& used) const {
    std::vector<TunedSetting> candidates;
    const auto add = [&](const TunedSetting& setting) {
      if (std::find(used.begin(), used.end(), setting) == used.end()) candidates.push_back(setting);
    };
    if (options_.prefill) {
      for (const uint32_t row_tile : {16u, 24u, 32u, 48u, 96u, 128u, 192u, 256u})
        add({true, Op::kLeave, graph_.hidden, graph_.vocab, row_tile, Split::kAuto});
    }
    std::vector<TunedSetting> places;
    for (uint32_t n = 0; n < graph_.nodes.size(); ++n) {
      const Node& node = graph_.nodes[n];
      if (is_leaf(node.op)) continue;
      const TunedSetting place{
          false,           node.op, graph_.node(graph_.inputs_of(NodeId(n))[0]).shape.cols,
          node.shape.cols, 0,       Split::kAuto};
      if (std::find(places.begin(), places.end(), place) == places.end()) places.push_back(place);
    }
    std::stable_sort(places.begin(), places.end(), [](const TunedSetting& a, const TunedSetting& b) {
      return uint64_t{a.inputs} * a.outputs > uint64_t{b.inputs} * b.outputs;
    });
    for (TunedSetting setting : places) {
      for (const bool many : {false, true}) {
        if (!(many ? options_.prefill : options_.decode)) continue;
        setting.many_rows = many;
        for (const Split split : {Split::kColumns, Split::kRows, Split::kOne}) {
          setting.value = 0, setting.split = split;
          add(setting);
        }
        for (const uint32_t tile : {32u, 64u, 128u, 256u}) {
          setting.value = tile, setting.split = Split::kAuto;
          if (tile < setting.outputs) add(setting);
        }
      }
    }
    return candidates;
  }

  double predicted(const Variant& variant, bool many) const {
    double ns = 0;
    const ProgramStages& stages = many ? variant.programs.back() : variant.programs.front();
    const auto add = [&](const StepSize& size) {
      ns += predict_step(graph_, stages.tiles, stages.schedule, variant.plan.part, size).step.value;
    };
    if (many) {
      add({std::min<double>(kPrefillRows, stages.tiles.shape.max_rows), 1, 0, 1});
    } else {
      add({1, 1, kContext, 1});
      add({kDecodeRows, kDecodeRows, kContext, kDecodeRows});
    }
    return ns;
  }

  // `incumbent` is replaced when the candidate wins.
  Result<Trial> try_candidate(const TunedSetting& setting, std::unique_ptr<Variant>& incumbent,
                              double seconds) {
    PLOW_TRY(auto candidate, make(plan_with(incumbent->plan, setting)));
    Trial trial = predict_trial(setting, *incumbent, *candidate);
    if (!trial.note.empty()) return trial;
    PLOW_TRY_STATUS(start(*candidate));
    PLOW_TRY_STATUS(check_logits(setting, *candidate));
    PLOW_TRY(trial.race, setting.many_rows ? race(incumbent->prefill, candidate->prefill, seconds)
                                           : race(incumbent->decode, candidate->decode, seconds));
    trial.timed = true;
    trial.won = trial.race.b_wins();
    if (trial.won) incumbent = std::move(candidate);
    return trial;
  }

  // The oracle: how the work is cut must not change a bit.
  Status check_logits(const TunedSetting& setting, Variant& variant) const {
    const auto compare = [&](Racer& racer, const std::vector<float>& expected) -> Status {
      PLOW_TRY(const std::vector<float> logits, racer.logits());
      const bool same = logits.size() == expected.size() &&
                        std::memcmp(logits.data(), expected.data(), logits.size() * sizeof(float)) == 0;
      if (same) return {};
      return verification_error(fmt::format(
          "with the setting '{}' the logits have other bits than without. This is a fault of plow; "
          "please report it with the bundle's build record.",
          to_text(setting)));
    };
    if (options_.decode) PLOW_TRY_STATUS(compare(variant.decode[0], decode_logits_));
    if (options_.prefill) PLOW_TRY_STATUS(compare(variant.prefill[0], prefill_logits_));
    return {};
  }

  Status final_race(const Plan& first_plan, Variant& tuned) {
    sink_.progress("all winners together", 0, 1);
    PLOW_TRY(const auto before, make(first_plan));
    PLOW_TRY_STATUS(start(*before));
    const double seconds = options_.seconds / 20;
    if (options_.decode) {
      PLOW_TRY(result_.decode, race(before->decode, tuned.decode, seconds));
    }
    if (options_.prefill) {
      PLOW_TRY(result_.prefill, race(before->prefill, tuned.prefill, seconds));
    }
    return {};
  }

  const SweepOptions& options_;
  TuneSink& sink_;
  BundleFile bundle_;
  MappedFile tape_;
  OpGraph graph_;
  std::vector<float> decode_logits_, prefill_logits_;
  SweepResult result_;
};

}  // namespace

Result<SweepResult> sweep(const SweepOptions& options, TuneSink& sink) {
  return Sweeper(options, sink).run();
}

}  // namespace plow
