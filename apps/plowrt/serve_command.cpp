#include "plowrt/serve_command.h"

#include "base/text_table.h"
#include "console/bundle_dir.h"
#include "console/interrupt.h"
#include "console/terminal.h"
#include "plowrt/control_socket.h"
#include "plowrt/memory_budget.h"
#include "plowrt/model.h"
#include "plowrt/prompt.h"
#include "plowrt/serve_log.h"
#include "serve/served_model.h"
#include "serve/service.h"

#include <fmt/format.h>
#include <poll.h>
#include <unistd.h>

#include <chrono>
#include <deque>
#include <optional>
#include <utility>
#include <vector>

namespace plow {

namespace {

using std::chrono::steady_clock;

// What decides how sums are rounded.
Result<std::string> code_text(const BundleHeader& header, const EngineOptions& options) {
  if (header.isa != Isa::kX86_64) return std::string(isa_name(header.isa));
  PLOW_TRY(const IsaLevel level, choose_isa_level(options.isa));
  return std::string(isa_level_name(level));
}

std::vector<MemoryPart> memory_parts(const MemoryPlan& plan) {
  return {{"weights", plan.weights},   {"kv_cache", plan.kv},           {"activations", plan.arena},
          {"counters", plan.counters}, {"step_descriptors", plan.step}, {"scratch", plan.scratch}};
}

// A bundle of the server's: what it needs of it whether its weights are in memory or not.
struct Served {
  ServedModel model;
  MemoryPlan plan;
  Isa isa;
  PooledModel pooled;
};

Result<Served> open_served(const std::string& path, const std::string& name, const EngineOptions& options) {
  PLOW_TRY(const BundleDir bundle, open_bundle_dir(path));
  const BundleHeader& header = bundle.file.header();
  const uint32_t slots = options.slots != 0 ? options.slots : header.max_slots;
  const uint32_t context = options.context != 0 ? options.context : header.max_context;
  const MemoryPlan plan = plan_memory(bundle.file, slots, context);
  PLOW_TRY(ModelText text, load_model_text(path, bundle.file));
  PLOW_TRY(const std::string code, code_text(header, options));
  ServedModel model{name.empty() ? text.name : name,
                    fmt::format("plow-{}-{:016x}-{}", PLOW_VERSION, header.body_digest_low, code),
                    code,
                    std::chrono::system_clock::to_time_t(std::chrono::system_clock::now()),
                    std::move(text.tokenizer),
                    std::move(text.chat_template),
                    text.defaults.stop_ids,
                    text.defaults.sampling,
                    context,
                    header.vocab,
                    slots,
                    memory_parts(plan),
                    local_time,
                    tool_dialect_of(text.template_source),
                    text.template_source.find("</think>") != std::string::npos};
  PooledModel pooled{model.name, planned_bytes(bundle.file, slots, context), slots,
                     [path, options] { return Engine::load(path, options); }};
  return Served{std::move(model), plan, header.isa, std::move(pooled)};
}

Result<std::vector<Served>> open_all(const ServeOptions& options) {
  if (options.served_names.size() > options.bundles.size())
    return usage_error("--served-name is given more often than --assets.");
  std::vector<Served> all;
  for (size_t i = 0; i < options.bundles.size(); ++i) {
    const std::string name = i < options.served_names.size() ? options.served_names[i] : "";
    PLOW_TRY(Served one, open_served(options.bundles[i], name, options.engine));
    for (const Served& other : all) {
      if (other.model.name != one.model.name) continue;
      return usage_error(
          fmt::format("two bundles are called {}. Tell them apart with --served-name, once for each "
                      "--assets.",
                      one.model.name));
    }
    all.push_back(std::move(one));
  }
  return all;
}

// Two kernels that stay cannot share a GPU, so its models take turns.
bool on_gpu(const std::vector<Served>& all) { return all.front().isa != Isa::kX86_64; }

Result<PoolOptions> pool_options(const ServeOptions& options, const std::vector<Served>& all) {
  PoolOptions pool;
  pool.dispatch = {{0, options.steps_at_once, options.share_prefixes}, options.queue};
  pool.budget = options.memory;
  if (on_gpu(all)) pool.most_loaded = 1;
  if (options.memory != 0) return pool;
  if (all.size() == 1) {  // whether it fits is found by loading it
    pool.budget = all.front().pooled.bytes;
    return pool;
  }
  std::vector<Isa> isas;
  for (const Served& one : all) isas.push_back(one.isa);
  PLOW_TRY(pool.budget, free_budget(isas, options.engine.device));
  return pool;
}

// Those that fit, in the order in which they were given.
Status load_first(ModelPool& pool, StderrLog& log) {
  for (size_t i = 0; i < pool.size(); ++i) {
    if (!pool.has_room_for(i)) {
      log.say(fmt::format("{} is loaded when it is asked for", pool.name(i)));
      continue;
    }
    PLOW_TRY_STATUS(pool.load(i));
    log.say(fmt::format("{} loaded in {:.2f} s", pool.name(i), pool.residency(i).load_seconds));
  }
  return {};
}

std::string ready_text(const Served& served, const ServeOptions& options, uint16_t port) {
  const ServedModel& model = served.model;
  const std::string url = fmt::format("http://{}:{}", options.http.host, port);
  const std::string key = options.api_key.empty() ? "" : " -H \"Authorization: Bearer $PLOW_API_KEY\"";
  const std::string name = options.bundles.size() > 1 ? fmt::format(R"("model": "{}", )", model.name) : "";
  const char* body = model.chat_template ? R"("messages": [{"role": "user", "content": "Hello"}])"
                                         : R"("prompt": "Once upon a time")";
  return fmt::format(
      "ready: {} with {}, context {}, {} at once, {} of memory\n"
      "  page   {}/\n"
      "  curl   curl {}/v1/{}{} -d '{{{}{}}}'\n",
      url, model.name, model.context, model.slots, format_bytes(static_cast<double>(served.plan.total())),
      url, url, model.chat_template ? "chat/completions" : "completions", key, name, body);
}

// Until SIGINT or SIGTERM.
void wait_for_signal() {
  constexpr int kLookAgain = 200;  // ms: another thread may have got the signal
  while (interrupted() == 0) ::poll(nullptr, 0, kLookAgain);
}

// Takes no more requests, and waits for what was accepted. A second signal ends the process at once
// (console/interrupt.h).
void drain(ModelPool& pool, HttpServer& http, StderrLog& log, uint32_t seconds) {
  uint64_t running = 0, waiting = 0;
  for (size_t i = 0; i < pool.size(); ++i) {
    const BatchCounts counts = pool.status(i).counts;
    running += counts.running;
    waiting += counts.waiting;
  }
  log.say(fmt::format("stopping: {} answers run and {} wait; they have {} s. Another signal stops at once.",
                      running, waiting, seconds));
  if (!pool.drain(steady_clock::now() + std::chrono::seconds(seconds)))
    log.warn("the time is over; what is left is ended");
  pool.stop();
  constexpr std::chrono::seconds kLastBytes{5};  // for clients to take what is written
  if (!http.finish(kLastBytes)) log.warn("some clients have not taken their answers");
  http.stop();
  log.say("stopped");
}

}  // namespace

Status serve_command(const ServeOptions& options) {
  StderrLog log(options.log_json);
  PLOW_TRY(HttpServer http, HttpServer::open(options.http));
  PLOW_TRY(std::vector<Served> all, open_all(options));
  PLOW_TRY(const PoolOptions pooling, pool_options(options, all));
  std::vector<PooledModel> pooled;
  for (Served& one : all) pooled.push_back(std::move(one.pooled));
  PLOW_TRY_STATUS(ModelPool::check(pooled, pooling));
  ModelPool pool(std::move(pooled), pooling);
  std::deque<PoolSource> sources;
  std::vector<HostedModel> hosted;
  for (size_t i = 0; i < all.size(); ++i) hosted.push_back({&all[i].model, &sources.emplace_back(pool, i)});
  ServiceOptions service_options;
  service_options.version = PLOW_VERSION;
  service_options.api_key = options.api_key;
  Service service(hosted, log, service_options);
  std::optional<ControlSocket> control;
  if (!options.control.empty()) {
    PLOW_TRY(ControlSocket opened,
             ControlSocket::open(options.control, pool, [&service] { return service.status_json(); }));
    control.emplace(std::move(opened));
  }
  catch_interrupts();
  PLOW_TRY_STATUS(load_first(pool, log));
  http.start(service);
  fmt::print("{}", ready_text(all.front(), options, http.port()));
  std::fflush(stdout);
  wait_for_signal();
  drain(pool, http, log, options.drain_seconds);
  clear_interrupt();  // this is how a server ends
  return {};
}

}  // namespace plow
