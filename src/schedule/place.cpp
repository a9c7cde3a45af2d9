#include "schedule/place.h"

#include <algorithm>
#include <queue>

#include "cost/cost.h"

namespace plow {

namespace {

uint32_t divided_up(uint32_t a, uint32_t b) { return (a + b - 1) / b; }

class Placer {
 public:
  Placer(const OpGraph& graph, const TileGraph& tiles, const Part& part, uint32_t n_workers)
      : graph_(graph), tiles_(tiles), part_(part), n_workers_(n_workers), free_ns_(n_workers, 0.0) {
    result_.tasks_of_op.resize(tiles.ops.size());
    result_.queue_length.assign(n_workers, 0);
  }

  Placement run() {
    measure_ops();
    // Among the operators whose producers are placed, the one with the longest chain of work behind it comes first; ties by order.
    const auto later = [&](uint32_t a, uint32_t b) { return rank_[a] != rank_[b] ? rank_[a] < rank_[b] : a > b; };
    std::priority_queue<uint32_t, std::vector<uint32_t>, decltype(later)> ready(later);
    std::vector<uint32_t> missing(tiles_.ops.size());
    for (uint32_t o = 0; o < tiles_.ops.size(); ++o) {
      missing[o] = static_cast<uint32_t>(producers_[o].size());
      if (missing[o] == 0) ready.push(o);
    }
    std::vector<bool> placed(tiles_.ops.size());
    while (!ready.empty()) {
      const uint32_t next = ready.top();
      ready.pop();
      if (placed[next]) continue;
      const std::vector<uint32_t> siblings = siblings_of(next);
      place(siblings);
      for (const uint32_t op : siblings) {
        placed[op] = true;
        for (const uint32_t consumer : consumers_[op]) {
          if (--missing[consumer] == 0) ready.push(consumer);
        }
      }
    }
    result_.makespan_ns = *std::max_element(free_ns_.begin(), free_ns_.end());
    return std::move(result_);
  }

 private:
  void measure_ops() {
    const size_t n = tiles_.ops.size();
    const StepSize size = typical_step(tiles_.shape);
    producers_.resize(n);
    consumers_.resize(n);
    for (uint32_t o = 0; o < n; ++o) {
      loads_.push_back(node_load(graph_, tiles_.ops[o].from, size));
      for (const NodeId input : graph_.inputs_of(tiles_.ops[o].from)) {
        const TileOpId producer = tiles_.op_of_node[input.value];
        if (!producer.valid()) continue;
        auto& list = producers_[o];
        if (std::find(list.begin(), list.end(), producer.value) != list.end()) continue;
        list.push_back(producer.value);
        consumers_[producer.value].push_back(o);
      }
    }
    rank_.assign(n, 0.0);
    for (size_t o = n; o-- > 0;) {
      double behind = 0;
      for (const uint32_t consumer : consumers_[o]) behind = std::max(behind, rank_[consumer] + wait_ns(part_));
      rank_[o] = behind + node_ns(part_, loads_[o], std::min(tiles_.ops[o].n_tiles, n_workers_));
    }
  }

  // When the operator's inputs are there for a task on `worker`. Whole producers: a task may need less, which only starts it earlier.
  double inputs_ready_ns(uint32_t op, uint32_t worker) const {
    double ready = 0;
    for (const uint32_t producer : producers_[op]) {
      for (const uint32_t task : result_.tasks_of_op[producer]) {
        const Task& t = result_.tasks[task];
        ready = std::max(ready, t.end_ns + (t.worker == worker ? 0.0 : wait_ns(part_)));
      }
    }
    return ready;
  }

  double start_ns(uint32_t op, uint32_t worker) const { return std::max(free_ns_[worker], inputs_ready_ns(op, worker)); }

  Nanoseconds time_of(const Load& load) const {
    Surroundings around;
    if (load.products.value > 0) around.remote = (n_workers_ - 1.0) / n_workers_;
    return load_time(part_, load, around);
  }

