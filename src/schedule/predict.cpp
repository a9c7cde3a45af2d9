#include "schedule/predict.h"

#include "base/check.h"

#include <algorithm>

namespace plow {

namespace {

// When the signals of a counter came, as far as a wait for all of them needs to know.
struct CounterState {
  uint32_t count = 0;
  Nanoseconds latest, latest_of_others;  // of `worker`, and of all other workers
  uint32_t worker = 0xffffffffu;

  void signal(uint32_t from, Nanoseconds at) {
    ++count;
    if (from == worker) {
      latest = std::max(latest, at);
    } else if (at >= latest) {
      latest_of_others = latest;
      latest = at;
      worker = from;
    } else {
      latest_of_others = std::max(latest_of_others, at);
    }
  }
  Nanoseconds met(uint32_t by, Nanoseconds hop) const {
    if (by != worker) return latest + hop;
    return latest_of_others.value > 0 ? std::max(latest, latest_of_others + hop) : latest;
  }
};

class Replay {
 public:
  Replay(const OpGraph& graph, const TileGraph& tiles, const Schedule& schedule, const Part& part,
         const StepSize& size)
      : graph_(graph), tiles_(tiles), schedule_(schedule), part_(part), size_(size), hop_(wait_ns(part)) {}

  Prediction run() {
    find_remote_inputs();
    find_working_set();
    counters_.resize(schedule_.n_counters);
    queues_.resize(schedule_.n_workers);
    for (uint32_t w = 0; w < schedule_.n_workers; ++w) queues_[w].next = schedule_.task_begin[w];
    for (bool moved = true; moved;) {
      moved = false;
      for (uint32_t w = 0; w < schedule_.n_workers; ++w) moved |= advance(w);
    }
    for (uint32_t w = 0; w < schedule_.n_workers; ++w) {
      PLOW_CHECK(queues_[w].next == schedule_.task_begin[w + 1], "worker {} of a verified schedule is stuck",
                 w);
      result_.step = std::max(result_.step, queues_[w].now);
    }
    result_.step += Nanoseconds(part_[Figure::kStep]);
    return std::move(result_);
  }

 private:
  struct Queue {
    uint32_t next = 0;  // task
    uint32_t row_tile = 0;
    bool begun = false;  // row_tile is of `next`
    Nanoseconds now;
  };

  double rows_of(Rows kind) const {
    return kind == Rows::kTokens ? size_.tokens : kind == Rows::kSamples ? size_.samples : 1;
  }
  uint32_t row_tile_rows(Rows kind) const {
    return kind == Rows::kTokens    ? tiles_.shape.token_row_tile
           : kind == Rows::kSamples ? tiles_.shape.sample_row_tile
                                    : 1;
  }
  uint32_t row_tiles(Rows kind) const {
    const double tile = row_tile_rows(kind);
    return static_cast<uint32_t>((rows_of(kind) + tile - 1) / tile);
  }
  Rows rows_kind(const Task& task) const {
    return task.op.valid() ? tiles_.ops[task.op.value].row_kind : Rows::kFixed;
  }

  // The share of a task's inputs that other workers wrote. Its first tile stands for all.
  void find_remote_inputs() {
    std::vector<std::vector<uint32_t>> tasks_of_op(tiles_.ops.size());
    for (uint32_t t = 0; t < schedule_.tasks.size(); ++t) {
      if (schedule_.tasks[t].op.valid()) tasks_of_op[schedule_.tasks[t].op.value].push_back(t);
    }
    pieces_.resize(tiles_.ops.size());
    for (size_t o = 0; o < tasks_of_op.size(); ++o) pieces_[o] = static_cast<uint32_t>(tasks_of_op[o].size());
    remote_.assign(schedule_.tasks.size(), 0.0);
    for (uint32_t t = 0; t < schedule_.tasks.size(); ++t) {
      const Task& task = schedule_.tasks[t];
      if (!task.op.valid()) continue;
      double all = 0, remote = 0;
      for (const TileEdge& edge : tiles_.edges_of(tiles_.ops[task.op.value], task.first_tile)) {
        for (const uint32_t p : tasks_of_op[edge.producer.value]) {
          const Task& producer = schedule_.tasks[p];
          const uint32_t first = std::max(edge.first, producer.first_tile);
          const uint32_t end = std::min(edge.first + edge.count, producer.first_tile + producer.n_tiles);
          if (first >= end) continue;
          const double columns =
              double{1} * (end - first) * tiles_.ops[edge.producer.value].tile_cols / producer.row_stride;
          all += columns;
          if (producer.worker != task.worker) remote += columns;
        }
      }
      if (all > 0) remote_[t] = remote / all;
    }
  }

