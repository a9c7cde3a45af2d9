// Verifies a schedule from its own tables alone: nothing is taken from how it was made.

#include <algorithm>
#include <map>

#include "schedule/arena.h"
#include "schedule/place.h"
#include "schedule/schedule.h"
#include "schedule/task_order.h"

namespace plow {

namespace {

class Verifier {
 public:
  Verifier(const OpGraph& graph, const TileGraph& tiles, const Schedule& schedule)
      : graph_(graph), tiles_(tiles), schedule_(schedule) {}

  Status run() {
    PLOW_TRY_STATUS(check_queues());
    PLOW_TRY_STATUS(check_coverage());
    PLOW_TRY_STATUS(collect_signals());
    PLOW_TRY_STATUS(check_protocol());
    TaskOrder order(schedule_.n_workers, places());
    PLOW_TRY_STATUS(replay(order));
    PLOW_TRY_STATUS(check_edges(order));
    return check_buffers(order);
  }

 private:
  Error wrong(uint32_t task, const std::string& what) const {
    const Task& t = schedule_.tasks[task];
    const std::string op = t.op.valid() ? fmt::format("op {}", t.op.value) : std::string(op_name(t.protocol));
    return verification_error(fmt::format("schedule: task {} ({} on worker {}): {}", task, op, t.worker, what));
  }

  std::span<const Wait> waits_of(const Task& t) const { return {schedule_.waits.data() + t.first_wait, t.n_waits}; }
  std::span<const Signal> signals_of(const Task& t) const { return {schedule_.signals.data() + t.first_signal, t.n_signals}; }

  Rows rows_of(const Task& t) const { return t.op.valid() ? tiles_.ops[t.op.value].row_kind : Rows::kFixed; }

  Status check_queues() const {
    const auto& begin = schedule_.task_begin;
    if (schedule_.n_workers == 0 || begin.size() != schedule_.n_workers + size_t{1} || begin[0] != 0 ||
        begin.back() != schedule_.tasks.size() || !std::is_sorted(begin.begin(), begin.end())) {
      return verification_error("schedule: the workers' queues do not partition the tasks");
    }
    for (uint32_t w = 0; w < schedule_.n_workers; ++w) {
      for (uint32_t t = begin[w]; t < begin[w + 1]; ++t) {
        const Task& task = schedule_.tasks[t];
        if (task.worker != w) return wrong(t, "stands in another worker's queue");
        if (task.row_stride == 0 || task.row_first >= task.row_stride) return wrong(t, "has an impossible row stride");
        if (uint64_t{task.first_wait} + task.n_waits > schedule_.waits.size() ||
            uint64_t{task.first_signal} + task.n_signals > schedule_.signals.size()) {
          return wrong(t, "has waits or signals out of range");
        }
        if (!task.op.valid()) continue;
        if (task.op.value >= tiles_.ops.size() || task.n_tiles == 0 ||
            uint64_t{task.first_tile} + task.n_tiles > tiles_.ops[task.op.value].n_tiles) {
          return wrong(t, "covers tiles that do not exist");
        }
      }
    }
    return {};
  }

  // Every column tile of every operator is done exactly once for every row tile, whatever their number.
  Status check_coverage() {
    tasks_of_op_.resize(tiles_.ops.size());
    for (uint32_t t = 0; t < schedule_.tasks.size(); ++t) {
      if (schedule_.tasks[t].op.valid()) tasks_of_op_[schedule_.tasks[t].op.value].push_back(t);
    }
    for (uint32_t o = 0; o < tiles_.ops.size(); ++o) {
      std::vector<std::vector<uint32_t>> of_tile(tiles_.ops[o].n_tiles);
      for (const uint32_t t : tasks_of_op_[o]) {
        const Task& task = schedule_.tasks[t];
        for (uint32_t c = 0; c < task.n_tiles; ++c) of_tile[task.first_tile + c].push_back(t);
      }
      for (uint32_t c = 0; c < of_tile.size(); ++c) {
        if (!covers_rows_once(of_tile[c])) {
          return verification_error(
              fmt::format("schedule: column tile {} of op {} is not done exactly once for every row tile", c, o));
        }
      }
    }
    return {};
  }

