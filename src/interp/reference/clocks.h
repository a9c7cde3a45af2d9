// Vector clocks and counters. A clock says, by worker, how many of its instances are known to be finished.
#pragma once

#include "abi/packet.h"

#include <cstdint>
#include <span>
#include <vector>

namespace plow::reference {

using Clock = std::vector<uint32_t>;  // [worker]

inline void join(std::span<uint32_t> into, std::span<const uint32_t> other) {
  for (size_t w = 0; w < into.size(); ++w) into[w] = into[w] > other[w] ? into[w] : other[w];
}

// The three banks of counters, and what their signals release.
class CounterBanks {
 public:
  CounterBanks(uint32_t n_counters, uint32_t n_workers);

  void begin_step(uint32_t epoch);

  uint32_t value(uint32_t bank, uint32_t counter) const {
    return values_[size_t{bank} * n_counters_ + counter];
  }
  uint32_t bank() const { return bank_; }
  uint32_t n_counters() const { return n_counters_; }

  void signal(uint32_t counter, std::span<const uint32_t> clock);
  bool met(uint32_t counter, uint64_t threshold) const { return value(bank_, counter) >= threshold; }
  // Joins into `clock` what every signal that has come to the counter has released.
  void acquire(uint32_t counter, std::span<uint32_t> clock) const;

  void clear(uint32_t bank, uint32_t n_counters);

 private:
  uint32_t n_counters_;
  uint32_t n_workers_;
  uint32_t bank_ = 0;
  std::vector<uint32_t> values_;  // [bank][counter]
  std::vector<uint32_t> joined_;  // [counter][worker]: of all signals of the step
};

}  // namespace plow::reference
