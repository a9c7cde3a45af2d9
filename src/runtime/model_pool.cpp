#include "runtime/model_pool.h"

#include "base/check.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <utility>

namespace plow {
namespace {

using std::chrono::steady_clock;

constexpr double kUnmeasuredRate = 1e9;  // bytes a second of a load, before any was measured: a fast disk
constexpr double kLongestWait = 600;     // seconds that a client can be asked to wait
constexpr std::chrono::milliseconds kLook{100};  // how often a wait for the end of answers looks for a stop

}  // namespace

const char* model_state_name(ModelState state) {
  constexpr const char* kNames[] = {"unloaded", "loading", "ready", "leaving"};
  return kNames[static_cast<size_t>(state)];
}

uint64_t planned_bytes(const BundleFile& bundle, uint32_t slots, uint32_t context) {
  const BundleHeader& header = bundle.header();
  const MemoryPlan plan =
      plan_memory(bundle, slots == 0 ? header.max_slots : slots, context == 0 ? header.max_context : context);
  return plan.total() + (header.isa == Isa::kX86_64 ? 0 : header.file_bytes);
}

Status ModelPool::check(const std::vector<PooledModel>& models, const PoolOptions& options) {
  for (const PooledModel& model : models) {
    if (model.bytes <= options.budget) continue;
    return does_not_fit(
        fmt::format("{} needs {} bytes and the models together may take {}. Raise --memory, lower --slots or "
                    "--ctx, or leave the model out.",
                    model.name, model.bytes, options.budget));
  }
  return {};
}

ModelPool::ModelPool(std::vector<PooledModel> models, const PoolOptions& options) : options_(options) {
  for (PooledModel& model : models) {
    entries_.emplace_back();
    entries_.back().model = std::move(model);
  }
  thread_ = std::thread([this] { loop(); });
}

ModelPool::~ModelPool() { stop(); }

std::variant<std::vector<uint64_t>, Refused> ModelPool::ask(size_t model,
                                                            std::vector<AnswerRequest> requests) {
  const Lock lock(mutex_);
  Entry& entry = entries_[model];
  if (draining_)
    return Refused{Refusal::kDraining, "The server is shutting down and takes no more requests."};
  const uint64_t first_id = entry.next_id;
  entry.next_id += requests.size();
  entry.last_used = steady_clock::now();
  if (entry.state == ModelState::kReady) return entry.dispatcher->ask(std::move(requests), first_id);
  const size_t most = size_t{options_.dispatch.queue} + entry.model.slots;
  if (entry.pending.size() + requests.size() > most) {
    return Refused{
        Refusal::kQueueFull,
        fmt::format("{} is not loaded, and {} requests wait for it, which is all that may wait. Try "
                    "again later.",
                    entry.model.name, entry.pending.size()),
        seconds_until_loaded(entry)};
  }
  if (entry.pending.empty()) entry.wanted_since = entry.last_used;
  std::vector<uint64_t> ids;
  for (AnswerRequest& request : requests) {
    ids.push_back(first_id + ids.size());
    entry.pending.push_back({ids.back(), std::move(request)});
  }
  wanted_.notify_one();
  return ids;
}

void ModelPool::cancel(size_t model, uint64_t id) {
  Lock lock(mutex_);
  Entry& entry = entries_[model];
  const auto it = std::ranges::find(entry.pending, id, &Asked::id);
  if (it == entry.pending.end()) {
    if (entry.dispatcher) entry.dispatcher->cancel(id);
    return;
  }
  const AnswerRequest request = std::move(it->request);
  entry.pending.erase(it);
  changed_.notify_all();
  lock.unlock();
  if (request.on_end) request.on_end({EndReason::kCancelled, {}, 0});
}

double ModelPool::expected_load_seconds(const Entry& entry) {
  return entry.loads > 0 ? entry.load_seconds : static_cast<double>(entry.model.bytes) / kUnmeasuredRate;
}

// The loads ahead of it and its own. How long answers that have to end first take is not known.
uint32_t ModelPool::seconds_until_loaded(const Entry& entry) const {
  double seconds = expected_load_seconds(entry);
  for (const Entry& other : entries_) {
    const bool ahead = !other.pending.empty() && other.wanted_since < entry.wanted_since;
    if (&other != &entry && ahead) seconds += expected_load_seconds(other);
  }
  return static_cast<uint32_t>(std::clamp(std::ceil(seconds), 1.0, kLongestWait));
}

// Beside those that are loaded.
bool ModelPool::fits(const Entry& entry) const {
  uint64_t bytes = entry.model.bytes;
  size_t loaded = 1;
  for (const Entry& other : entries_) {
    if (other.state == ModelState::kUnloaded) continue;
    bytes += other.model.bytes;
    ++loaded;
  }
  return bytes <= options_.budget && loaded <= options_.most_loaded;
}

bool ModelPool::has_room_for(size_t model) const {
  const Lock lock(mutex_);
  return fits(entries_[model]);
}

ModelPool::Entry* ModelPool::next_to_unload() {
  const auto it = std::ranges::find_if(
      entries_, [](const Entry& e) { return e.unload_wanted && e.state == ModelState::kReady; });
  return it == entries_.end() ? nullptr : &*it;
}

// The one that was wanted first.
ModelPool::Entry* ModelPool::next_to_load() {
  Entry* first = nullptr;
  for (Entry& entry : entries_) {
    const bool wanted = entry.load_wanted || !entry.pending.empty();
    if (!wanted || entry.state != ModelState::kUnloaded) continue;
    if (first == nullptr || entry.wanted_since < first->wanted_since) first = &entry;
  }
  return first;
}

// Whom to send away: of those that have nothing to do, else of all, the one that was asked longest ago.
ModelPool::Entry& ModelPool::victim_for(const Entry& entry) {
  Entry* victim = nullptr;
  std::pair<bool, Time> rank;
  for (Entry& other : entries_) {
    if (other.state != ModelState::kReady) continue;
    const BatchCounts counts = other.dispatcher->status().counts;
    const std::pair its_rank(counts.running + counts.waiting > 0, other.last_used);
    if (victim == nullptr || its_rank < rank) victim = &other, rank = its_rank;
  }
  PLOW_CHECK(victim != nullptr, "nothing is loaded, and {} does not fit", entry.model.name);
  return *victim;
}

void ModelPool::loop() {
  Lock lock(mutex_);
  while (true) {
    wanted_.wait(lock,
                 [this] { return stopping_ || next_to_unload() != nullptr || next_to_load() != nullptr; });
    if (stopping_) return;
    if (Entry* entry = next_to_unload()) {
      send_away(lock, *entry);
      continue;
    }
    Entry& entry = *next_to_load();
    if (fits(entry)) {
      bring(lock, entry);
    } else {
      send_away(lock, victim_for(entry));  // meanwhile much may have changed: look anew
    }
  }
}

void ModelPool::bring(Lock& lock, Entry& entry) {
  entry.state = ModelState::kLoading;
  lock.unlock();
  const Time begin = steady_clock::now();
  Result<Engine> engine = entry.model.load();
  std::unique_ptr<Dispatcher> dispatcher;
  if (engine.ok()) dispatcher = std::make_unique<Dispatcher>(std::move(*engine), options_.dispatch);
  const double seconds = std::chrono::duration<double>(steady_clock::now() - begin).count();
  lock.lock();
  entry.load_wanted = false;
  entry.error = engine.ok() ? std::nullopt : std::optional(engine.error());
  if (engine.ok()) {
    ++entry.loads;
    entry.load_seconds = seconds;
    entry.dispatcher = std::move(dispatcher);
    entry.state = ModelState::kReady;
    entry.last_used = steady_clock::now();
    forward(entry);
  } else {
    ++entry.failures;
    entry.state = ModelState::kUnloaded;
    entry.unload_wanted = false;
    end_pending(lock, entry, EndReason::kFailed, entry.error->message);
  }
  changed_.notify_all();
}

void ModelPool::forward(Entry& entry) {
  for (Asked& asked : std::exchange(entry.pending, {})) {
    const auto on_end = asked.request.on_end;
    std::vector<AnswerRequest> one;
    one.push_back(std::move(asked.request));
    const auto answer = entry.dispatcher->ask(std::move(one), asked.id);
    const Refused* refused = std::get_if<Refused>(&answer);
    if (refused != nullptr && on_end) on_end({EndReason::kFailed, refused->message, 0});
  }
}

// When what it accepted has ended.
void ModelPool::send_away(Lock& lock, Entry& entry) {
  entry.state = ModelState::kLeaving;
  for (bool ended = false; !ended && !stopping_;) {
    lock.unlock();
    ended = entry.dispatcher->drain(steady_clock::now() + kLook);
    lock.lock();
  }
  if (stopping_) return;
  std::unique_ptr<Dispatcher> dispatcher = std::move(entry.dispatcher);
  add_totals(entry.past, dispatcher->status().counts);
  lock.unlock();
  dispatcher.reset();
  lock.lock();
  entry.state = ModelState::kUnloaded;
  entry.unload_wanted = false;
  changed_.notify_all();
}

void ModelPool::end_pending(Lock& lock, Entry& entry, EndReason reason, const std::string& message) {
  std::vector<Asked> pending = std::exchange(entry.pending, {});
  lock.unlock();
  for (const Asked& asked : pending) {
    if (asked.request.on_end) asked.request.on_end({reason, message, 0});
  }
  lock.lock();
}

Status ModelPool::load(size_t model) {
  Lock lock(mutex_);
  Entry& entry = entries_[model];
  if (draining_) return usage_error("The server is shutting down and loads nothing.");
  if (entry.state == ModelState::kReady) return {};
  const uint64_t loads = entry.loads, failures = entry.failures;
  if (!entry.load_wanted && entry.pending.empty()) entry.wanted_since = steady_clock::now();
  entry.load_wanted = true;
  wanted_.notify_one();
  changed_.wait(lock, [&] { return stopping_ || entry.loads != loads || entry.failures != failures; });
  if (entry.loads != loads) return {};
  return entry.failures != failures && entry.error ? *entry.error
                                                   : usage_error("The server is shutting down.");
}

Status ModelPool::unload(size_t model) {
  Lock lock(mutex_);
  Entry& entry = entries_[model];
  if (draining_) return usage_error("The server is shutting down and unloads by itself.");
  if (entry.state == ModelState::kUnloaded) return {};
  // When it is there again, it was away.
  const uint64_t loads = entry.loads + (entry.state == ModelState::kLoading ? 1 : 0);
  entry.unload_wanted = true;
  wanted_.notify_one();
  changed_.wait(lock,
                [&] { return stopping_ || entry.state == ModelState::kUnloaded || entry.loads > loads; });
  return {};
}

// Whether something waits for a model or is under way to one.
bool ModelPool::busy() const {
  return std::ranges::any_of(entries_, [](const Entry& entry) {
    return !entry.pending.empty() || entry.unload_wanted || entry.state == ModelState::kLoading ||
           entry.state == ModelState::kLeaving;
  });
}

bool ModelPool::drain(Time deadline) {
  Lock lock(mutex_);
  draining_ = true;
  if (!changed_.wait_until(lock, deadline, [this] { return !busy(); })) return false;
  std::vector<Dispatcher*> left;
  for (Entry& entry : entries_) {
    if (entry.dispatcher) left.push_back(entry.dispatcher.get());
  }
  lock.unlock();  // nothing is sent away any more: nothing is wanted
  return std::ranges::all_of(left, [&](Dispatcher* dispatcher) { return dispatcher->drain(deadline); });
}

void ModelPool::stop() {
  {
    const Lock lock(mutex_);
    draining_ = stopping_ = true;
  }
  wanted_.notify_all();
  changed_.notify_all();
  if (thread_.joinable()) thread_.join();
  Lock lock(mutex_);
  for (Entry& entry : entries_) {
    if (entry.dispatcher) entry.dispatcher->stop();
    end_pending(lock, entry, EndReason::kCancelled, {});
  }
}

DispatchStatus ModelPool::status(size_t model) const {
  const Lock lock(mutex_);
  const Entry& entry = entries_[model];
  DispatchStatus status;
  if (entry.dispatcher) status = entry.dispatcher->status();
  status.draining = draining_;
  status.counts.waiting += static_cast<uint32_t>(entry.pending.size());
  add_totals(status.counts, entry.past);
  return status;
}

Residency ModelPool::residency(size_t model) const {
  const Lock lock(mutex_);
  const Entry& entry = entries_[model];
  return {entry.state, entry.model.bytes, entry.loads, entry.load_seconds,
          entry.error ? entry.error->message : std::string()};
}

}  // namespace plow