  // Row tiles first, first + stride, ...: k tasks cover all exactly once when each has stride k and their firsts are 0 .. k - 1.
  bool covers_rows_once(const std::vector<uint32_t>& tasks) const {
    std::vector<bool> seen(tasks.size(), false);
    for (const uint32_t t : tasks) {
      const Task& task = schedule_.tasks[t];
      if (task.row_stride != tasks.size() || seen[task.row_first]) return false;
      seen[task.row_first] = true;
    }
    return !tasks.empty();
  }

  Status collect_signals() {
    signallers_.resize(schedule_.n_counters);
    for (uint32_t t = 0; t < schedule_.tasks.size(); ++t) {
      const Task& task = schedule_.tasks[t];
      for (const Signal& signal : signals_of(task)) {
        const uint32_t bands = signal.band == Band::kRow ? max_row_tiles(tiles_.shape, rows_of(task)) : 1;
        if (uint64_t{signal.counter} + bands > schedule_.n_counters) return wrong(t, "signals a counter out of range");
        auto& list = signallers_[signal.counter];
        if (!list.empty() && list[0].first != signal.band) return wrong(t, "signals a counter in another way than others do");
        list.emplace_back(signal.band, t);
        // The counters of later row tiles belong to this band and to nothing else.
        for (uint32_t b = 1; b < bands; ++b) band_owner_[signal.counter + b] = signal.counter;
      }
    }
    for (const auto& [counter, owner] : band_owner_) {
      if (!signallers_[counter].empty()) {
        return verification_error(fmt::format("schedule: counter {} lies in the band that begins at {}", counter, owner));
      }
    }
    return {};
  }

  // The tasks whose signals make up the wait; an error when the threshold is not what exactly all of them add up to.
  Result<std::vector<uint32_t>> awaited(uint32_t t, const Wait& wait) const {
    if (wait.counter >= signallers_.size() || signallers_[wait.counter].empty()) {
      return wrong(t, fmt::format("waits for counter {}, which nothing signals", wait.counter));
    }
    std::vector<uint32_t> tasks;
    for (const auto& [band, s] : signallers_[wait.counter]) {
      if (band != wait.band || rows_of(schedule_.tasks[s]) != wait.rows) {
        return wrong(t, fmt::format("waits for counter {} in another way than task {} signals it", wait.counter, s));
      }
      tasks.push_back(s);
    }
    if (wait.band == Band::kRow && rows_of(schedule_.tasks[t]) != wait.rows) {
      return wrong(t, fmt::format("waits row by row for counter {} of another kind of rows", wait.counter));
    }
    // k tasks of stride k signal one row tile between them.
    double per_row_tile = 0;
    for (const uint32_t s : tasks) per_row_tile += 1.0 / schedule_.tasks[s].row_stride;
    const bool by_row_tile = wait.band == Band::kNone && wait.rows != Rows::kFixed;
    const double a = by_row_tile ? per_row_tile : 0;
    const double b = by_row_tile ? 0 : per_row_tile;
    if (std::abs(a - wait.per_row_tile) > 1e-9 || std::abs(b - wait.constant) > 1e-9) {
      return wrong(t, fmt::format("waits for {} R + {} of counter {}, but its signals add up to {} R + {}", wait.per_row_tile,
                                  wait.constant, wait.counter, a, b));
    }
    return tasks;
  }

