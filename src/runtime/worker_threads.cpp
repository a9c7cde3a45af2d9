#include "runtime/worker_threads.h"

#include <fmt/format.h>
#include <linux/futex.h>
#include <pthread.h>
#include <sched.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <atomic>
#include <climits>
#include <system_error>

namespace plow {
namespace {

// Looks at the doorbell before a worker goes to sleep, some 100 us: a host that feeds steps one after the
// other rings again sooner than that, and an idle engine uses no processor.
constexpr uint32_t kSpinsAtDoorbell = 2000;
constexpr uint32_t kSpinsBeforeYield = 50;  // the host may need this very processor to ring

static_assert(sizeof(std::atomic<uint32_t>) == sizeof(uint32_t), "a futex is a plain word");

void futex_wait(std::atomic<uint32_t>& word, uint32_t seen) {
  syscall(SYS_futex, &word, FUTEX_WAIT_PRIVATE, seen, nullptr, nullptr, 0);
}
void futex_wake_all(std::atomic<uint32_t>& word) {
  syscall(SYS_futex, &word, FUTEX_WAKE_PRIVATE, INT_MAX, nullptr, nullptr, 0);
}

// The processors that this process may use.
std::vector<int> allowed_processors() {
  cpu_set_t set;
  CPU_ZERO(&set);
  std::vector<int> processors;
  if (sched_getaffinity(0, sizeof(set), &set) != 0) return processors;
  for (int i = 0; i < CPU_SETSIZE; ++i) {
    if (CPU_ISSET(i, &set)) processors.push_back(i);
  }
  return processors;
}

Status pin_thread(std::thread& thread, int processor) {
  cpu_set_t set;
  CPU_ZERO(&set);
  CPU_SET(processor, &set);
  if (pthread_setaffinity_np(thread.native_handle(), sizeof(set), &set) == 0) return {};
  return device_error(
      fmt::format("A worker could not be pinned to processor {}. Run without pinning.", processor));
}

}  // namespace

struct WorkerThreads::Words {
  alignas(kCounterLineBytes) std::atomic<uint32_t> bell{0};  // grows by one a run
  alignas(kCounterLineBytes) std::atomic<uint32_t> back{0};  // workers that are back from the run
  alignas(kCounterLineBytes) std::atomic<bool> stop{false};
};

WorkerThreads::WorkerThreads() : words_(std::make_unique<Words>()) {}

Result<std::unique_ptr<WorkerThreads>> WorkerThreads::start(const Interpreter& interpreter,
                                                            const Device& device, unsigned char* scratch,
                                                            uint64_t scratch_stride, bool pin) {
  std::unique_ptr<WorkerThreads> workers(new WorkerThreads);
  workers->interpreter_ = &interpreter;
  const std::vector<int> processors = allowed_processors();
  if (pin && processors.size() < device.n_workers) {
    return usage_error(fmt::format(
        "{} workers cannot be pinned to the {} processors that this process may use. Run without pinning.",
        device.n_workers, processors.size()));
  }
  for (uint32_t i = 0; i < device.n_workers; ++i)
    workers->workers_.push_back({&device, i, scratch + i * scratch_stride, 0});
  for (uint32_t i = 0; i < device.n_workers; ++i) {
    try {  // std::thread has no other way to say that it failed
      workers->threads_.emplace_back([self = workers.get(), i] { self->work(i); });
    } catch (const std::system_error& error) {
      return device_error(
          fmt::format("Thread {} of {} could not be started: {}.", i + 1, device.n_workers, error.what()));
    }
    if (pin) PLOW_TRY_STATUS(pin_thread(workers->threads_.back(), processors[i]));
  }
  return workers;
}

WorkerThreads::~WorkerThreads() {
  words_->stop.store(true, std::memory_order_relaxed);
  words_->bell.fetch_add(1, std::memory_order_release);
  futex_wake_all(words_->bell);
  for (std::thread& thread : threads_) thread.join();
}

void WorkerThreads::run() {
  words_->back.store(0, std::memory_order_relaxed);
  words_->bell.fetch_add(1, std::memory_order_release);
  futex_wake_all(words_->bell);
  for (;;) {
    const uint32_t back = words_->back.load(std::memory_order_acquire);
    if (back == workers_.size()) return;
    futex_wait(words_->back, back);
  }
}

void WorkerThreads::work(uint32_t index) {
  Words& words = *words_;
  const auto n_workers = static_cast<uint32_t>(workers_.size());
  for (uint32_t heard = 0;;) {
    uint32_t bell = words.bell.load(std::memory_order_acquire);
    for (uint32_t spins = 1; bell == heard; ++spins) {
      if (spins < kSpinsAtDoorbell) {
        __builtin_ia32_pause();
        if (spins % kSpinsBeforeYield == 0) sched_yield();
      } else {
        futex_wait(words.bell, heard);
      }
      bell = words.bell.load(std::memory_order_acquire);
    }
    heard = bell;
    if (words.stop.load(std::memory_order_relaxed)) return;
    (void)interpreter_->run_steps(workers_[index]);  // what became of it is in Control
    if (words.back.fetch_add(1, std::memory_order_acq_rel) + 1 == n_workers) futex_wake_all(words.back);
  }
}

}  // namespace plow
