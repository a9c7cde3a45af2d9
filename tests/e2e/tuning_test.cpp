// What a tuner may set changes how the work is cut, and not one bit of what comes out.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>

#include "bundle/predictions.h"
#include "harness.h"
#include "schedule/predict.h"
#include "tune/sweep.h"

namespace plow {
namespace {

const std::filesystem::path kTiny = std::filesystem::path(PLOW_SOURCE_DIR) / "build/fixtures/tiny";

CompileOptions options_for(const char* name) {
  CompileOptions options;
  options.checkpoint = kTiny / name;
  options.n_workers = 2;
  options.max_context = 128;
  options.max_slots = 6;
  options.chunk_rows = 64;
  options.kv_dtype = DType::kF32;
  return options;
}

std::vector<float> logits_of(const TestBundle& bundle) {
  Engine engine = bundle.engine();
  std::vector<uint32_t> tokens;
  for (uint32_t i = 0; i < 50; ++i) tokens.push_back(i * 7 % engine.vocab());
  auto slot = engine.open_slot();
  EXPECT_TRUE(slot.ok());
  const uint32_t last = 49;
  const StepRequest request{*slot, tokens, std::span(&last, 1), greedy_sampling()};
  StepOptions options;
  options.logits = true;
  auto result = engine.step(std::span(&request, 1), options);
  EXPECT_TRUE(result.ok()) << (result.ok() ? "" : result.error().message);
  return std::move(result->logits);
}

BundleFile open(const TestBundle& bundle) {
  auto file = BundleFile::open(bundle.path() / "model.pkt");
  EXPECT_TRUE(file.ok());
  return std::move(*file);
}

// Every kind of setting, for all products and for the row tile of the program of many rows.
std::vector<TunedSetting> many_settings(const OpGraph& graph) {
  std::vector<TunedSetting> settings = {{true, Op::kLeave, graph.hidden, graph.vocab, 24, Split::kAuto}};
  const Split splits[] = {Split::kColumns, Split::kRows, Split::kOne};
  for (uint32_t n = 0; n < graph.nodes.size(); ++n) {
    const Node& node = graph.nodes[n];
    if (is_leaf(node.op)) continue;
    TunedSetting setting{n % 2 == 0, node.op, graph.node(graph.inputs_of(NodeId(n))[0]).shape.cols, node.shape.cols,
                         n % 4 == 0 ? 0u : 48u, splits[n % 3]};
    const auto same = [&](const TunedSetting& s) {
      return s.many_rows == setting.many_rows && s.op == setting.op && s.inputs == setting.inputs && s.outputs == setting.outputs;
    };
    if (std::none_of(settings.begin(), settings.end(), same)) settings.push_back(setting);
  }
  return settings;
}

TEST(Tuning, OfSettingsIsUsedRecordedAndDerivedAgain) {
  const TestBundle plain(options_for("gemma3"));
  const auto plain_stages = derive_stages(open(plain));
  ASSERT_TRUE(plain_stages.ok()) << plain_stages.error().message;
  CompileOptions options = options_for("gemma3");
  options.plan = default_plan(Isa::kX86_64);
  options.plan->settings = many_settings(plain_stages->graph);
  const TunedSetting of_another_model{false, Op::kLinear, 12345, 67890, 32, Split::kAuto};
  options.plan->settings.push_back(of_another_model);
  const TestBundle tuned(options);

  const BundleFile file = open(tuned);
  const auto plan = plan_of(file);
  ASSERT_TRUE(plan.ok()) << plan.error().message;
  EXPECT_EQ(plan->settings.size() + 1, options.plan->settings.size()) << "all but that of another model";
  EXPECT_EQ(plan->part, options.plan->part);
  const auto stages = derive_stages(file);
  ASSERT_TRUE(stages.ok()) << stages.error().message;
  EXPECT_EQ(stages->programs[1].tiles.shape.token_row_tile, 24u);
  EXPECT_NE(print_schedule(stages->graph, stages->programs[0].tiles, stages->programs[0].schedule),
            print_schedule(plain_stages->graph, plain_stages->programs[0].tiles, plain_stages->programs[0].schedule));

  const std::vector<float> expected = logits_of(plain), found = logits_of(tuned);
  ASSERT_EQ(expected.size(), found.size());
  EXPECT_EQ(std::memcmp(expected.data(), found.data(), expected.size() * sizeof(float)), 0);
}

TEST(Tuning, SweepsWithTheBitsOfTheUntunedBundle) {
  const TestBundle bundle(options_for("llama"));
  SweepOptions options;
  options.bundle = bundle.path();
  options.part = default_part(Isa::kX86_64);
  options.seconds = 4;
  struct Sink : TuneSink {
    void progress(std::string_view, uint64_t, uint64_t) override {}
    bool cancelled() const override { return false; }
  } sink;
  const auto result = sweep(options, sink);
  ASSERT_TRUE(result.ok()) << result.error().message;
  const auto timed = std::count_if(result->trials.begin(), result->trials.end(), [](const Trial& trial) { return trial.timed; });
  EXPECT_GT(timed, 3);
  for (const Trial& trial : result->trials) EXPECT_TRUE(trial.timed || !trial.note.empty()) << to_text(trial.setting);
}

TEST(Tuning, PredictionsOfABundleAreThoseOfItsStages) {
  const TestBundle bundle(options_for("qwen3"));
  const BundleFile file = open(bundle);
  const auto stages = derive_stages(file);
  ASSERT_TRUE(stages.ok());
  const auto grids = predictions_of(file.build_record());
  ASSERT_TRUE(grids.ok()) << grids.error().message;
  const ProgramStages& few = stages->programs[0];
  const auto told = predicted_ns(*grids, {0, 4, 128, false, true});
  ASSERT_TRUE(told.has_value());
  EXPECT_DOUBLE_EQ(*told, predict_step(stages->graph, few.tiles, few.schedule, plan_of(file)->part, {4, 4, 128, 4}).step.value);
  EXPECT_TRUE(predicted_ns(*grids, {1, 64, 0, true, true}).has_value());
}

}  // namespace
}  // namespace plow
