#include "serve/metrics.h"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>

namespace plow {
namespace {

void append_help(std::string& out, std::string_view name, std::string_view type, std::string_view help) {
  fmt::format_to(std::back_inserter(out), "# HELP {} {}\n# TYPE {} {}\n", name, help, name, type);
}

template <class Value>
void append_single(std::string& out, std::string_view name, std::string_view type, std::string_view help,
                   Value value) {
  append_help(out, name, type, help);
  fmt::format_to(std::back_inserter(out), "{} {}\n", name, value);
}

// A label's value: backslash, quote and newline are escaped.
std::string label(std::string_view value) {
  std::string out;
  for (const char c : value) {
    if (c == '\\' || c == '"') out += '\\';
    if (c == '\n') {
      out += "\\n";
    } else {
      out += c;
    }
  }
  return out;
}

BatchCounts sum_of(const std::vector<ModelFacts>& models) {
  BatchCounts sum;
  for (const ModelFacts& model : models) {
    const BatchCounts& c = model.status.counts;
    sum.running += c.running;
    sum.waiting += c.waiting;
    sum.blocks += c.blocks;
    sum.free_blocks += c.free_blocks;
    sum.kept_blocks += c.kept_blocks;
    add_totals(sum, c);
  }
  return sum;
}

constexpr std::array<const char*, kAnswerOutcomes> kOutcomeNames = {"stop", "length", "cancelled", "error"};
constexpr std::array<const char*, 3> kRefusalNames = {"invalid", "queue_full", "draining"};

}  // namespace

void Histogram::observe(double seconds) {
  const auto at = std::ranges::lower_bound(bounds_, seconds) - bounds_.begin();
  counts_[static_cast<size_t>(at)].fetch_add(1, std::memory_order_relaxed);
  nanoseconds_.fetch_add(static_cast<uint64_t>(std::max(seconds, 0.0) * 1e9), std::memory_order_relaxed);
}

void Histogram::append(std::string& out, std::string_view name, std::string_view help) const {
  append_help(out, name, "histogram", help);
  uint64_t below = 0;
  for (size_t i = 0; i < bounds_.size(); ++i) {
    below += counts_[i].load(std::memory_order_relaxed);
    fmt::format_to(std::back_inserter(out), "{}_bucket{{le=\"{}\"}} {}\n", name, bounds_[i], below);
  }
  below += counts_[bounds_.size()].load(std::memory_order_relaxed);
  fmt::format_to(std::back_inserter(out), "{}_bucket{{le=\"+Inf\"}} {}\n{}_sum {}\n{}_count {}\n", name,
                 below, name, static_cast<double>(nanoseconds_.load(std::memory_order_relaxed)) * 1e-9, name,
                 below);
}

void Metrics::count_response(RouteId route, int status) {
  auto at = std::ranges::find(kStatuses, status);
  if (at == kStatuses.end()) at = std::ranges::find(kStatuses, status / 100 * 100);
  if (at == kStatuses.end()) at = std::ranges::find(kStatuses, 500);
  ++responses_[static_cast<size_t>(route)][static_cast<size_t>(at - kStatuses.begin())];
}

std::string Metrics::text(const MetricsFacts& facts) const {
  std::string out;
  const BatchCounts c = sum_of(facts.models);
  const auto for_each_model = [&](const char* name, const char* type, const char* help, const auto& value) {
    append_help(out, name, type, help);
    for (const ModelFacts& model : facts.models) {
      fmt::format_to(std::back_inserter(out), "{}{{model=\"{}\"}} {}\n", name, label(model.name),
                     value(model));
    }
  };
  append_help(out, "plow_build_info", "gauge", "The program.");
  fmt::format_to(std::back_inserter(out), "plow_build_info{{version=\"{}\"}} 1\n", label(facts.version));
  append_help(out, "plow_model_info", "gauge", "The model.");
  for (const ModelFacts& model : facts.models) {
    fmt::format_to(std::back_inserter(out), "plow_model_info{{model=\"{}\",fingerprint=\"{}\"}} 1\n",
                   label(model.name), label(model.fingerprint));
  }
  append_single(out, "plow_start_time_seconds", "gauge", "When the server started, since 1970.",
                facts.started);
  append_single(out, "plow_ready", "gauge", "1 while requests are taken.", facts.ready ? 1 : 0);
  for_each_model("plow_context_tokens", "gauge", "Tokens of prompt and answer.",
                 [](const ModelFacts& m) { return m.context; });
  for_each_model("plow_slots", "gauge", "Answers that can run at once.",
                 [](const ModelFacts& m) { return m.slots; });
  for_each_model("plow_model_loaded", "gauge", "1 while the model is in memory.", [](const ModelFacts& m) {
    return m.residency.state == ModelState::kReady || m.residency.state == ModelState::kLeaving ? 1 : 0;
  });
  for_each_model("plow_model_loads_total", "counter", "How often the model was brought into memory.",
                 [](const ModelFacts& m) { return m.residency.loads; });
  for_each_model("plow_model_memory_bytes", "gauge", "What the model takes while it is in memory.",
                 [](const ModelFacts& m) { return m.residency.bytes; });
  for_each_model("plow_model_requests_waiting", "gauge",
                 "Answers that wait for a slot of the model, or for it.",
                 [](const ModelFacts& m) { return m.status.counts.waiting; });

  append_help(out, "plow_http_requests_total", "counter", "Responses by route and status.");
  for (size_t route = 0; route < kRouteIds; ++route) {
    for (size_t i = 0; i < kStatuses.size(); ++i) {
      fmt::format_to(std::back_inserter(out), "plow_http_requests_total{{route=\"{}\",status=\"{}\"}} {}\n",
                     route_name(static_cast<RouteId>(route)), kStatuses[i], responses_[route][i].load());
    }
  }
  append_single(out, "plow_http_answers_open", "gauge", "Requests for answers that are not over.",
                open_requests.load());
  append_help(out, "plow_answers_total", "counter", "Answers by how they ended.");
  for (size_t i = 0; i < kAnswerOutcomes; ++i)
    fmt::format_to(std::back_inserter(out), "plow_answers_total{{reason=\"{}\"}} {}\n", kOutcomeNames[i],
                   answers_[i].load());
  append_help(out, "plow_shed_total", "counter", "Requests that were not taken, by why.");
  for (size_t i = 0; i < refusals_.size(); ++i)
    fmt::format_to(std::back_inserter(out), "plow_shed_total{{reason=\"{}\"}} {}\n", kRefusalNames[i],
                   refusals_[i].load());

  append_single(out, "plow_requests_running", "gauge", "Answers that have a slot.", c.running);
  append_single(out, "plow_requests_waiting", "gauge", "Answers that wait for one.", c.waiting);
  append_single(out, "plow_steps_total", "counter", "Steps of the engine.", c.steps);
  append_single(out, "plow_prompt_tokens_total", "counter", "Tokens of prompts that were computed.",
                c.prompt_tokens);
  append_single(out, "plow_generation_tokens_total", "counter", "Tokens of answers.", c.answer_tokens);
  append_single(out, "plow_preemptions_total", "counter",
                "Answers that gave up their slot for want of cache.", c.preemptions);
  append_single(out, "plow_prefix_cache_queries_total", "counter",
                "Tokens of prompts that were looked for in the cache.", c.asked_tokens);
  append_single(out, "plow_prefix_cache_hits_total", "counter",
                "Those that were found there and not computed.", c.shared_tokens);
  append_single(out, "plow_prefix_cache_evictions_total", "counter",
                "Blocks that were kept for sharing and given away for want of cache.", c.evictions);
  append_single(out, "plow_cache_blocks", "gauge", "Blocks of the cache.", c.blocks);
  append_single(out, "plow_cache_blocks_free", "gauge", "Those that are free.", c.free_blocks);
  append_single(out, "plow_cache_blocks_kept", "gauge", "Free ones whose tokens can still be shared.",
                c.kept_blocks);
  first_token.append(out, "plow_time_to_first_token_seconds", "From the request to an answer's first token.");
  token_gap.append(out, "plow_inter_token_seconds", "Between two tokens of an answer.");
  token_overhead.append(
      out, "plow_token_overhead_seconds",
      "From the engine's giving a token of a stream to its frame's being with the socket, but for "
      "tokens that waited for a client to read.");
  request.append(out, "plow_request_seconds", "From the request to the end of its answer.");
  return out;
}

}  // namespace plow