  void find_working_set() {
    for (const TileOp& op : tiles_.ops) {
      if (rows_of(op.row_kind) > 0)
        working_set_ += node_load(graph_, op.from, {1, 1, size_.context, 1}).weights;
    }
    working_set_ = working_set_ * (1.0 / schedule_.n_workers);
  }

  // Runs a worker's queue as far as its waits allow.
  bool advance(uint32_t worker) {
    Queue& queue = queues_[worker];
    bool moved = false;
    while (queue.next < schedule_.task_begin[worker + 1]) {
      const Task& task = schedule_.tasks[queue.next];
      if (!queue.begun) queue.row_tile = task.row_first, queue.begun = true;
      if (queue.row_tile >= (task.op.valid() ? row_tiles(rows_kind(task)) : 1)) {
        ++queue.next;
        queue.begun = false;
        moved = true;
        continue;
      }
      if (!run_row_tile(queue, task, worker)) return moved;
      queue.row_tile += task.row_stride;
      moved = true;
    }
    return moved;
  }

  uint32_t counter_of(uint32_t counter, Band band, uint32_t row_tile) const {
    return band == Band::kRow ? counter + row_tile : counter;
  }

  bool run_row_tile(Queue& queue, const Task& task, uint32_t worker) {
    Nanoseconds ready = queue.now;
    for (uint32_t i = 0; i < task.n_waits; ++i) {
      const Wait& wait = schedule_.waits[task.first_wait + i];
      const CounterState& counter = counters_[counter_of(wait.counter, wait.band, queue.row_tile)];
      const uint32_t expected = wait.per_row_tile * row_tiles(wait.rows) + wait.constant;
      if (counter.count < expected) return false;
      if (expected > 0) ready = std::max(ready, counter.met(worker, hop_));
    }
    result_.waiting += ready - queue.now;
    queue.now = ready;
    if (task.op.valid()) {
      const Nanoseconds time = time_of(task, queue.next, queue.row_tile);
      queue.now += time;
      result_.busy[graph_.node(tiles_.ops[task.op.value].from).op] += time;
    }
    for (uint32_t i = 0; i < task.n_signals; ++i) {
      const Signal& signal = schedule_.signals[task.first_signal + i];
      counters_[counter_of(signal.counter, signal.band, queue.row_tile)].signal(worker, queue.now);
    }
    return true;
  }

  Nanoseconds time_of(const Task& task, uint32_t index, uint32_t row_tile) const {
    const TileOp& op = tiles_.ops[task.op.value];
    const double tile = row_tile_rows(op.row_kind), before = row_tile * tile;
    const double rows = std::min(tile, rows_of(op.row_kind) - before);
    StepSize size = size_;
    (op.row_kind == Rows::kTokens ? size.tokens : size.samples) = rows;
    if (op.row_kind == Rows::kTokens) {
      // Rows are spread evenly over the sequences; of one sequence, later row tiles have the earlier before
      // them.
      size.sequences = std::max(1.0, size_.sequences * rows / size_.tokens);
      if (size_.sequences <= 1) size.context += before;
    }
    const Load load = share_of(node_load(graph_, op.from, size), double{1} * task.n_tiles / op.n_tiles);
    Surroundings around;
    around.working_set = row_tile == task.row_first ? working_set_ : load.weights;
    around.streaming =
        schedule_.n_workers > 1 ? (pieces_[task.op.value] - 1.0) / (schedule_.n_workers - 1.0) : 0;
    around.remote = remote_[index];
    return load_time(part_, load, around);
  }

  const OpGraph& graph_;
  const TileGraph& tiles_;
  const Schedule& schedule_;
  const Part& part_;
  const StepSize& size_;
  Nanoseconds hop_;
  Bytes working_set_;             // that a worker streams in a step
  std::vector<double> remote_;    // by task
  std::vector<uint32_t> pieces_;  // tasks, by tile op
  std::vector<CounterState> counters_;
  std::vector<Queue> queues_;
  Prediction result_;
};

}  // namespace

Prediction predict_step(const OpGraph& graph, const TileGraph& tiles, const Schedule& schedule,
                        const Part& part, const StepSize& size) {
  return Replay(graph, tiles, schedule, part, size).run();
}

}  // namespace plow
