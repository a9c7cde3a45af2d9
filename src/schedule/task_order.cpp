#include "schedule/task_order.h"

#include <algorithm>

#include "base/check.h"

namespace plow {

namespace {
constexpr uint32_t kNoTask = 0xffffffffu;
}

TaskOrder::TaskOrder(uint32_t n_workers, std::vector<TaskPlace> places)
    : n_workers_(n_workers),
      places_(std::move(places)),
      last_(n_workers, kNoTask),
      full_(places_.size() * n_workers, 0),
      row_(places_.size() * n_workers, 0),
      done_run_(places_.size() * n_workers, 0),
      done_(places_.size() * n_workers, 0),
      group_known_from_(places_.size() * n_workers, kNoTask) {}

void TaskOrder::join(uint32_t* into, const uint32_t* other) const {
  for (uint32_t w = 0; w < n_workers_; ++w) into[w] = std::max(into[w], other[w]);
}

void TaskOrder::raise(uint32_t* clock, uint32_t worker, uint32_t value) const { clock[worker] = std::max(clock[worker], value); }

void TaskOrder::begin(uint32_t task) {
  const TaskPlace& place = places_[task];
  if (last_[place.worker] != kNoTask) join(clock(full_, task), clock(done_, last_[place.worker]));
  raise(clock(full_, task), place.worker, place.index);
  last_[place.worker] = task;
  join(clock(row_, task), clock(full_, task));
  join(clock(done_, task), clock(full_, task));  // before its waits: this much holds even if it does not run
}

std::vector<uint32_t> TaskOrder::least_row_knowledge(std::span<const uint32_t> producers) {
  std::vector<uint32_t> least(n_workers_, kNoTask);
  for (const uint32_t producer : producers) {
    for (uint32_t w = 0; w < n_workers_; ++w) least[w] = std::min(least[w], at(row_, producer, w));
  }
  return least;
}

void TaskOrder::learn_firsts(uint32_t* into, std::span<const uint32_t> producers) {
  for (const uint32_t producer : producers) {
    if (places_[producer].may_be_idle) continue;
    join(into, clock(done_run_, producer));
    raise(into, places_[producer].worker, places_[producer].index + 1);
  }
}

void TaskOrder::learn_group(uint32_t task, std::span<const uint32_t> producers) {
  // Only a task that runs every row tile has waited for all of the group, and only if it runs in every step.
  const TaskPlace& place = places_[task];
  if (place.row_split || place.may_be_idle) return;
  for (const uint32_t producer : producers) {
    uint32_t& from = clock(group_known_from_, producer)[place.worker];
    from = std::min(from, place.index + 1);
  }
}

void TaskOrder::wait_same(uint32_t task, std::span<const uint32_t> producers) {
  if (producers.empty()) return;
  uint32_t* done = clock(done_run_, task);
  if (places_[producers[0]].row_split) {
    const auto least = least_row_knowledge(producers);
    join(clock(row_, task), least.data());
    join(done, least.data());
    learn_group(task, producers);
    learn_firsts(done, producers);
    return;
  }
  for (const uint32_t producer : producers) {
    const TaskPlace& place = places_[producer];
    join(clock(row_, task), clock(row_, producer));
    raise(clock(row_, task), place.worker, place.index + 1);
    // The producer has begun, so everything that it knew in full is finished, and its queue before it too.
    join(clock(full_, task), clock(full_, producer));
    raise(clock(full_, task), place.worker, place.index);
    join(done, clock(done_run_, producer));
    raise(done, place.worker, place.index + 1);
  }
}

void TaskOrder::wait_all(uint32_t task, std::span<const uint32_t> producers) {
  if (producers.empty()) return;
  uint32_t* full = clock(full_, task);
  if (places_[producers[0]].row_split) {
    join(full, least_row_knowledge(producers).data());
    learn_group(task, producers);
    learn_firsts(full, producers);
  } else {
    for (const uint32_t producer : producers) {
      join(full, clock(done_run_, producer));
      raise(full, places_[producer].worker, places_[producer].index + 1);
    }
  }
  join(clock(row_, task), full);
}

void TaskOrder::finish(uint32_t task) {
  const TaskPlace& place = places_[task];
  uint32_t* ran = clock(done_run_, task);
  if (place.row_split) {
    // It waited for its own row tiles only: nothing but what it knew in full holds for all.
    std::copy_n(clock(full_, task), n_workers_, ran);
  } else {
    join(ran, clock(full_, task));
    join(ran, clock(row_, task));
  }
  raise(ran, place.worker, place.index + 1);
  if (!place.may_be_idle) join(clock(done_, task), ran);
  raise(clock(done_, task), place.worker, place.index + 1);
}

}  // namespace plow
