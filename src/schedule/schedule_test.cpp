#include "schedule/schedule.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <random>

#include "graph/testing/toy_graph.h"
#include "schedule/task_order.h"

namespace plow {
namespace {

struct Case {
  OpGraph graph;
  TileGraph tiles;
  Schedule schedule;
};

Case make(const ToyShape& shape, const ProgramShape& program, uint32_t workers) {
  Case c;
  c.graph = toy_graph(shape);
  TileOptions options;
  options.shape = program;
  c.tiles = tile_graph(c.graph, options);
  c.schedule = schedule_tiles(c.graph, c.tiles, {workers, &default_part(Isa::kX86_64)});
  return c;
}

const ProgramShape kFew{16, 16, 16, 16};
const ProgramShape kMany{100, 16, 16, 16};
const ProgramShape kManySamples{100, 50, 16, 16};

std::vector<Case> cases() {
  std::vector<Case> all;
  for (const uint32_t workers : {1u, 2u, 3u, 8u}) {
    for (const ProgramShape& program : {kFew, kMany, kManySamples}) {
      all.push_back(make({}, program, workers));
      all.push_back(make({3, 64, 4, 2, 16, 96, 320, 8}, program, workers));
    }
  }
  return all;
}

Status verify(const Case& c, const Schedule& schedule) { return verify_schedule(c.graph, c.tiles, schedule); }

TEST(Schedule, OfATransformerVerifies) {
  for (const Case& c : cases()) {
    const Status status = verify(c, c.schedule);
    EXPECT_TRUE(status.ok()) << status.error().message << " with " << c.schedule.n_workers << " workers";
  }
}

// More workers than an operator has columns, and many row tiles: tasks are cut both ways.
TEST(Schedule, OfGridsVerifies) {
  const ProgramShape program{400, 16, 16, 16};
  for (const uint32_t workers : {24u, 40u, 132u}) {
    const Case c = make({6, 64, 4, 2, 16, 96, 320, 8}, program, workers);
    const Status status = verify(c, c.schedule);
    EXPECT_TRUE(status.ok()) << status.error().message << " with " << workers << " workers";
    const auto is_cut_both_ways = [&](const Task& t) {
      return t.op.valid() && t.row_stride > 1 && t.n_tiles < c.tiles.ops[t.op.value].n_tiles;
    };
    EXPECT_TRUE(std::any_of(c.schedule.tasks.begin(), c.schedule.tasks.end(), is_cut_both_ways));
  }
}

// Two column tiles, each with a task for every other row tile: who has waited for them all knows both that run row tile 0 to be
// finished, in whatever order they are named.
TEST(TaskOrder, AGroupProvesItsFirstTasksInAnyOrder) {
  for (const std::vector<uint32_t>& group : {std::vector<uint32_t>{0, 1, 2, 3}, {3, 2, 1, 0}, {1, 2, 3, 0}}) {
    std::vector<TaskPlace> places;
    for (uint32_t worker = 0; worker < 4; ++worker) places.push_back({worker, 0, true, worker % 2 == 1});
    places.push_back({4, 0, false, false});
    places.push_back({5, 0, false, false});
    TaskOrder order(6, places);
    for (uint32_t task = 0; task < 4; ++task) {
      order.begin(task);
      order.finish(task);
    }
    order.begin(4);
    order.wait_same(4, group);
    order.finish(4);
    order.begin(5);
    order.wait_all(5, std::vector<uint32_t>{4});
    EXPECT_TRUE(order.knows_full(5, 0));
    EXPECT_TRUE(order.knows_full(5, 2));
    EXPECT_FALSE(order.knows_full(5, 1)) << "it may have had no row tile";
  }
}

TEST(Schedule, IsTheSameEveryTime) {
  const Case a = make({}, kMany, 3), b = make({}, kMany, 3);
  EXPECT_EQ(print_schedule(a.graph, a.tiles, a.schedule), print_schedule(b.graph, b.tiles, b.schedule));
}

TEST(Schedule, PrintsAndParsesToTheSame) {
  for (const Case& c : cases()) {
    const std::string text = print_schedule(c.graph, c.tiles, c.schedule);
    const auto parsed = parse_schedule(text);
    ASSERT_TRUE(parsed.ok()) << parsed.error().message;
    EXPECT_EQ(print_schedule(c.graph, c.tiles, *parsed), text);
    EXPECT_TRUE(verify(c, *parsed).ok());
  }
}

TEST(Schedule, ReusesTheArena) {
  const Case c = make({8, 40, 3, 1, 12, 56, 101, 0}, kFew, 2);
  uint64_t sum = 0;
  for (const Buffer& buffer : c.schedule.buffers) sum += buffer.bytes;
  EXPECT_LT(c.schedule.arena_bytes * 4, sum) << "eight layers need the memory of about one";
}

// Tells a wait that was removed from a schedule from one that is still there.
Schedule without_wait(const Schedule& schedule, uint32_t task, uint32_t wait) {
  Schedule mutant = schedule;
  Task& t = mutant.tasks[task];
  for (uint32_t w = wait; w + 1 < t.n_waits; ++w) mutant.waits[t.first_wait + w] = mutant.waits[t.first_wait + w + 1];
  --t.n_waits;
  return mutant;
}

TEST(Schedule, EveryWaitIsNeeded) {
  size_t waits = 0, needed = 0;
  for (const Case& c : cases()) {
    for (uint32_t t = 0; t < c.schedule.tasks.size(); ++t) {
      for (uint32_t w = 0; w < c.schedule.tasks[t].n_waits; ++w) {
        ++waits;
        needed += !verify(c, without_wait(c.schedule, t, w)).ok();
      }
    }
  }
  EXPECT_GT(waits, 1000u);
  // A wait is dropped when earlier choices imply it; a later one can still make an earlier one superfluous. Those must be rare.
  EXPECT_GT(needed, waits * 95 / 100) << needed << " of " << waits;
}

TEST(Schedule, WrongThresholdsAndSignalsAreRefused) {
  for (const Case& c : cases()) {
    for (size_t w = 0; w < c.schedule.waits.size(); ++w) {
      for (const uint32_t change : {1u, ~0u}) {
        Schedule mutant = c.schedule;
        mutant.waits[w].constant += change;
        EXPECT_FALSE(verify(c, mutant).ok());
        mutant = c.schedule;
        mutant.waits[w].per_row_tile += change;
        EXPECT_FALSE(verify(c, mutant).ok());
      }
      Schedule mutant = c.schedule;
      mutant.waits[w].band = mutant.waits[w].band == Band::kRow ? Band::kNone : Band::kRow;
      EXPECT_FALSE(verify(c, mutant).ok());
    }
    for (size_t s = 0; s < c.schedule.signals.size(); ++s) {
      Schedule mutant = c.schedule;
      mutant.signals[s].counter = mutant.signals[s].counter == 0 ? 1 : 0;
      EXPECT_FALSE(verify(c, mutant).ok());
    }
  }
}

TEST(Schedule, TilesNeverOrTwiceAreRefused) {
  for (const Case& c : cases()) {
    for (size_t t = 0; t < c.schedule.tasks.size(); ++t) {
      if (!c.schedule.tasks[t].op.valid()) continue;
      Schedule mutant = c.schedule;
      --mutant.tasks[t].n_tiles;
      EXPECT_FALSE(verify(c, mutant).ok());
      mutant = c.schedule;
      ++mutant.tasks[t].n_tiles;
      EXPECT_FALSE(verify(c, mutant).ok());
      mutant = c.schedule;
      mutant.tasks[t].row_stride += 1;
      EXPECT_FALSE(verify(c, mutant).ok());
    }
  }
}

TEST(Schedule, OverlappingBuffersAreRefused) {
  size_t moved = 0;
  for (const Case& c : cases()) {
    std::mt19937 random(7);
    for (int i = 0; i < 50; ++i) {
      Schedule mutant = c.schedule;
      Buffer& a = mutant.buffers[random() % mutant.buffers.size()];
      // The inputs of an operator are alive together with its output: putting the one onto the other must be refused.
      const auto inputs = c.graph.inputs_of(a.node);
      for (const Buffer& b : c.schedule.buffers) {
        if (std::find(inputs.begin(), inputs.end(), b.node) == inputs.end()) continue;
        a.offset = b.offset;
        mutant.arena_bytes = std::max(mutant.arena_bytes, a.offset + a.bytes);
        EXPECT_FALSE(verify(c, mutant).ok());
        ++moved;
        break;
      }
    }
  }
  EXPECT_GT(moved, 100u);
}

TEST(Schedule, ProtocolPacketsOutOfPlaceAreRefused) {
  for (const Case& c : cases()) {
    for (size_t t = 0; t < c.schedule.tasks.size(); ++t) {
      if (c.schedule.tasks[t].op.valid()) continue;
      for (const Op other : {Op::kLeave, Op::kClearBank, Op::kAdvance}) {
        if (other == c.schedule.tasks[t].protocol) continue;
        Schedule mutant = c.schedule;
        mutant.tasks[t].protocol = other;
        EXPECT_FALSE(verify(c, mutant).ok());
      }
    }
  }
}

TEST(Schedule, AnOrderThatDeadlocksIsRefused) {
  size_t refused = 0, swaps = 0;
  for (const Case& c : cases()) {
    for (uint32_t w = 0; w < c.schedule.n_workers; ++w) {
      for (uint32_t t = c.schedule.task_begin[w]; t + 1 < c.schedule.task_begin[w + 1]; ++t) {
        Schedule mutant = c.schedule;
        std::swap(mutant.tasks[t], mutant.tasks[c.schedule.task_begin[w]]);
        ++swaps;
        refused += !verify(c, mutant).ok();
      }
    }
  }
  EXPECT_GT(refused, swaps / 2) << "a queue's first task exchanged with a later one";
}

}  // namespace
}  // namespace plow
