#include "interp/reference/clocks.h"

#include <algorithm>

namespace plow::reference {

CounterBanks::CounterBanks(uint32_t n_counters, uint32_t n_workers)
    : n_counters_(n_counters),
      n_workers_(n_workers),
      values_(size_t{kCounterBanks} * n_counters, 0),
      joined_(size_t{n_counters} * n_workers, 0) {}

void CounterBanks::begin_step(uint32_t epoch) {
  bank_ = epoch % kCounterBanks;
  std::fill(joined_.begin(), joined_.end(), 0);
}

void CounterBanks::signal(uint32_t counter, std::span<const uint32_t> clock) {
  ++values_[size_t{bank_} * n_counters_ + counter];
  join(std::span(joined_).subspan(size_t{counter} * n_workers_, n_workers_), clock);
}

void CounterBanks::acquire(uint32_t counter, std::span<uint32_t> clock) const {
  join(clock, std::span(joined_).subspan(size_t{counter} * n_workers_, n_workers_));
}

void CounterBanks::clear(uint32_t bank, uint32_t n_counters) {
  std::fill_n(values_.begin() + static_cast<ptrdiff_t>(size_t{bank} * n_counters_), n_counters, 0);
}

}  // namespace plow::reference
