// What a task knows to be finished when it begins: vector clocks over the workers' queues. One algebra, used to leave out waits that others
// imply, to decide which buffers may share memory, and to verify a finished schedule.
//
// A clock holds for each worker how many tasks from the front of its queue are known to be finished. For each task t:
//   full[t]      finished, for all row tiles, before any instance of t begins;
//   row[t]       instance r finished before instance r of t begins (row tiles of the same kind);
//   done_run[t]  finished, for all row tiles, once t is, if t ran at all;
//   done[t]      the same whether t ran or not: what the next task of its queue may rely on.
// A task runs all its row tiles before its worker goes on to the next, so whatever is known of a task's start holds in full for the
// tasks before it in its queue.
//
// Two kinds of tasks need care. One that may have no row tile in a step waits for nothing then, and passes through its queue without proving
// anything (may_be_idle: sampled rows, of which there may be none; and the later ones of row-split tasks). And a row-split task (row_stride > 1)
// runs only some row tiles, so that only the whole group of them tells something: its instances, not where its workers are.

#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "schedule/schedule.h"

namespace plow {

struct TaskPlace {
  uint32_t worker = 0;
  uint32_t index = 0;      // in the worker's queue
  bool row_split = false;    // row_stride > 1
  bool may_be_idle = false;  // no row tile in some steps
};

inline TaskPlace task_place(const Task& task, Rows rows, uint32_t index) {
  // A step has at least one token row, so row tile 0 of tokens always exists; it may have no sampled row.
  return {task.worker, index, task.row_stride > 1, rows == Rows::kSamples || task.row_first > 0};
}

class TaskOrder {
 public:
  TaskOrder(uint32_t n_workers, std::vector<TaskPlace> places);

  // Tasks are begun in an order that has every task after those before it in its queue and after those it waits for.
  void begin(uint32_t task);

  // `task` waits for all of `producers`: the tasks that together make one region. REQUIRES begin(task), and that every producer was finished().
  // Row-split producers must be given together, since only together do they cover all row tiles.
  void wait_same(uint32_t task, std::span<const uint32_t> producers);
  void wait_all(uint32_t task, std::span<const uint32_t> producers);

  // All waits of the task have been told.
  void finish(uint32_t task);

  bool knows_full(uint32_t task, uint32_t earlier) const {
    return at(full_, task, places_[earlier].worker) > places_[earlier].index || knows_group(task, earlier);
  }
  bool knows_row(uint32_t task, uint32_t earlier) const {
    return !places_[earlier].row_split && at(row_, task, places_[earlier].worker) > places_[earlier].index;
  }

 private:
  using Clocks = std::vector<uint32_t>;  // [task][worker]

  uint32_t at(const Clocks& clocks, uint32_t task, uint32_t worker) const { return clocks[size_t{task} * n_workers_ + worker]; }
  uint32_t* clock(Clocks& clocks, uint32_t task) { return clocks.data() + size_t{task} * n_workers_; }
  void join(uint32_t* into, const uint32_t* other) const;
  void raise(uint32_t* clock, uint32_t worker, uint32_t value) const;
  // Whether an earlier task of the same queue waited for the row-split group that `earlier` belongs to.
  bool knows_group(uint32_t task, uint32_t earlier) const {
    return places_[earlier].row_split && at(group_known_from_, earlier, places_[task].worker) <= places_[task].index;
  }
  void learn_group(uint32_t task, std::span<const uint32_t> producers);
  // What the producers of a row-split group prove that run row tile 0, which every step has: one of each column tile.
  void learn_firsts(uint32_t* into, std::span<const uint32_t> producers);
  // What is known of instance r whichever of the row-split producers runs it.
  std::vector<uint32_t> least_row_knowledge(std::span<const uint32_t> producers);

  uint32_t n_workers_;
  std::vector<TaskPlace> places_;
  std::vector<uint32_t> last_;  // by worker: the task begun last
  Clocks full_, row_, done_run_, done_;
  Clocks group_known_from_;  // [row-split task][worker]: index in the worker's queue from which on its whole group is known to be finished
};

}  // namespace plow
