#include "plowc/compile_command.h"

#include "base/text_table.h"
#include "console/host.h"
#include "console/interrupt.h"
#include "console/progress_bar.h"
#include "console/terminal.h"

#include <boost/json.hpp>
#include <fmt/format.h>
#include <unistd.h>

#include <chrono>
#include <optional>

namespace plow {

namespace {

namespace json = boost::json;
using Clock = std::chrono::steady_clock;

double seconds_since(Clock::time_point begin) {
  return std::chrono::duration<double>(Clock::now() - begin).count();
}

std::string count_text(uint64_t count) {
  const double value = static_cast<double>(count);
  if (value >= 1e9) return fmt::format("{:.2f} billion", value / 1e9);
  if (value >= 1e6) return fmt::format("{:.1f} million", value / 1e6);
  return std::to_string(count);
}

std::string bytes_text(uint64_t bytes) { return format_bytes(static_cast<double>(bytes)); }

// Whether the memory of this machine holds the plan, and if not, with how many sequences it would. A warning,
// no error: a bundle may be meant for another machine.
std::string fit_text(const MemoryPlan& plan, uint32_t slots, uint64_t available) {
  if (plan.total() <= available) return fmt::format("fits: {} are free here", bytes_text(available));
  const uint64_t fixed = plan.total() - plan.kv;
  const uint64_t per_slot = std::max<uint64_t>(plan.kv / std::max(slots, 1u), 1);
  const uint64_t fitting = available > fixed ? (available - fixed) / per_slot : 0;
  std::string text = fmt::format("DOES NOT FIT: {} are free here", bytes_text(available));
  text += fitting > 0 ? fmt::format("; it would with --slots {} or a smaller --max-ctx", fitting)
                      : std::string("; not even one sequence would");
  return text;
}

class Reporter : public ProgressSink {
 public:
  Reporter(const CompileOptions& options, const std::string& part_note, bool as_json)
      : options_(options), part_note_(part_note), json_(as_json), bar_(stderr, Terminal::of(STDERR_FILENO)) {
    bar_.keep_lines(false);  // the stages before the summary are short; the summary comes first
  }

  void summary(const CompileSummary& summary) override {
    const uint64_t needed =
        summary.tape_bytes + (summary.tape_bytes >> 6);  // model.pkt, tokenizer: a per cent or two
    const auto disk = disk_available(options_.out);
    if (disk && *disk < needed) {
      refusal_ = does_not_fit(fmt::format(
          "the bundle needs {} and the disk of {} has {} left. Free some space or choose another --out.",
          bytes_text(needed), options_.out.string(), bytes_text(*disk)));
    }
    if (json_) {
      summary_event(summary);
    } else {
      bar_.finish();
      summary_table(summary);
      bar_.keep_lines(true);
    }
  }

  void stage(std::string_view name, uint64_t done, uint64_t total) override {
    if (!json_) {
      // The tape is the one stage that counts bytes; all others count pieces.
      bar_.update(std::string(name), done, total,
                  name == "weights" ? ProgressUnit::kBytes : ProgressUnit::kItems);
      return;
    }
    const bool ends = done == total;
    if (!ends && name == event_stage_ && seconds_since(event_at_) < 0.1)
      return;  // ten events a second are enough
    event_stage_ = name;
    event_at_ = Clock::now();
    event({{"event", "progress"}, {"stage", name}, {"done", done}, {"total", total}});
  }

  bool cancelled() const override { return refusal_.has_value() || interrupted() != 0; }

  const std::optional<Error>& refusal() const { return refusal_; }

  void failed(const Error& error) {
    bar_.clear();
    if (json_)
      event({{"event", "error"}, {"class", static_cast<int>(error.error_class)}, {"message", error.message}});
  }

