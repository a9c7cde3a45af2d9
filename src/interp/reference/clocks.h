// Vector clocks and counters. A clock says, by worker, how many of its instances are known to be finished.
#pragma once

#include "abi/packet.h"
#include "interp/reference/step_plan.h"

#include <cstdint>
#include <span>
#include <vector>

namespace plow::reference {

using Clock = std::vector<uint32_t>;  // [worker]

inline void join(std::span<uint32_t> into, std::span<const uint32_t> other) {
  for (size_t w = 0; w < into.size(); ++w) into[w] = into[w] > other[w] ? into[w] : other[w];
}

// The three banks of counters, and what a wait that is met may conclude.
class CounterBanks {
 public:
  CounterBanks(uint32_t n_counters, uint32_t n_workers);

  // REQUIRES that `plan` lives until the next begin_step.
  void begin_step(uint32_t epoch, const StepPlan& plan);

  uint32_t value(uint32_t bank, uint32_t counter) const {
    return values_[size_t{bank} * n_counters_ + counter];
  }
  uint32_t bank() const { return bank_; }
  uint32_t n_counters() const { return n_counters_; }

  void signal(uint32_t counter, uint32_t worker, std::span<const uint32_t> clock);
  bool met(uint32_t counter, uint64_t threshold) const { return value(bank_, counter) >= threshold; }
  // REQUIRES met(counter, threshold). Joins into `clock` what is certain once the counter has reached the
  // threshold.
  void acquire(uint32_t counter, uint64_t threshold, std::span<uint32_t> clock) const;

  void clear(uint32_t bank, uint32_t n_counters);

 private:
  struct Arrival {
    uint32_t worker;
    Clock clock;
  };

  void acquire_part(uint32_t counter, uint64_t threshold, std::span<uint32_t> clock) const;

  uint32_t n_counters_;
  uint32_t n_workers_;
  uint32_t bank_ = 0;
  const StepPlan* plan_ = nullptr;
  std::vector<uint32_t> values_;                // [bank][counter]
  std::vector<uint32_t> joined_;                // [counter][worker]: of all signals of the step
  std::vector<std::vector<Arrival>> arrivals_;  // by counter: kept where a wait takes a part of the signals
};

}  // namespace plow::reference
