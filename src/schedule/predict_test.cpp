#include "schedule/predict.h"

#include "graph/testing/toy_graph.h"

#include <gtest/gtest.h>

namespace plow {
namespace {

struct Case {
  OpGraph graph;
  TileGraph tiles;
  Schedule schedule;

  Prediction predict(const Part& part, const StepSize& size) const {
    return predict_step(graph, tiles, schedule, part, size);
  }
};

const ProgramShape kFew{16, 16, 16, 16};
const ProgramShape kMany{256, 16, 32, 16};

Case make(const ProgramShape& program, uint32_t workers, std::vector<OpSetting> settings = {}) {
  Case c;
  c.graph = toy_graph({});
  TileOptions options;
  options.shape = program;
  options.settings = std::move(settings);
  c.tiles = tile_graph(c.graph, options);
  c.schedule = schedule_tiles(c.graph, c.tiles, {workers, &default_part(Isa::kX86_64)});
  EXPECT_TRUE(verify_schedule(c.graph, c.tiles, c.schedule).ok());
  return c;
}

double busy(const Prediction& prediction) {
  Nanoseconds sum;
  for (const auto& [op, time] : prediction.busy) sum += time;
  return sum.value;
}

TEST(Predict, OfOneWorkerIsTheSumOfItsPackets) {
  const Part& part = default_part(Isa::kX86_64);
  const Case c = make(kFew, 1);
  const StepSize size{3, 2, 40, 3};
  double expected = 0;
  for (const TileOp& op : c.tiles.ops) {
    Surroundings around;
    for (const TileOp& each : c.tiles.ops) {
      const Bytes weights = node_load(c.graph, each.from, {1, 1, 40, 1}).weights;
      around.working_set = &each == &c.tiles.ops.front() ? weights : around.working_set + weights;
    }
    around.streaming = 0;
    expected += load_time(part, node_load(c.graph, op.from, size), around).value;
  }
  const Prediction prediction = c.predict(part, size);
  EXPECT_EQ(prediction.waiting.value, 0);
  EXPECT_NEAR(busy(prediction), expected, 1e-6 * expected);
  EXPECT_NEAR(prediction.step.value, expected + part[Figure::kStep], 1e-6 * expected);
}

TEST(Predict, OfSeveralWorkersLiesBetweenTheirShareAndTheSum) {
  const Part& part = default_part(Isa::kX86_64);
  for (const uint32_t workers : {2u, 3u, 5u}) {
    for (const ProgramShape& program : {kFew, kMany}) {
      const Case c = make(program, workers);
      const Prediction prediction = c.predict(part, {16, 3, 100, 1});
      const double step = prediction.step.value - part[Figure::kStep];
      EXPECT_GE(step * workers * (1 + 1e-9), busy(prediction));
      EXPECT_LE(step, busy(prediction) + part[Figure::kHop] * static_cast<double>(c.schedule.tasks.size()));
    }
  }
}

TEST(Predict, GrowsWithRowsAndContext) {
  const Part& part = default_part(Isa::kX86_64);
  for (const ProgramShape& program : {kFew, kMany}) {
    const Case c = make(program, 2);
    double before = 0;
    for (double rows = 1; rows <= program.max_rows; ++rows) {
      const double here = c.predict(part, {rows, 1, 50, 1}).step.value;
      EXPECT_GE(here, before * (1 - 1e-12)) << rows << " rows";
      before = here;
      EXPECT_LE(here, c.predict(part, {rows, 1, 90, 1}).step.value * (1 + 1e-12));
      EXPECT_LE(c.predict(part, {rows, 0, 50, 1}).step.value, here * (1 + 1e-12)) << "no row picks a token";
    }
  }
}

TEST(Predict, CountsTheChainOfWaits) {
  Part part = default_part(Isa::kX86_64);
  const Case c = make(kFew, 2);
  const double before = c.predict(part, {}).step.value;
  part[Figure::kHop] += 1000;
  const double after = c.predict(part, {}).step.value;
  EXPECT_GE(after, before + 5 * 1000) << "a layer has more hops than that, one after the other";
}

TEST(Predict, FindsOneWorkerSlowerThanTwo) {
  const Part& part = default_part(Isa::kX86_64);
  const StepSize size{256, 1, 0, 1};
  EXPECT_GT(make(kMany, 1).predict(part, size).step.value, 1.2 * make(kMany, 2).predict(part, size).step.value);
}

TEST(Place, SharesByRowsWhatColumnsShareBadly) {
  // Three KV heads on two workers: by columns one has twice the work of the other.
  Case c;
  c.graph = toy_graph({3, 48, 3, 3, 16, 96, 320, 0});
  TileOptions options;
  options.shape = kMany;
  c.tiles = tile_graph(c.graph, options);
  c.schedule = schedule_tiles(c.graph, c.tiles, {2, &default_part(Isa::kX86_64)});
  ASSERT_TRUE(verify_schedule(c.graph, c.tiles, c.schedule).ok());
  size_t attention = 0;
  for (const Task& task : c.schedule.tasks) {
    if (!task.op.valid() || c.graph.node(c.tiles.ops[task.op.value].from).op != Op::kAttention) continue;
    ++attention;
    EXPECT_EQ(task.row_stride, 2u);
    EXPECT_EQ(task.n_tiles, 3u);
  }
  EXPECT_EQ(attention, 6u) << "two tasks in each of three layers";
}

}  // namespace
}  // namespace plow
