#include "schedule/synchronise.h"

#include <algorithm>
#include <map>

namespace plow {

namespace {

// More segments of one producer than this are not worth their counters: they are joined into one.
constexpr size_t kMaxSegments = 64;

constexpr uint32_t kNoCounter = 0xffffffffu;

// A run of a producer's column tiles that consumers need together, with a counter for each way in which they wait.
struct Segment {
  uint32_t first = 0, end = 0;            // column tiles
  std::vector<uint32_t> tasks;            // that have tiles in it
  uint32_t row_counter = kNoCounter;      // Band::kRow: one for each row tile
  uint32_t total_counter = kNoCounter;    // Band::kNone
};

// What a task needs of one producer: the hull of its tiles' edges.
struct Need {
  uint32_t first = 0xffffffffu, end = 0;
  Relation relation = Relation::kSame;
};

class Synchroniser {
 public:
  Synchroniser(const TileGraph& tiles, const Placement& placement, TaskOrder& order)
      : tiles_(tiles), placement_(placement), order_(order) {}

  Synchronisation run() {
    const size_t n = placement_.tasks.size();
    result_.waits.resize(n);
    result_.signals.resize(n);
    for (uint32_t t = 0; t < n; ++t) needs_.push_back(needs_of(placement_.tasks[t]));
    cut_segments();
    for (uint32_t t = 0; t < n; ++t) add_waits(t);
    add_signals();
    return std::move(result_);
  }

 private:
  std::map<uint32_t, Need> needs_of(const Task& task) const {
    std::map<uint32_t, Need> needs;
    const TileOp& op = tiles_.ops[task.op.value];
    for (uint32_t c = task.first_tile; c < task.first_tile + task.n_tiles; ++c) {
      for (const TileEdge& edge : tiles_.edges_of(op, c)) {
        Need& need = needs[edge.producer.value];
        need.first = std::min(need.first, edge.first);
        need.end = std::max(need.end, edge.first + edge.count);
        if (edge.relation == Relation::kAll) need.relation = Relation::kAll;
      }
    }
    return needs;
  }

  // Cuts each producer's columns wherever some consumer's need begins or ends.
  void cut_segments() {
    segments_.resize(tiles_.ops.size());
    std::vector<std::vector<uint32_t>> cuts(tiles_.ops.size());
    for (const auto& needs : needs_) {
      for (const auto& [producer, need] : needs) {
        cuts[producer].push_back(need.first);
        cuts[producer].push_back(need.end);
      }
    }
    for (uint32_t o = 0; o < tiles_.ops.size(); ++o) {
      auto& points = cuts[o];
      std::sort(points.begin(), points.end());
      points.erase(std::unique(points.begin(), points.end()), points.end());
      if (points.size() > kMaxSegments + 1) points = {points.front(), points.back()};
      for (size_t i = 0; i + 1 < points.size(); ++i) {
        Segment segment{points[i], points[i + 1], {}, kNoCounter, kNoCounter};
        for (const uint32_t t : placement_.tasks_of_op[o]) {
          const Task& task = placement_.tasks[t];
          if (task.first_tile < segment.end && segment.first < task.first_tile + task.n_tiles) segment.tasks.push_back(t);
        }
        segments_[o].push_back(std::move(segment));
      }
    }
  }

  bool single_row_tile(uint32_t op) const { return max_row_tiles(tiles_.shape, tiles_.ops[op].row_kind) == 1; }

  bool known(uint32_t task, const Segment& segment, bool same) const {
    return std::all_of(segment.tasks.begin(), segment.tasks.end(), [&](uint32_t producer) {
      return order_.knows_full(task, producer) || (same && order_.knows_row(task, producer));
    });
  }

  void add_waits(uint32_t t) {
    order_.begin(t);
    // The latest producers first: what they waited for need not be waited for again.
    std::vector<std::pair<uint32_t, Need>> needs(needs_[t].begin(), needs_[t].end());
    const auto last_task = [&](uint32_t op) { return placement_.tasks_of_op[op].back(); };
    std::sort(needs.begin(), needs.end(), [&](const auto& a, const auto& b) { return last_task(a.first) > last_task(b.first); });
    for (const auto& [producer, need] : needs) {
      for (Segment& segment : segments_[producer]) {
        if (segment.end <= need.first || need.end <= segment.first) continue;
        // With one row tile "the same row tile" is "all".
        const bool same = need.relation == Relation::kSame && !single_row_tile(producer);
        if (known(t, segment, same)) continue;
        result_.waits[t].push_back(wait_for(producer, segment, same));
        if (same) {
          order_.wait_same(t, segment.tasks);
        } else {
          order_.wait_all(t, segment.tasks);
        }
      }
    }
    PLOW_CHECK(result_.waits[t].size() < 256, "task {} waits for {} counters", t, result_.waits[t].size());
    order_.finish(t);
  }

  Wait wait_for(uint32_t producer, Segment& segment, bool same) {
    const Rows rows = tiles_.ops[producer].row_kind;
    const Task& first = placement_.tasks[segment.tasks[0]];
    // Row-split tasks share one piece of columns: a row tile is signalled by one of them.
    const auto per_row_tile = static_cast<uint32_t>(segment.tasks.size()) / first.row_stride;
    if (same) {
      if (segment.row_counter == kNoCounter) segment.row_counter = take_counters(max_row_tiles(tiles_.shape, rows));
      return {segment.row_counter, 0, per_row_tile, rows, Band::kRow, 0};
    }
    if (segment.total_counter == kNoCounter) segment.total_counter = take_counters(1);
    return {segment.total_counter, per_row_tile, 0, rows, Band::kNone, 0};
  }

  uint32_t take_counters(uint32_t count) {
    const uint32_t first = result_.n_counters;
    result_.n_counters += count;
    return first;
  }

  void add_signals() {
    for (const auto& segments : segments_) {
      for (const Segment& segment : segments) {
        for (const uint32_t t : segment.tasks) {
          if (segment.row_counter != kNoCounter) result_.signals[t].push_back({segment.row_counter, Band::kRow, 0, 0});
          if (segment.total_counter != kNoCounter) result_.signals[t].push_back({segment.total_counter, Band::kNone, 0, 0});
        }
      }
    }
  }

  const TileGraph& tiles_;
  const Placement& placement_;
  TaskOrder& order_;
  std::vector<std::map<uint32_t, Need>> needs_;  // by task, by producer op
  std::vector<std::vector<Segment>> segments_;   // by producer op
  Synchronisation result_;
};

}  // namespace

Synchronisation synchronise(const TileGraph& tiles, const Placement& placement, TaskOrder& order) {
  return Synchroniser(tiles, placement, order).run();
}

}  // namespace plow
