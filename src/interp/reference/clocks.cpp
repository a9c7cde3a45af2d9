#include "interp/reference/clocks.h"

#include <algorithm>

namespace plow::reference {

CounterBanks::CounterBanks(uint32_t n_counters, uint32_t n_workers)
    : n_counters_(n_counters),
      n_workers_(n_workers),
      values_(size_t{kCounterBanks} * n_counters, 0),
      joined_(size_t{n_counters} * n_workers, 0),
      arrivals_(n_counters) {}

void CounterBanks::begin_step(uint32_t epoch, const StepPlan& plan) {
  bank_ = epoch % kCounterBanks;
  plan_ = &plan;
  std::fill(joined_.begin(), joined_.end(), 0);
  for (auto& arrivals : arrivals_) arrivals.clear();
}

void CounterBanks::signal(uint32_t counter, uint32_t worker, std::span<const uint32_t> clock) {
  ++values_[size_t{bank_} * n_counters_ + counter];
  join(std::span(joined_).subspan(size_t{counter} * n_workers_, n_workers_), clock);
  if (plan_->partly_waited[counter])
    arrivals_[counter].push_back({worker, Clock(clock.begin(), clock.end())});
}

void CounterBanks::acquire(uint32_t counter, uint64_t threshold, std::span<uint32_t> clock) const {
  if (threshold < plan_->promised[counter]) return acquire_part(counter, threshold, clock);
  join(clock, std::span(joined_).subspan(size_t{counter} * n_workers_, n_workers_));
}

// Of the n promised signals any k may have been the ones that were seen, if only each worker's own come in
// order. For one component of the clock the worst choice is the k smallest values, so what is certain is the
// k-th smallest. A signal that has not come yet has at least the clock of the same worker's signal before it.
void CounterBanks::acquire_part(uint32_t counter, uint64_t threshold, std::span<uint32_t> clock) const {
  if (threshold == 0) return;
  std::vector<uint32_t> values;
  for (uint32_t component = 0; component < n_workers_; ++component) {
    values.clear();
    for (uint32_t worker = 0; worker < n_workers_; ++worker) {
      uint32_t last = 0, came = 0;
      for (const Arrival& arrival : arrivals_[counter]) {
        if (arrival.worker != worker) continue;
        last = arrival.clock[component];
        values.push_back(last);
        ++came;
      }
      for (; came < plan_->promised_by(counter, worker); ++came) values.push_back(last);
    }
    std::sort(values.begin(), values.end());
    clock[component] = std::max(clock[component], values[threshold - 1]);
  }
}

void CounterBanks::clear(uint32_t bank, uint32_t n_counters) {
  std::fill_n(values_.begin() + static_cast<ptrdiff_t>(size_t{bank} * n_counters_), n_counters, 0);
}

}  // namespace plow::reference