  Status check_protocol() const {
    uint32_t clears = 0, advances = 0;
    for (uint32_t w = 0; w < schedule_.n_workers; ++w) {
      const uint32_t end = schedule_.task_begin[w + 1];
      uint32_t leaves = 0;
      for (uint32_t t = schedule_.task_begin[w]; t < end; ++t) {
        const Task& task = schedule_.tasks[t];
        if (task.op.valid()) {
          if (leaves > 0) return wrong(t, "comes after its worker has left the step");
          continue;
        }
        if (task.protocol == Op::kClearBank && leaves > 0) return wrong(t, "clears after its worker has left the step");
        clears += task.protocol == Op::kClearBank;
        leaves += task.protocol == Op::kLeave;
        if (task.protocol == Op::kAdvance) {
          ++advances;
          if (t + 1 != end || leaves != 1 || task.n_waits != 1) return wrong(t, "must be last, after a leave, and wait for all leaves");
          PLOW_TRY(const auto tasks, awaited(t, waits_of(task)[0]));
          const bool all = tasks.size() == schedule_.n_workers && std::all_of(tasks.begin(), tasks.end(), [&](uint32_t s) {
            return !schedule_.tasks[s].op.valid() && schedule_.tasks[s].protocol == Op::kLeave;
          });
          if (!all) return wrong(t, "does not wait for every worker to leave");
        }
      }
      if (leaves != 1) return verification_error(fmt::format("schedule: worker {} leaves the step {} times", w, leaves));
    }
    if (clears != 1 || advances != 1) {
      return verification_error(fmt::format("schedule: {} packets clear the bank and {} advance; one of each is right", clears, advances));
    }
    return {};
  }

  std::vector<TaskPlace> places() const {
    std::vector<TaskPlace> places;
    for (uint32_t t = 0; t < schedule_.tasks.size(); ++t) {
      const Task& task = schedule_.tasks[t];
      places.push_back(task_place(task, rows_of(task), t - schedule_.task_begin[task.worker]));
    }
    return places;
  }

  // Runs the queues as far as the waits allow. A queue that cannot move is a deadlock.
  Status replay(TaskOrder& order) {
    std::vector<uint32_t> next(schedule_.task_begin.begin(), schedule_.task_begin.end() - 1);
    std::vector<bool> finished(schedule_.tasks.size(), false);
    waited_.resize(schedule_.tasks.size());
    size_t left = schedule_.tasks.size();
    for (bool moved = true; moved;) {
      moved = false;
      for (uint32_t w = 0; w < schedule_.n_workers; ++w) {
        while (next[w] < schedule_.task_begin[w + 1]) {
          PLOW_TRY(const bool ran, try_task(next[w], finished, order));
          if (!ran) break;
          ++next[w];
          --left;
          moved = true;
        }
      }
    }
    for (uint32_t w = 0; left > 0 && w < schedule_.n_workers; ++w) {
      if (next[w] < schedule_.task_begin[w + 1]) return wrong(next[w], "waits for ever: the queues' order and the waits form a circle");
    }
    return {};
  }

  Result<bool> try_task(uint32_t t, std::vector<bool>& finished, TaskOrder& order) {
    const Task& task = schedule_.tasks[t];
    std::vector<std::vector<uint32_t>> producers;
    for (const Wait& wait : waits_of(task)) {
      PLOW_TRY(auto tasks, awaited(t, wait));
      if (!std::all_of(tasks.begin(), tasks.end(), [&](uint32_t s) { return finished[s]; })) return false;
      producers.push_back(std::move(tasks));
    }
    order.begin(t);
    for (size_t i = 0; i < producers.size(); ++i) {
      const Band band = waits_of(task)[i].band;
      if (band == Band::kRow) {
        order.wait_same(t, producers[i]);
      } else {
        order.wait_all(t, producers[i]);
      }
      for (const uint32_t producer : producers[i]) waited_[t].emplace_back(band, producer);
    }
    order.finish(t);
    finished[t] = true;
    return true;
  }

  Status check_edges(const TaskOrder& order) const {
    for (uint32_t t = 0; t < schedule_.tasks.size(); ++t) {
      const Task& task = schedule_.tasks[t];
      if (!task.op.valid()) continue;
      for (uint32_t c = task.first_tile; c < task.first_tile + task.n_tiles; ++c) {
        for (const TileEdge& edge : tiles_.edges_of(tiles_.ops[task.op.value], c)) {
          for (const uint32_t p : tasks_of_op_[edge.producer.value]) {
            const Task& producer = schedule_.tasks[p];
            const bool meets = producer.first_tile < edge.first + edge.count && edge.first < producer.first_tile + producer.n_tiles;
            if (meets && !ordered(order, t, p, edge)) {
              return wrong(t, fmt::format("column tile {} reads what task {} writes, and nothing orders them", c, p));
            }
          }
        }
      }
    }
    return {};
  }

