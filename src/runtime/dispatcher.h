// The thread that owns an engine: answers are asked for from any thread, and told of on this one.
//
// How many may wait is bounded, so a burst is refused at once instead of growing without end; what was
// accepted is answered, unless it is cancelled or the dispatcher is destroyed.
#pragma once

#include "runtime/batcher.h"

#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <mutex>
#include <string>
#include <thread>
#include <variant>
#include <vector>

namespace plow {

struct DispatchOptions {
  BatchOptions batch;
  uint32_t queue = 256;  // answers that may wait for a slot
};

enum class Refusal : uint8_t {
  kInvalid,    // the request itself; it would be refused again
  kQueueFull,  // try again later
  kDraining,   // this dispatcher takes no more
};

struct Refused {
  Refusal why;
  std::string message;
  uint32_t wait_seconds = 0;  // until it is worth trying again; 0: not known here
};

struct DispatchStatus {
  BatchCounts counts;  // `waiting` includes what the thread has not yet seen
  bool draining = false;
  bool in_step = false;
  std::chrono::steady_clock::time_point since;  // of in_step: when the step began; else when the last ended
};

class Dispatcher {
 public:
  Dispatcher(Engine engine, const DispatchOptions& options);
  // stop().
  ~Dispatcher();
  Dispatcher(const Dispatcher&) = delete;
  Dispatcher& operator=(const Dispatcher&) = delete;

  const Engine& engine() const { return engine_; }  // for what never changes: vocab(), context(), ...

  // The ids of the accepted answers, first_id and those after it, whose callbacks run on the dispatcher's
  // thread. Either all are accepted or none. REQUIRES ids that no answer has had.
  std::variant<std::vector<uint64_t>, Refused> ask(std::vector<AnswerRequest> requests, uint64_t first_id);
  // Takes effect before the next step; nothing happens when the answer ended before.
  void cancel(uint64_t id);

  // Takes no more; returns when all that was accepted has ended, or false at the deadline with what is left
  // still running.
  bool drain(std::chrono::steady_clock::time_point deadline);

  // Takes no more, cancels what is left and returns when all on_end were called. Not from a callback.
  void stop();

  DispatchStatus status() const;

 private:
  struct Asked {
    uint64_t id;
    AnswerRequest request;
  };
  struct Mail {
    std::vector<Asked> asked;
    std::vector<uint64_t> cancelled;
    bool stop = false;
    bool empty() const { return asked.empty() && cancelled.empty() && !stop; }
  };

  void loop();
  Mail take_mail();
  void publish(bool in_step);

  Engine engine_;
  Batcher batcher_;  // of the thread, but check()
  const uint32_t queue_;

  mutable std::mutex mutex_;
  std::condition_variable mail_came_, all_ended_;
  Mail mail_;
  DispatchStatus status_;
  bool idle_ = true;
  std::thread thread_;  // last: it uses all of the above
};

}  // namespace plow
