#include "schedule/schedule.h"

#include <algorithm>
#include <numeric>

#include "schedule/arena.h"
#include "schedule/place.h"
#include "schedule/predict.h"
#include "schedule/synchronise.h"
#include "schedule/task_order.h"

namespace plow {

namespace {

std::vector<TaskPlace> places_of(const TileGraph& tiles, const Placement& placement) {
  std::vector<TaskPlace> places;
  for (uint32_t t = 0; t < placement.tasks.size(); ++t) {
    const Task& task = placement.tasks[t];
    places.push_back(task_place(task, tiles.ops[task.op.value].row_kind, placement.queue_index[t]));
  }
  return places;
}

void append_task(Schedule& schedule, Task task, const std::vector<Wait>& waits, const std::vector<Signal>& signals) {
  task.first_wait = static_cast<uint32_t>(schedule.waits.size());
  task.n_waits = static_cast<uint32_t>(waits.size());
  task.first_signal = static_cast<uint32_t>(schedule.signals.size());
  task.n_signals = static_cast<uint32_t>(signals.size());
  schedule.waits.insert(schedule.waits.end(), waits.begin(), waits.end());
  schedule.signals.insert(schedule.signals.end(), signals.begin(), signals.end());
  schedule.tasks.push_back(task);
}

Task protocol_task(Op op, uint32_t worker, double start_ns) {
  Task task;
  task.protocol = op;
  task.worker = worker;
  task.start_ns = task.end_ns = start_ns;
  return task;
}

// The end of a worker's queue: the last worker clears the bank of the step before, every worker leaves, worker 0 advances once all have.
void append_protocol(Schedule& schedule, uint32_t worker, uint32_t leave_counter, double end_ns) {
  if (worker + 1 == schedule.n_workers) append_task(schedule, protocol_task(Op::kClearBank, worker, end_ns), {}, {});
  append_task(schedule, protocol_task(Op::kLeave, worker, end_ns), {}, {Signal{leave_counter, Band::kNone, 0, 0}});
  if (worker == 0) {
    const Wait all_left{leave_counter, 0, schedule.n_workers, Rows::kFixed, Band::kNone, 0};
    append_task(schedule, protocol_task(Op::kAdvance, worker, schedule.predicted_ns), {all_left}, {});
  }
}

}  // namespace

Schedule schedule_tiles(const OpGraph& graph, const TileGraph& tiles, const ScheduleOptions& options) {
  const Placement placement = place_tasks(graph, tiles, *options.part, options.n_workers);
  TaskOrder order(options.n_workers, places_of(tiles, placement));
  const Synchronisation sync = synchronise(tiles, placement, order);
  const Arena arena = colour_arena(graph, tiles, placement, order);

  Schedule schedule;
  schedule.shape = tiles.shape;
  schedule.n_workers = options.n_workers;
  schedule.buffers = arena.buffers;
  schedule.arena_bytes = arena.bytes;
  schedule.predicted_ns = placement.makespan_ns;  // until the schedule is whole and can be replayed
  const uint32_t leave_counter = sync.n_counters;
  schedule.n_counters = sync.n_counters + 1;

  std::vector<std::vector<uint32_t>> queues(options.n_workers);
  for (uint32_t t = 0; t < placement.tasks.size(); ++t) queues[placement.tasks[t].worker].push_back(t);
  for (uint32_t w = 0; w < options.n_workers; ++w) {
    schedule.task_begin.push_back(static_cast<uint32_t>(schedule.tasks.size()));
    for (const uint32_t t : queues[w]) append_task(schedule, placement.tasks[t], sync.waits[t], sync.signals[t]);
    append_protocol(schedule, w, leave_counter, queues[w].empty() ? 0 : placement.tasks[queues[w].back()].end_ns);
  }
  schedule.task_begin.push_back(static_cast<uint32_t>(schedule.tasks.size()));
  schedule.predicted_ns = predict_step(graph, tiles, schedule, *options.part, typical_step(tiles.shape)).step.value;
  return schedule;
}

}  // namespace plow
