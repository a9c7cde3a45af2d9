// The graph of every tiny checkpoint, in the float64 evaluator, against the logits that transformers gave in
// float64 (tests/golden/models, made by tools/references/make_references.py).
#include "checkpoint/checkpoint.h"
#include "graph/evaluate.h"
#include "models/checkpoint_weights.h"
#include "models/models.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <numeric>
#include <set>
#include <tuple>

namespace plow {
namespace {

namespace fs = std::filesystem;

const fs::path kGolden = fs::path(PLOW_SOURCE_DIR) / "tests/golden/models";
const fs::path kModels = fs::path(PLOW_SOURCE_DIR) / "build/models";
const fs::path kTiny = fs::path(PLOW_SOURCE_DIR) / "build/fixtures/tiny";

struct GoldenRow {
  uint32_t position;
  std::vector<uint32_t> ids;
  std::vector<double> logits;
};

struct GoldenPrompt {
  std::vector<uint32_t> ids;
  std::vector<uint32_t> greedy;
  std::vector<GoldenRow> rows;
};

std::vector<uint32_t> ids_of(const JsonValue& array) {
  std::vector<uint32_t> out;
  for (const JsonValue& id : *array.as_array()) out.push_back(static_cast<uint32_t>(*id.as_uint()));
  return out;
}

std::vector<GoldenPrompt> read_golden(const std::string& name) {
  const Result<std::string> text = read_text_file(kGolden / (name + ".json"));
  EXPECT_TRUE(text.ok());
  const Result<JsonValue> golden = parse_json(*text, name + ".json");
  std::vector<GoldenPrompt> prompts;
  for (const JsonValue& value : *golden->find("prompts")->as_array()) {
    GoldenPrompt prompt{ids_of(*value.find("ids")), ids_of(*value.find("greedy")), {}};
    for (const JsonValue& row : *value.find("logits")->as_array()) {
      GoldenRow golden_row{
          static_cast<uint32_t>(*row.find("position")->as_uint()), ids_of(*row.find("top_ids")), {}};
      for (const JsonValue& logit : *row.find("top_logits")->as_array())
        golden_row.logits.push_back(*logit.as_number());
      prompt.rows.push_back(std::move(golden_row));
    }
    prompts.push_back(std::move(prompt));
  }
  return prompts;
}

EvalStep step_of(uint32_t slot, uint32_t first_position, std::span<const uint32_t> ids,
                 std::vector<uint32_t> sample_rows) {
  EvalStep step;
  step.spans = {{0, static_cast<uint32_t>(ids.size()), slot, first_position}};
  step.token_ids.assign(ids.begin(), ids.end());
  SamplingParams greedy{};
  greedy.flags = kSampleGreedy;
  greedy.repetition_penalty = 1;
  step.sampling.assign(sample_rows.size(), greedy);
  step.sample_rows = std::move(sample_rows);
  return step;
}

// The logits of every row of a prompt followed by the tokens that it must give.
Matrix logits_of(const OpGraph& graph, const Checkpoint& checkpoint, const std::vector<uint32_t>& tokens) {
  Result<Evaluator> evaluator = Evaluator::create(graph, CheckpointWeights(checkpoint), 1);
  PLOW_CHECK(evaluator.ok(), "{}", evaluator.error().message);
  std::vector<uint32_t> rows(tokens.size());
  std::iota(rows.begin(), rows.end(), 0u);
  return evaluator->run_for(step_of(0, 0, tokens, rows), graph.inputs_of(graph.tokens)[0]);
}

// The graph holds its attributes as floats, transformers used doubles: each is off by half a unit in the last
// place at most. A kind of attribute has the same value in all layers, and so the same rounding: one unit up
// in all of them moves the logits, to first order, by at least twice what the rounding did. These are the
// graphs with one kind moved; short binary fractions such as 1/4 were never rounded.
std::vector<OpGraph> graphs_with_moved_attributes(const OpGraph& graph) {
  std::set<std::tuple<Op, size_t, uint32_t>> kinds;
  for (const Node& node : graph.nodes) {
    if (is_leaf(node.op)) continue;
    const auto attributes = op_def(node.op).attributes;
    for (size_t i = 0; i < attributes.size(); ++i) {
      const bool rounded = attributes[i].kind == AttributeKind::kF32 && (node.attributes[i] & 0xfff) != 0;
      if (rounded) kinds.insert({node.op, i, node.attributes[i]});
    }
  }
  std::vector<OpGraph> moved;
  for (const auto& [op, index, bits] : kinds) {
    moved.push_back(graph);
    for (Node& node : moved.back().nodes) {
      if (node.op == op && node.attributes[index] == bits) node.attributes[index] += 1;
    }
  }
  return moved;
}

// Half a unit of the ninth digit, to which golden logits are written.
double printing_error(double value) {
  return 0.5 * std::pow(10.0, std::floor(std::log10(std::abs(value))) - 8);
}

// Sums of a few thousand products of numbers of order 1 to 10 in double, differently ordered, through a few
// layers.
constexpr double kDoubleRounding = 1e-11;

void expect_golden(const OpGraph& graph, const Checkpoint& checkpoint, const GoldenPrompt& prompt) {
  std::vector<uint32_t> tokens = prompt.ids;
  tokens.insert(tokens.end(), prompt.greedy.begin(), prompt.greedy.end());
  const Matrix logits = logits_of(graph, checkpoint, tokens);
  Matrix bound(logits.rows, logits.cols);
  for (const OpGraph& moved : graphs_with_moved_attributes(graph)) {
    const Matrix other = logits_of(moved, checkpoint, tokens);
    for (size_t i = 0; i < bound.values.size(); ++i)
      bound.values[i] += std::abs(other.values[i] - logits.values[i]);
  }
  for (const GoldenRow& row : prompt.rows) {
    for (size_t i = 0; i < row.ids.size(); ++i) {
      const double tolerance =
          bound.row(row.position)[row.ids[i]] + printing_error(row.logits[i]) + kDoubleRounding;
      EXPECT_NEAR(logits.row(row.position)[row.ids[i]], row.logits[i], tolerance)
          << "position " << row.position;
    }
  }
  for (size_t i = 0; i < prompt.greedy.size(); ++i) {
    const double* row = logits.row(static_cast<uint32_t>(prompt.ids.size() - 1 + i));
    EXPECT_EQ(static_cast<uint32_t>(std::max_element(row, row + logits.cols) - row), prompt.greedy[i])
        << "token " << i;
  }
}

class TinyGoldenLogits : public testing::TestWithParam<const char*> {};

TEST_P(TinyGoldenLogits, OfTheGraphAreThoseOfTransformers) {
  const std::string folder = GetParam();
  const std::string golden =
      folder == "llama-f16" || folder == "llama-f32" || folder == "llama-sharded" ? "llama" : folder;
  const Result<Checkpoint> checkpoint = load_checkpoint(kTiny / folder);
  ASSERT_TRUE(checkpoint.ok()) << checkpoint.error().message
                               << " (scripts/test.sh makes the tiny checkpoints)";
  const Result<OpGraph> graph = build_model(*checkpoint, {});
  ASSERT_TRUE(graph.ok()) << graph.error().message;
  const std::vector<GoldenPrompt> prompts = read_golden(golden);
  ASSERT_FALSE(prompts.empty());
  for (const GoldenPrompt& prompt : prompts) expect_golden(*graph, *checkpoint, prompt);
}

INSTANTIATE_TEST_SUITE_P(All, TinyGoldenLogits,
                         testing::Values("llama", "llama-f16", "llama-f32", "llama-sharded", "llama-tied",
                                         "llama-mha", "llama-odd", "llama-linear", "llama-rope3",
                                         "llama-yarn", "mistral", "qwen2", "qwen3", "gemma3", "gemma3-linear",
                                         "gemma3-softcap"),
                         [](const auto& instance) {
                           std::string name = instance.param;
                           std::ranges::replace(name, '-', '_');
                           return name;
                         });

// The first tokens of a prompt and its answer.
GoldenPrompt shortened(const GoldenPrompt& prompt, size_t n_tokens) {
  GoldenPrompt out = prompt;
  out.ids.resize(std::min(out.ids.size(), n_tokens));
  out.greedy.resize(std::min(out.greedy.size(), n_tokens - out.ids.size()));
  std::erase_if(out.rows, [&](const GoldenRow& row) { return row.position >= n_tokens; });
  return out;
}

// The whole model, on the two short prompts whose logits were computed in float64. Other lengths are the
// business of tests/e2e.
TEST(GoldenLogits, OfSmolLm2AreThoseOfTransformers) {
  const Result<Checkpoint> checkpoint = load_checkpoint(kModels / "smollm2-135m/checkpoint");
  ASSERT_TRUE(checkpoint.ok()) << checkpoint.error().message
                               << " (scripts/fetch_model.sh smollm2-135m fetches it)";
  const Result<OpGraph> graph = build_model(*checkpoint, {});
  ASSERT_TRUE(graph.ok()) << graph.error().message;
  size_t tested = 0;
  for (const GoldenPrompt& prompt : read_golden("smollm2-135m")) {
    if (prompt.rows.empty() || prompt.ids.size() > 20 || prompt.ids.size() < 5) continue;
    expect_golden(*graph, *checkpoint, shortened(prompt, 24));
    ++tested;
  }
  EXPECT_EQ(tested, 2u);
}

}  // namespace
}  // namespace plow
