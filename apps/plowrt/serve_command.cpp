#include "plowrt/serve_command.h"

#include "base/text_table.h"
#include "bundle/bundle.h"
#include "console/interrupt.h"
#include "console/terminal.h"
#include "plowrt/model.h"
#include "plowrt/prompt.h"
#include "plowrt/serve_log.h"
#include "serve/served_model.h"
#include "serve/service.h"

#include <fmt/format.h>
#include <poll.h>
#include <unistd.h>

#include <chrono>
#include <utility>

namespace plow {

namespace {

using std::chrono::steady_clock;

// What decides how sums are rounded.
std::string device_text(const Engine& engine) {
  return engine.device_name() == "cpu" ? isa_level_name(engine.isa_level()) : engine.device_name();
}

std::string fingerprint(const Engine& engine) {
  const BundleHeader& header = engine.bundle().header();
  return fmt::format("plow-{}-{:016x}-{}", PLOW_VERSION, header.body_digest_low, device_text(engine));
}

std::vector<MemoryPart> memory_parts(const MemoryPlan& plan) {
  return {{"weights", plan.weights},   {"kv_cache", plan.kv},           {"activations", plan.arena},
          {"counters", plan.counters}, {"step_descriptors", plan.step}, {"scratch", plan.scratch}};
}

// What the server knows of the model; takes all of it but the engine.
ServedModel served(Model& model, const std::string& name, const MemoryPlan& plan) {
  ServedModel served{name.empty() ? model.name : name,
                     fingerprint(model.engine),
                     device_text(model.engine),
                     std::chrono::system_clock::to_time_t(std::chrono::system_clock::now()),
                     std::move(model.tokenizer),
                     std::move(model.chat_template),
                     model.defaults.stop_ids,
                     model.defaults.sampling,
                     model.engine.context(),
                     model.engine.vocab(),
                     model.engine.n_slots(),
                     memory_parts(plan),
                     local_time,
                     tool_dialect_of(model.template_source),
                     model.template_source.find("</think>") != std::string::npos};
  return served;
}

std::string ready_text(const ServedModel& model, const MemoryPlan& plan, const ServeOptions& options,
                       uint16_t port) {
  const std::string url = fmt::format("http://{}:{}", options.http.host, port);
  const std::string key = options.api_key.empty() ? "" : " -H \"Authorization: Bearer $PLOW_API_KEY\"";
  const char* body = model.chat_template ? R"({"messages": [{"role": "user", "content": "Hello"}]})"
                                         : R"({"prompt": "Once upon a time"})";
  return fmt::format(
      "ready: {} with {}, context {}, {} at once, {} of memory\n"
      "  page   {}/\n"
      "  curl   curl {}/v1/{}{} -d '{}'\n",
      url, model.name, model.context, model.slots, format_bytes(static_cast<double>(plan.total())), url, url,
      model.chat_template ? "chat/completions" : "completions", key, body);
}

// Until SIGINT or SIGTERM.
void wait_for_signal() {
  constexpr int kLookAgain = 200;  // ms: another thread may have got the signal
  while (interrupted() == 0) ::poll(nullptr, 0, kLookAgain);
}

// Takes no more requests, and waits for what was accepted. A second signal ends the process at once
// (console/interrupt.h).
void drain(Dispatcher& dispatcher, HttpServer& http, StderrLog& log, uint32_t seconds) {
  const BatchCounts counts = dispatcher.status().counts;
  log.say(fmt::format("stopping: {} answers run and {} wait; they have {} s. Another signal stops at once.",
                      counts.running, counts.waiting, seconds));
  if (!dispatcher.drain(steady_clock::now() + std::chrono::seconds(seconds)))
    log.warn("the time is over; what is left is ended");
  dispatcher.stop();
  constexpr std::chrono::seconds kLastBytes{5};  // for clients to take what is written
  if (!http.finish(kLastBytes)) log.warn("some clients have not taken their answers");
  http.stop();
  log.say("stopped");
}

}  // namespace

Status serve_command(const ServeOptions& options) {
  StderrLog log(options.log_json);
  PLOW_TRY(HttpServer http, HttpServer::open(options.http));
  const steady_clock::time_point begin = steady_clock::now();
  PLOW_TRY(Model loaded, load_model(options.bundle, options.engine));
  const MemoryPlan plan =
      plan_memory(loaded.engine.bundle(), loaded.engine.n_slots(), loaded.engine.context());
  const ServedModel model = served(loaded, options.served_name, plan);
  Dispatcher dispatcher(std::move(loaded.engine), {{0, options.steps_at_once, options.share_prefixes}, options.queue});
  DispatcherSource source(dispatcher);
  ServiceOptions service_options;
  service_options.version = PLOW_VERSION;
  service_options.api_key = options.api_key;
  Service service(model, source, log, service_options);
  catch_interrupts();
  log.say(fmt::format("{} loaded in {:.2f} s", model.name,
                      std::chrono::duration<double>(steady_clock::now() - begin).count()));
  http.start(service);
  fmt::print("{}", ready_text(model, plan, options, http.port()));
  std::fflush(stdout);
  wait_for_signal();
  drain(dispatcher, http, log, options.drain_seconds);
  clear_interrupt();  // this is how a server ends
  return {};
}

}  // namespace plow
