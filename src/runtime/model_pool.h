// Several models in one process, within a budget of memory. Those that fit are resident, each with a
// dispatcher of its own; the others are loaded when they are asked for, in place of those that were used
// longest ago.
//
// A model that is asked for while it is not there is loaded once, however many requests came; they wait, and
// are answered in order. A model that has to make room first ends what it accepted; what it is asked
// meanwhile waits for its return. All functions may be called from any thread.
#pragma once

#include "runtime/dispatcher.h"

#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <thread>
#include <vector>

namespace plow {

struct PooledModel {
  std::string name;
  uint64_t bytes = 0;  // that it takes while it is loaded
  uint32_t slots = 1;  // answers at once
  std::function<Result<Engine>()> load;
};

// What an engine of the bundle takes, from its tables alone: the plan of the device's memory, and on a GPU the
// packets, which on a CPU stay in the mapped file. `slots` and `context`: 0 for the bundle's.
uint64_t planned_bytes(const BundleFile& bundle, uint32_t slots, uint32_t context);

struct PoolOptions {
  uint64_t budget = 0;  // bytes of all loaded models together
  size_t most_loaded = SIZE_MAX;
  DispatchOptions dispatch{};
};

enum class ModelState : uint8_t { kUnloaded, kLoading, kReady, kLeaving };
const char* model_state_name(ModelState state);  // "unloaded", ...

struct Residency {
  ModelState state = ModelState::kReady;
  uint64_t bytes = 0;
  uint64_t loads = 0;
  double load_seconds = 0;  // of the last time
  std::string error;        // why it could not be loaded the last time; empty when it could
};

class ModelPool {
 public:
  // Loads nothing. Errors (kDoesNotFit): a model that is larger than the budget, with both numbers.
  static Status check(const std::vector<PooledModel>& models, const PoolOptions& options);
  // REQUIRES that check() passed.
  ModelPool(std::vector<PooledModel> models, const PoolOptions& options);
  // stop().
  ~ModelPool();
  ModelPool(const ModelPool&) = delete;
  ModelPool& operator=(const ModelPool&) = delete;

  size_t size() const { return entries_.size(); }
  uint64_t budget() const { return options_.budget; }
  const std::string& name(size_t model) const { return entries_[model].model.name; }

  // As Dispatcher's; ids are of the model. Requests that wait for a model that then cannot be loaded end as
  // kFailed.
  std::variant<std::vector<uint64_t>, Refused> ask(size_t model, std::vector<AnswerRequest> requests);
  void cancel(size_t model, uint64_t id);

  // Return when it is done. Errors: of loading; kUsage when the pool takes no more.
  Status load(size_t model);
  Status unload(size_t model);
  // Whether it fits beside those that are loaded.
  bool has_room_for(size_t model) const;

  bool drain(std::chrono::steady_clock::time_point deadline);
  void stop();

  // Counters go on over unloading and loading. `waiting` includes what waits for the model to be loaded.
  DispatchStatus status(size_t model) const;
  Residency residency(size_t model) const;

 private:
  using Time = std::chrono::steady_clock::time_point;
  struct Asked {
    uint64_t id;
    AnswerRequest request;
  };
  struct Entry {
    PooledModel model;
    ModelState state = ModelState::kUnloaded;
    std::unique_ptr<Dispatcher> dispatcher;  // while it is there
    std::vector<Asked> pending;              // for when it is
    bool load_wanted = false, unload_wanted = false;
    Time wanted_since, last_used;
    uint64_t next_id = 1;
    uint64_t loads = 0, failures = 0;
    double load_seconds = 0;
    std::optional<Error> error;
    BatchCounts past;  // of dispatchers that ended
  };
  using Lock = std::unique_lock<std::mutex>;

  static double expected_load_seconds(const Entry& entry);
  uint32_t seconds_until_loaded(const Entry& entry) const;
  bool fits(const Entry& entry) const;
  bool busy() const;
  Entry* next_to_unload();
  Entry* next_to_load();
  Entry& victim_for(const Entry& entry);
  void loop();
  void bring(Lock& lock, Entry& entry);
  void send_away(Lock& lock, Entry& entry);
  void forward(Entry& entry);
  void end_pending(Lock& lock, Entry& entry, EndReason reason, const std::string& message);

  const PoolOptions options_;
  mutable std::mutex mutex_;
  std::condition_variable wanted_, changed_;
  std::vector<Entry> entries_;  // their number never changes
  bool draining_ = false, stopping_ = false;
  std::thread thread_;  // loads and unloads; last: it uses all of the above
};

}  // namespace plow