  void add_task(uint32_t op, uint32_t worker, uint32_t first_tile, uint32_t n_tiles, uint32_t row_first, uint32_t row_stride) {
    const double share = double{1} * n_tiles / tiles_.ops[op].n_tiles / row_stride;
    Task task;
    task.op = TileOpId(op);
    task.worker = worker;
    task.first_tile = first_tile;
    task.n_tiles = n_tiles;
    task.row_first = row_first;
    task.row_stride = row_stride;
    task.start_ns = start_ns(op, worker);
    task.end_ns = task.start_ns + time_of(share_of(loads_[op], share)).value;
    free_ns_[worker] = task.end_ns;
    result_.tasks_of_op[op].push_back(static_cast<uint32_t>(result_.tasks.size()));
    result_.tasks.push_back(task);
    result_.queue_index.push_back(result_.queue_length[worker]++);
  }

  // The operator and those that are products of the same, of the same operators' values, and so ready with it, where all are
  // shared out by columns: q, k and v.
  std::vector<uint32_t> siblings_of(uint32_t op) const {
    if (!is_product_by_columns(op) || producers_[op].empty()) return {op};
    std::vector<uint32_t> siblings;
    for (const uint32_t other : consumers_[producers_[op][0]]) {
      if (is_product_by_columns(other) && producers_[other] == producers_[op] && first_input(other) == first_input(op)) siblings.push_back(other);
    }
    return siblings;
  }
  NodeId first_input(uint32_t op) const { return graph_.inputs_of(tiles_.ops[op].from)[0]; }
  bool is_product_by_columns(uint32_t op) const {
    const TileOp& tile_op = tiles_.ops[op];
    return loads_[op].products.value > 0 && tile_op.split == Split::kAuto && tile_op.n_tiles > 1 && row_pieces(op) == 1;
  }

  uint32_t column_pieces(uint32_t op) const { return std::min(tiles_.ops[op].n_tiles, n_workers_); }
  uint32_t row_tiles(uint32_t op) const { return max_row_tiles(tiles_.shape, tiles_.ops[op].row_kind); }
  uint32_t row_pieces(uint32_t op) const { return std::min(row_tiles(op), n_workers_); }

  // Into how many classes row tiles go when each is a task with each column tile: so that the busiest worker has the fewest tiles,
  // with the fewest tasks.
  uint32_t row_classes(uint32_t op) const {
    uint32_t best = 1, least = 0xffffffffu;
    for (uint32_t classes = 1; classes <= row_tiles(op); ++classes) {
      const uint32_t tiles = divided_up(tiles_.ops[op].n_tiles * classes, n_workers_) * divided_up(row_tiles(op), classes);
      if (tiles < least) best = classes, least = tiles;
    }
    return best;
  }

  // A grid where there are fewer column tiles than workers. Else rows when the worker with the most columns would be
  // busy for longer than the one with the most row tiles: three KV heads on two workers are two against one.
  Split best_split(uint32_t op) const {
    const uint32_t n_tiles = tiles_.ops[op].n_tiles;
    if (n_tiles > 1 && n_tiles < n_workers_ && row_pieces(op) > 1) return Split::kGrid;
    if (row_pieces(op) == 1) return column_pieces(op) > 1 ? Split::kColumns : Split::kOne;
    if (column_pieces(op) == 1) return Split::kRows;
    const auto largest = [](uint32_t parts, uint32_t pieces) { return double{1} * ((parts + pieces - 1) / pieces) / parts; };
    const double by_columns = largest(tiles_.ops[op].n_tiles, column_pieces(op));
    const double by_rows = largest(row_tiles(op), row_pieces(op));
    Load rows = share_of(loads_[op], by_rows);
    rows.weights = loads_[op].weights;  // every worker passes them all
    return time_of(rows) < time_of(share_of(loads_[op], by_columns)) ? Split::kRows : Split::kColumns;
  }

  // Siblings have workers of their own, so that none has a packet of two of them, where the busiest has no more tiles than if
  // each were shared out over all.
  void place(const std::vector<uint32_t>& siblings) {
    const uint32_t most = siblings.size() > 1 ? tiles_apart(siblings) : 0;
    uint32_t busiest = 0, first_worker = 0;
    for (const uint32_t op : siblings) busiest += divided_up(tiles_.ops[op].n_tiles, column_pieces(op));
    for (const uint32_t op : siblings) {
      if (most == 0 || most > busiest) {
        place(op);
        continue;
      }
      const uint32_t pieces = divided_up(tiles_.ops[op].n_tiles, most);
      place_columns(op, first_worker, pieces);
      first_worker += pieces;
    }
  }

