#include "interp/reference/machine.h"

#include "packet/testing/toy_bundle.h"

#include <gtest/gtest.h>

#include <cmath>
#include <random>

namespace plow::reference {
namespace {

SamplingParams greedy() {
  SamplingParams params{};
  params.flags = kSampleGreedy;
  params.temperature = 1;
  params.top_p = params.repetition_penalty = 1;
  return params;
}

// One step whose every span ends in a sample: {slot, first position, tokens}.
struct Part {
  uint32_t slot, first_position;
  std::vector<uint32_t> tokens;
};

StepInput step_of(const std::vector<Part>& parts, uint32_t program = 0, uint32_t n_steps = 1) {
  StepInput input;
  input.program = program;
  input.n_steps = n_steps;
  for (const Part& part : parts) {
    const auto first = static_cast<uint32_t>(input.token_ids.size());
    input.spans.push_back({first, static_cast<uint32_t>(part.tokens.size()), part.slot, part.first_position});
    input.token_ids.insert(input.token_ids.end(), part.tokens.begin(), part.tokens.end());
    input.sample_rows.push_back(static_cast<uint32_t>(input.token_ids.size()) - 1);
    input.sampling.push_back(greedy());
  }
  return input;
}

Machine machine_for(const BundleFile& bundle, const ToyBundle& toy, MachineOptions options) {
  options.slots = toy.tables.header.max_slots;
  return Machine::create(bundle, toy.tape, options).value();
}

std::string first_finding(const StepOutput& output) {
  return output.findings.empty()
             ? ""
             : std::string(finding_name(output.findings[0].kind)) + ": " + output.findings[0].text;
}

// A prompt in two chunks beside another sequence, then decoding of both, then a third joins.
std::vector<StepInput> mixed_steps() {
  return {step_of({{0, 0, {5, 9, 33, 71, 12, 8, 90}}, {1, 0, {17, 3}}}, 1),
          step_of({{1, 2, {44}}, {0, 7, {1, 2, 3, 4, 5}}}, 1), step_of({{0, 12, {60}}, {1, 3, {61}}}),
          step_of({{2, 0, {77}}, {1, 4, {62}}, {0, 13, {100}}}), step_of({{2, 1, {6}}})};
}

EvalStep eval_step_of(const StepInput& input) {
  return {input.spans, input.token_ids, input.sample_rows, input.sampling};
}

TEST(Machine, ComputesWhatTheGraphSays) {
  for (const uint32_t workers : {1u, 2u, 5u}) {
    ToyBundleOptions options;
    options.n_workers = workers;
    options.shape.window = 6;
    options.shape.layers = 3;
    const ToyBundle toy = make_toy_bundle(options);
    const BundleFile bundle = toy.open();
    Machine machine = machine_for(bundle, toy, {});
    Evaluator oracle = Evaluator::create(toy.graph, toy.weights, 3).value();
    for (const StepInput& input : mixed_steps()) {
      const auto output = machine.run(input);
      ASSERT_TRUE(output.ok()) << output.error().message;
      ASSERT_EQ(first_finding(*output), "");
      const std::vector<Matrix> values = oracle.run(eval_step_of(input));
      const NodeId logits = toy.graph.inputs_of(toy.graph.tokens)[0];
      const Matrix& expected = values[logits.value];
      ASSERT_EQ(output->logits.size(), expected.values.size());
      for (size_t i = 0; i < expected.values.size(); ++i) {
        // Activations are rounded to f32 some thirty times between values of about 1; logits are below 30.
        ASSERT_NEAR(output->logits[i], expected.values[i], 2e-4) << i;
      }
      for (size_t s = 0; s < input.sample_rows.size(); ++s) {
        EXPECT_EQ(output->sampled[0][s].token,
                  static_cast<uint32_t>(values[toy.graph.tokens.value].values[s]));
      }
    }
  }
}

}  // namespace
}  // namespace plow::reference
