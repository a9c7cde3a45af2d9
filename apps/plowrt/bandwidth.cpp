#include "plowrt/bandwidth.h"

#include <sys/mman.h>
#include <time.h>

#include <algorithm>
#include <atomic>
#include <barrier>
#include <chrono>
#include <cstddef>
#include <span>
#include <thread>
#include <utility>
#include <vector>

namespace plow {

namespace {

using Clock = std::chrono::steady_clock;

constexpr uint64_t kMostBytes = uint64_t{256} << 20;  // a thread: tens of times the cache of a core
constexpr uint64_t kLeastBytes = uint64_t{16} << 20;
constexpr int kPasses = 9;  // the median of nine ignores four disturbed ones

double thread_cpu_seconds() {
  timespec t{};
  ::clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
  return static_cast<double>(t.tv_sec) + static_cast<double>(t.tv_nsec) * 1e-9;
}

// Zeroed memory in huge pages where the kernel gives them: page walks would cost some 5 per cent.
class Buffer {
 public:
  explicit Buffer(size_t bytes) : bytes_(bytes) {
    data_ = ::mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (data_ != MAP_FAILED) ::madvise(data_, bytes, MADV_HUGEPAGE);
  }
  ~Buffer() {
    if (data_ != MAP_FAILED) ::munmap(data_, bytes_);
  }
  Buffer(Buffer&& other) noexcept : data_(std::exchange(other.data_, MAP_FAILED)), bytes_(other.bytes_) {}
  Buffer& operator=(Buffer&&) = delete;
  Buffer(const Buffer&) = delete;

  bool ok() const { return data_ != MAP_FAILED; }
  std::span<uint64_t> words() {
    return {static_cast<uint64_t*>(data_), bytes_ / sizeof(uint64_t)};
  }  // REQUIRES ok()

 private:
  void* data_ = MAP_FAILED;
  size_t bytes_;
};

// Eight independent sums, so that the additions are not what is waited for.
uint64_t sum(std::span<const uint64_t> words) {
  uint64_t sums[8] = {};
  for (size_t i = 0; i + 8 <= words.size(); i += 8) {
    for (size_t j = 0; j < 8; ++j) sums[j] += words[i + j];
  }
  uint64_t total = 0;
  for (const uint64_t s : sums) total += s;
  return total;
}

struct ThreadTimes {
  Clock::time_point begin, end;
  double best_cpu_seconds = 1e30;
};

}  // namespace

Result<ReadBandwidth> measure_read_bandwidth(uint32_t threads, uint64_t memory_available) {
  ReadBandwidth result;
  result.bytes_per_thread = std::clamp(memory_available / 4 / threads, kLeastBytes, kMostBytes) / 4096 * 4096;
  const double bytes = static_cast<double>(result.bytes_per_thread);
  std::vector<Buffer> buffers;
  for (uint32_t t = 0; t < threads; ++t) {
    buffers.emplace_back(result.bytes_per_thread);
    if (!buffers.back().ok()) return does_not_fit("there is no memory to measure the read bandwidth with");
  }
  std::vector<ThreadTimes> times(threads);
  std::atomic<uint64_t> sink{0};  // keeps the sums from being optimised away
  std::barrier sync(static_cast<std::ptrdiff_t>(threads) + 1);
  std::vector<std::thread> workers;
  for (uint32_t t = 0; t < threads; ++t) {
    workers.emplace_back([&, t] {
      const auto words = buffers[t].words();
      std::fill(words.begin(), words.end(),
                t + 1);  // touches every page: unwritten ones all map the zero page
      for (int pass = 0; pass < kPasses; ++pass) {
        sync.arrive_and_wait();
        const double cpu = thread_cpu_seconds();
        times[t].begin = Clock::now();
        sink += sum(words);
        times[t].end = Clock::now();
        times[t].best_cpu_seconds = std::min(times[t].best_cpu_seconds, thread_cpu_seconds() - cpu);
        sync.arrive_and_wait();
      }
    });
  }
  std::vector<double> rates;
  for (int pass = 0; pass < kPasses; ++pass) {
    sync.arrive_and_wait();
    sync.arrive_and_wait();
    const auto by_begin = [](const auto& a, const auto& b) { return a.begin < b.begin; };
    const auto by_end = [](const auto& a, const auto& b) { return a.end < b.end; };
    const auto first = std::min_element(times.begin(), times.end(), by_begin)->begin;
    const auto last = std::max_element(times.begin(), times.end(), by_end)->end;
    rates.push_back(bytes * threads / std::chrono::duration<double>(last - first).count());
  }
  for (std::thread& worker : workers) worker.join();
  std::sort(rates.begin(), rates.end());
  result.median = rates[rates.size() / 2];
  result.best = rates.back();
  for (const ThreadTimes& t : times) result.own_core += bytes / t.best_cpu_seconds / threads;
  return result;
}

}  // namespace plow