  void finished(const CompileResult& result, double seconds) {
    bar_.finish();
    const std::string out = options_.out.string();
    if (json_) {
      event({{"event", "done"},
             {"out", out},
             {"digest", result.digest},
             {"packets", result.packets},
             {"model_bytes", result.model_bytes},
             {"tape_bytes", result.tape_bytes},
             {"verified", result.verified},
             {"predicted_decode_ns", result.predicted_decode_ns},
             {"seconds", seconds}});
      return;
    }
    fmt::print("\n{}: model.pkt {} with {} packets, weights.tape {}; predicted {} a token; compiled in {}\n",
               out, bytes_text(result.model_bytes), result.packets, bytes_text(result.tape_bytes),
               format_ns(result.predicted_decode_ns), format_ns(seconds * 1e9));
    fmt::print("{}\n", result.verified ? "plow_verify has accepted it (verify.json)"
                                       : "NOT VERIFIED (--no-verify): plowrt runs it with --no-receipt only");
    fmt::print("Next: plowrt chat --assets {}\n", out);
  }

 private:
  void event(const json::object& object) {
    fmt::print("{}\n", json::serialize(object));
    std::fflush(stdout);
  }

  void summary_event(const CompileSummary& s) {
    event({{"event", "summary"},
           {"served_name", s.served_name},
           {"architecture", s.architecture},
           {"layers", s.n_layers},
           {"hidden", s.hidden},
           {"vocab", s.vocab},
           {"parameters", s.parameters},
           {"dtypes", s.weight_dtypes},
           {"checkpoint_bytes", s.checkpoint_bytes},
           {"tape_bytes", s.tape_bytes},
           {"part", s.part},
           {"tuned_settings", s.settings},
           {"unproved_rules", json::array(s.unproved_rules.begin(), s.unproved_rules.end())},
           {"declared_context", s.declared_context},
           {"max_context", s.max_context},
           {"max_slots", options_.max_slots},
           {"workers", options_.n_workers},
           {"memory_bytes", s.memory.total()},
           {"memory_available", read_host_facts().memory_available}});
  }

  void summary_table(const CompileSummary& s) {
    const auto line = [](const char* what, const std::string& value) {
      fmt::print("  {:<12} {}\n", what, value);
    };
    fmt::print("{}\n", Terminal::of(STDOUT_FILENO).bold(s.served_name));
    line("architecture", fmt::format("{}, {} layers, hidden {}, vocabulary {}", s.architecture, s.n_layers,
                                     s.hidden, s.vocab));
    line("parameters", fmt::format("{} in {}", count_text(s.parameters), s.weight_dtypes));
    line("checkpoint",
         fmt::format("{}, on the device {}", bytes_text(s.checkpoint_bytes), bytes_text(s.tape_bytes)));
    line("target", fmt::format("{}, {} workers", isa_name(options_.isa), options_.n_workers));
    line("part", fmt::format("{} ({}){}", s.part, part_note_,
                             s.settings == 0 ? ""
                                             : fmt::format("; {} tuned setting{}", s.settings,
                                                           s.settings == 1 ? "" : "s")));
    if (!s.unproved_rules.empty()) {
      line("rules off", fmt::format("{} without a theorem: {}", s.unproved_rules.size(),
                                    fmt::join(s.unproved_rules, ", ")));
    }
    line("context", fmt::format("{} tokens of {} that the checkpoint declares, {} sequences at once",
                                s.max_context, s.declared_context, options_.max_slots));
    line("memory", fmt::format("{}: weights {}, KV cache {} ({}), activations and the rest {}",
                               bytes_text(s.memory.total()), bytes_text(s.memory.weights),
                               bytes_text(s.memory.kv), dtype_name(options_.kv_dtype),
                               bytes_text(s.memory.total() - s.memory.weights - s.memory.kv)));
    line("", fit_text(s.memory, options_.max_slots, read_host_facts().memory_available));
    std::fflush(stdout);
  }

  const CompileOptions& options_;
  const std::string& part_note_;
  bool json_;
  ProgressBar bar_;
  std::optional<Error> refusal_;
  std::string event_stage_;
  Clock::time_point event_at_{};
};

}  // namespace

Status compile_command(const CompileOptions& options, const std::string& part_note, bool as_json) {
  catch_interrupts();
  const auto begin = Clock::now();
  Reporter reporter(options, part_note, as_json);
  const Result<CompileResult> result = compile_model(options, reporter);
  if (result.ok()) {
    reporter.finished(*result, seconds_since(begin));
    return {};
  }
  const Error error = reporter.refusal().value_or(result.error());
  reporter.failed(error);
  return error;
}

}  // namespace plow