  // The fewest tiles of a worker with which there are workers for each of the operators; 0: there are fewer than operators.
  uint32_t tiles_apart(const std::vector<uint32_t>& ops) const {
    if (ops.size() > n_workers_) return 0;
    for (uint32_t most = 1;; ++most) {
      uint64_t workers = 0;
      for (const uint32_t op : ops) workers += divided_up(tiles_.ops[op].n_tiles, most);
      if (workers <= n_workers_) return most;
    }
  }

  // In equal runs, one a worker, from `first_worker` on.
  void place_columns(uint32_t op, uint32_t first_worker, uint32_t pieces) {
    const uint64_t n_tiles = tiles_.ops[op].n_tiles;
    for (uint32_t i = 0; i < pieces; ++i) {
      const auto first = static_cast<uint32_t>(i * n_tiles / pieces), last = static_cast<uint32_t>((i + 1) * n_tiles / pieces);
      add_task(op, first_worker + i, first, last - first, 0, 1);
    }
    behind_columns_ = first_worker + pieces;
  }

  // Where the runs of an operator begin that has fewer than there are workers: at the first, so that operators of the same
  // width lie on the same workers and element-wise ones need no wait, or behind the runs before, if all begin earlier there.
  uint32_t first_worker(uint32_t op, uint32_t pieces) const {
    if (behind_columns_ + pieces > n_workers_) return 0;
    const auto last_start = [&](uint32_t first) {
      double last = 0;
      for (uint32_t i = 0; i < pieces; ++i) last = std::max(last, start_ns(op, first + i));
      return last;
    };
    return last_start(behind_columns_) < last_start(0) ? behind_columns_ : 0;
  }

  void place(uint32_t op) {
    const TileOp& tile_op = tiles_.ops[op];
    const Split split = tile_op.split == Split::kAuto ? best_split(op) : tile_op.split;
    if (split == Split::kColumns && column_pieces(op) > 1) {
      place_columns(op, first_worker(op, column_pieces(op)), column_pieces(op));
    } else if (split == Split::kGrid && row_pieces(op) > 1) {
      place_grid(op, row_classes(op));
    } else if (split == Split::kRows && row_pieces(op) > 1) {
      for (uint32_t i = 0; i < row_pieces(op); ++i) add_task(op, i, 0, tile_op.n_tiles, i, row_pieces(op));
    } else {
      uint32_t best = 0;
      for (uint32_t w = 1; w < n_workers_; ++w) {
        if (start_ns(op, w) < start_ns(op, best)) best = w;
      }
      add_task(op, best, 0, tile_op.n_tiles, 0, 1);
    }
  }

  // Tasks in turn, where those of the grid before ended: operators that run side by side have workers of their own.
  void place_grid(uint32_t op, uint32_t classes) {
    for (uint32_t tile = 0; tile < tiles_.ops[op].n_tiles; ++tile) {
      for (uint32_t c = 0; c < classes; ++c) {
        add_task(op, next_of_grid_, tile, 1, c, classes);
        next_of_grid_ = (next_of_grid_ + 1) % n_workers_;
      }
    }
  }

  const OpGraph& graph_;
  const TileGraph& tiles_;
  const Part& part_;
  uint32_t n_workers_, next_of_grid_ = 0, behind_columns_ = 0;
  std::vector<double> free_ns_;
  std::vector<Load> loads_;
  std::vector<double> rank_;
  std::vector<std::vector<uint32_t>> producers_, consumers_;
  Placement result_;
};

}  // namespace

uint32_t max_row_tiles(const ProgramShape& shape, Rows rows) {
  if (rows == Rows::kTokens) return (shape.max_rows + shape.token_row_tile - 1) / shape.token_row_tile;
  if (rows == Rows::kSamples) return (shape.max_samples + shape.sample_row_tile - 1) / shape.sample_row_tile;
  return 1;
}

StepSize typical_step(const ProgramShape& shape) {
  StepSize size;
  if (shape.max_rows > shape.token_row_tile) size.tokens = shape.max_rows, size.context = 0;
  return size;
}

Placement place_tasks(const OpGraph& graph, const TileGraph& tiles, const Part& part, uint32_t n_workers) {
  return Placer(graph, tiles, part, n_workers).run();
}

}  // namespace plow
