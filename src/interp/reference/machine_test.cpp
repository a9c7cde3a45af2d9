#include "interp/reference/machine.h"

#include "interp/reference/testing/steps.h"
#include "packet/testing/toy_bundle.h"

#include <gtest/gtest.h>

#include <cmath>
#include <random>

namespace plow::reference {
namespace {

Machine machine_for(const BundleFile& bundle, const ToyBundle& toy, MachineOptions options) {
  options.slots = toy.tables.header.max_slots;
  return Machine::create(bundle, toy.tape, options).value();
}

std::string first_finding(const StepOutput& output) {
  return output.findings.empty()
             ? ""
             : std::string(finding_name(output.findings[0].kind)) + ": " + output.findings[0].text;
}

EvalStep eval_step_of(const StepInput& input) {
  return {input.spans, input.token_ids, input.sample_rows, input.sampling};
}

// The same step once more, one position further, on the tokens that it has sampled.
void feed_back(EvalStep& step, const Matrix& tokens) {
  for (uint32_t s = 0; s < step.sample_rows.size(); ++s)
    step.token_ids[step.sample_rows[s]] = static_cast<uint32_t>(tokens.values[s]);
  for (Span& span : step.spans) ++span.first_position;
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
      ASSERT_EQ(output->sampled.size(), input.n_steps);
      EvalStep step = eval_step_of(input);
      for (uint32_t k = 0; k < input.n_steps; ++k) {
        const std::vector<Matrix> values = oracle.run(step);
        const Matrix& tokens = values[toy.graph.tokens.value];
        for (size_t s = 0; s < input.sample_rows.size(); ++s)
          EXPECT_EQ(output->sampled[k][s].token, static_cast<uint32_t>(tokens.values[s]));
        feed_back(step, tokens);
        if (k + 1 < input.n_steps) continue;
        const Matrix& expected = values[toy.graph.inputs_of(toy.graph.tokens)[0].value];
        ASSERT_EQ(output->logits.size(), expected.values.size());
        // Activations are rounded to f32 some fifty times between values of about 1; logits are below 30.
        for (size_t i = 0; i < expected.values.size(); ++i)
          ASSERT_NEAR(output->logits[i], expected.values[i], 2e-4) << i;
      }
    }
  }
}

}  // namespace
}  // namespace plow::reference
