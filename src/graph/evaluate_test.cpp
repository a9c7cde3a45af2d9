// The evaluator's own promises: how a sequence is cut into steps, and what else is in a step, changes
// nothing.
#include "graph/evaluate.h"

#include "graph/testing/toy_graph.h"

#include <gtest/gtest.h>

#include <cmath>
#include <functional>

namespace plow {
namespace {

// Numbers that depend on name and place; the same for any cut into rows.
class MadeUpWeights final : public WeightSource {
 public:
  Status read_rows(const std::string& name, uint32_t first, uint32_t count, uint32_t cols,
                   float* out) const override {
    if (name == missing_) return input_error("no " + name);
    const auto phase = static_cast<double>(std::hash<std::string>{}(name) % 1000);
    for (size_t i = 0; i < size_t{count} * cols; ++i) {
      out[i] = static_cast<float>(std::sin(phase + 1.7 * static_cast<double>(size_t{first} * cols + i)) /
                                  std::sqrt(cols));
    }
    return {};
  }
  std::string missing_;
};

class EvaluatorTest : public testing::Test {
 protected:
  EvaluatorTest() : graph_(make_graph()) {}

  static OpGraph make_graph() {
    ToyShape shape;
    shape.window = 3;
    Result<OpGraph> graph = ToyModel(shape).build();
    PLOW_CHECK(graph.ok(), "{}", graph.error().message);
    return std::move(graph).value();
  }

  Evaluator make() const {
    Result<Evaluator> evaluator = Evaluator::create(graph_, MadeUpWeights(), 4);
    PLOW_CHECK(evaluator.ok(), "{}", evaluator.error().message);
    return std::move(evaluator).value();
  }

  // Tokens of a sequence, any.
  static uint32_t token(uint32_t sequence, uint32_t position) {
    return (31 * sequence + 7 * position + 3) % 101;
  }

  // Adds positions [begin, end) of a sequence to a step; every row is sampled.
  static void extend(EvalStep& step, uint32_t slot, uint32_t begin, uint32_t end) {
    const auto first_row = static_cast<uint32_t>(step.token_ids.size());
    step.spans.push_back({first_row, end - begin, slot, begin});
    for (uint32_t position = begin; position < end; ++position) {
      step.sample_rows.push_back(static_cast<uint32_t>(step.token_ids.size()));
      step.token_ids.push_back(token(slot, position));
      SamplingParams greedy{};
      greedy.flags = kSampleGreedy;
      greedy.repetition_penalty = 1;
      step.sampling.push_back(greedy);
    }
  }

  Matrix logits(Evaluator& evaluator, const EvalStep& step) const {
    return evaluator.run(step)[graph_.inputs_of(graph_.tokens)[0].value];
  }

  // Of a whole sequence in one step.
  Matrix whole(uint32_t slot, uint32_t length) const {
    Evaluator evaluator = make();
    EvalStep step;
    extend(step, slot, 0, length);
    return logits(evaluator, step);
  }

  static void expect_rows(const Matrix& found, uint32_t first, const Matrix& expected,
                          uint32_t expected_first, uint32_t count) {
    for (uint32_t r = 0; r < count; ++r) {
      for (uint32_t c = 0; c < found.cols; ++c)
        ASSERT_EQ(found.row(first + r)[c], expected.row(expected_first + r)[c]) << r;
    }
  }

  OpGraph graph_;
};

TEST_F(EvaluatorTest, ChunksOfAPromptGiveTheSameBitsAsTheWhole) {
  const Matrix expected = whole(1, 11);
  Evaluator evaluator = make();
  for (const auto& [begin, end] :
       std::vector<std::pair<uint32_t, uint32_t>>{{0, 1}, {1, 5}, {5, 6}, {6, 11}}) {
    EvalStep step;
    extend(step, 1, begin, end);
    expect_rows(logits(evaluator, step), 0, expected, begin, end - begin);
  }
}

TEST_F(EvaluatorTest, SequencesOfAStepDoNotSeeEachOther) {
  Evaluator evaluator = make();
  EvalStep prompts;
  extend(prompts, 2, 0, 5);
  extend(prompts, 0, 0, 9);
  const Matrix first = logits(evaluator, prompts);
  expect_rows(first, 0, whole(2, 5), 0, 5);
  expect_rows(first, 5, whole(0, 9), 0, 9);
  EvalStep mixed;  // a decode row, a prompt of a third sequence, a chunk
  extend(mixed, 0, 9, 10);
  extend(mixed, 3, 0, 4);
  extend(mixed, 2, 5, 8);
  const Matrix second = logits(evaluator, mixed);
  expect_rows(second, 0, whole(0, 10), 9, 1);
  expect_rows(second, 1, whole(3, 4), 0, 4);
  expect_rows(second, 5, whole(2, 8), 5, 3);
}

TEST_F(EvaluatorTest, ASequenceMayGoBackAndOn) {
  Evaluator evaluator = make();
  EvalStep far;
  extend(far, 1, 0, 8);
  evaluator.run(far);
  EvalStep again;
  extend(again, 1, 3, 6);
  expect_rows(logits(evaluator, again), 0, whole(1, 6), 3, 3);
}

TEST_F(EvaluatorTest, OneNodeAloneIsTheSameAsAmongAll) {
  EvalStep step;
  extend(step, 1, 0, 6);
  for (const NodeId node : {graph_.inputs_of(graph_.tokens)[0], graph_.tokens, NodeId(8)}) {
    Evaluator all = make();
    Evaluator one = make();
    EXPECT_EQ(all.run(step)[node.value].values, one.run_for(step, node).values);
  }
}

TEST_F(EvaluatorTest, ANumberAddedToAWeightIsAddedToEveryValueInF32) {
  GraphBuilder b;
  const NodeId table = b.weight("table", DType::kF32, 3, 2);
  const NodeId x = b.add(Op::kEmbed, {table, b.step_input(StepColumn::kTokenIds)});
  const NodeId plain = b.add(Op::kBiasAdd, {x, b.weight("bias", DType::kF32, 1, 2)});
  const NodeId raised = b.add(Op::kBiasAdd, {x, b.weight("bias", DType::kF32, 1, 2, 0.3f)});
  const NodeId rows =
      b.add(Op::kGatherRows, {b.add(Op::kAdd, {plain, raised}), b.step_input(StepColumn::kSampleRows)});
  const OpGraph graph = b.finish(b.add(Op::kSample, {rows}), 2, 2, 1, 8).value();
  Evaluator evaluator = Evaluator::create(graph, MadeUpWeights(), 1).value();
  EvalStep step;
  extend(step, 0, 0, 1);
  step.token_ids = {1};
  const std::vector<Matrix> values = evaluator.run(step);
  float bias[2];
  ASSERT_TRUE(MadeUpWeights().read_rows("bias", 0, 1, 2, bias).ok());
  for (uint32_t c = 0; c < 2; ++c) {
    EXPECT_EQ(values[plain.value].values[c], values[x.value].values[c] + bias[c]);
    EXPECT_EQ(values[raised.value].values[c], values[x.value].values[c] + (bias[c] + 0.3f));
  }
}

TEST_F(EvaluatorTest, AWeightThatCannotBeReadIsTheSourcesError) {
  MadeUpWeights weights;
  weights.missing_ = graph_.weights.back().name;
  const Result<Evaluator> evaluator = Evaluator::create(graph_, weights, 1);
  ASSERT_FALSE(evaluator.ok());
  EXPECT_EQ(evaluator.error().message, "no " + weights.missing_);
}

}  // namespace
}  // namespace plow