  bool ordered(const TaskOrder& order, uint32_t t, uint32_t p, const TileEdge& edge) const {
    if (order.knows_full(t, p)) return true;
    const auto waited = [&](Band band) {
      return std::find(waited_[t].begin(), waited_[t].end(), std::pair(band, p)) != waited_[t].end();
    };
    if (waited(Band::kNone)) return true;
    const bool one_row_tile = max_row_tiles(tiles_.shape, tiles_.ops[edge.producer.value].row_kind) == 1;
    if (edge.relation == Relation::kAll && !one_row_tile) return false;
    return order.knows_row(t, p) || waited(Band::kRow);
  }

  Status check_buffers(const TaskOrder& order) const {
    std::map<uint32_t, const Buffer*> by_node;
    for (const Buffer& buffer : schedule_.buffers) {
      if (!by_node.emplace(buffer.node.value, &buffer).second) {
        return verification_error(fmt::format("schedule: node %{} has two buffers", buffer.node.value));
      }
    }
    const auto touching = tasks_touching(graph_, tiles_, tasks_of_op_);
    std::vector<std::pair<const Buffer*, uint32_t>> placed;  // with the tile op that writes it
    for (uint32_t o = 0; o < tiles_.ops.size(); ++o) {
      const Node& node = graph_.node(tiles_.ops[o].from);
      if (!has_buffer(node)) continue;
      const auto found = by_node.find(tiles_.ops[o].from.value);
      const uint64_t rows = tiles_.ops[o].row_kind == Rows::kTokens ? tiles_.shape.max_rows : tiles_.shape.max_samples;
      const uint64_t row_bytes = uint64_t{node.shape.cols} * dtype_bytes(node.dtype);
      if (found == by_node.end() || found->second->row_stride < row_bytes || found->second->bytes < found->second->row_stride * rows ||
          found->second->offset + found->second->bytes > schedule_.arena_bytes) {
        return verification_error(fmt::format("schedule: the buffer of node %{} is missing, too small or outside the arena",
                                              tiles_.ops[o].from.value));
      }
      placed.emplace_back(found->second, o);
    }
    for (size_t i = 0; i < placed.size(); ++i) {
      for (size_t j = i + 1; j < placed.size(); ++j) {
        const Buffer &a = *placed[i].first, &b = *placed[j].first;
        if (a.offset >= b.offset + b.bytes || b.offset >= a.offset + a.bytes) continue;
        // Who reads a buffer comes after who wrote what it reads, so it is enough to put the writers behind.
        if (!all_before(order, touching[placed[i].second], tasks_of_op_[placed[j].second]) &&
            !all_before(order, touching[placed[j].second], tasks_of_op_[placed[i].second])) {
          return verification_error(fmt::format("schedule: the buffers of nodes %{} and %{} overlap while both are in use",
                                                a.node.value, b.node.value));
        }
      }
    }
    return {};
  }

  static bool all_before(const TaskOrder& order, const std::vector<uint32_t>& earlier, const std::vector<uint32_t>& later) {
    return std::all_of(later.begin(), later.end(), [&](uint32_t l) {
      return std::all_of(earlier.begin(), earlier.end(), [&](uint32_t e) { return order.knows_full(l, e); });
    });
  }

  const OpGraph& graph_;
  const TileGraph& tiles_;
  const Schedule& schedule_;
  std::vector<std::vector<uint32_t>> tasks_of_op_;
  std::vector<std::vector<std::pair<Band, uint32_t>>> signallers_;  // by first counter
  std::map<uint32_t, uint32_t> band_owner_;                         // later counters of bands
  std::vector<std::vector<std::pair<Band, uint32_t>>> waited_;      // by task: producers that it waits for itself, and how
};

}  // namespace

Status verify_schedule(const OpGraph& graph, const TileGraph& tiles, const Schedule& schedule) {
  return Verifier(graph, tiles, schedule).run();
}

}  // namespace plow
