#include "interp/reference/machine.h"

#include "interp/reference/memory.h"
#include "interp/reference/shadow.h"
#include "interp/reference/testing/steps.h"
#include "packet/testing/seeded_toy.h"

#include <gtest/gtest.h>

#include <cmath>
#include <random>
#include <set>

namespace plow::reference {
namespace {

Machine machine_for(const BundleFile& bundle, const SeededToy& toy, MachineOptions options) {
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

void expect_what_the_graph_says(bool fused) {
  // The GPUs' layouts of weights and cache as well as the CPU's.
  for (const auto& [workers, isa] : {std::pair{1u, Isa::kX86_64}, {2u, Isa::kSm90a}, {5u, Isa::kX86_64}, {5u, Isa::kSm120}}) {
    SeededToyOptions options;
    options.n_workers = workers;
    options.isa = isa;
    options.shape.window = 6;
    options.shape.layers = 3;
    options.shape.fused = fused;
    const SeededToy toy = make_seeded_toy(options);
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

TEST(Machine, ComputesWhatTheGraphSays) { expect_what_the_graph_says(false); }
TEST(Machine, ComputesWhatAGraphOfFusedOperatorsSays) { expect_what_the_graph_says(true); }

// Every policy, many seeds: the same bits, and nothing found.
void expect_the_same_bits_in_every_order(bool fused) {
  SeededToyOptions toy_options;
  toy_options.n_workers = 4;
  toy_options.shape.fused = fused;
  const SeededToy toy = make_seeded_toy(toy_options);
  const BundleFile bundle = toy.open();
  Machine machine = machine_for(bundle, toy, {});
  std::vector<std::vector<float>> expected;
  for (const StepInput& input : mixed_steps()) expected.push_back(machine.run(input)->logits);
  for (uint64_t order = 0; order < 200; ++order) {
    const auto policy = static_cast<Policy>(order % 5);
    machine.reset(policy, order);
    const std::vector<StepInput> steps = mixed_steps();
    for (size_t i = 0; i < steps.size(); ++i) {
      const StepOutput output = machine.run(steps[i]).value();
      ASSERT_EQ(first_finding(output), "") << "order " << order;
      ASSERT_EQ(output.logits, expected[i]) << "order " << order;
    }
  }
}

TEST(Machine, GivesTheSameBitsInEveryOrder) { expect_the_same_bits_in_every_order(false); }
TEST(Machine, GivesTheSameBitsOfFusedOperatorsInEveryOrder) { expect_the_same_bits_in_every_order(true); }

TEST(Machine, ChecksOrderWithoutArithmetic) {
  const SeededToy toy = make_seeded_toy({});
  const BundleFile bundle = toy.open();
  Machine machine = machine_for(bundle, toy, {.arithmetic = false});
  for (uint64_t order = 0; order < 1000; ++order) {
    machine.reset(static_cast<Policy>(order % 5), order);
    for (const StepInput& input : mixed_steps()) {
      const StepOutput output = machine.run(input).value();
      ASSERT_EQ(first_finding(output), "") << "order " << order;
      ASSERT_TRUE(output.logits.empty());
    }
  }
}

// Blocks anywhere in the pool, in any order, give the same bits as blocks in a row.
TEST(Machine, FollowsTheBlockTables) {
  const SeededToy toy = make_seeded_toy({});
  const BundleFile bundle = toy.open();
  Machine in_order = machine_for(bundle, toy, {});
  Machine shuffled = machine_for(bundle, toy, {});
  const uint32_t width = shuffled.table_width();
  std::vector<uint32_t> table(size_t{3} * width);
  for (uint32_t i = 0; i < table.size(); ++i) table[i] = (i * 4 + 7) % static_cast<uint32_t>(table.size());
  for (StepInput input : mixed_steps()) {
    const StepOutput expected = in_order.run(input).value();
    input.block_tables.assign(bundle.kv_groups().size(), table);
    const StepOutput output = shuffled.run(input).value();
    ASSERT_EQ(first_finding(output), "");
    EXPECT_EQ(output.logits, expected.logits);
  }
}

// Slot 1 goes on where slot 0's first block of 16 positions ends.
TEST(Machine, ReadsAPrefixFromAnotherSlotsBlocksAndNoticesAWrongOne) {
  const SeededToy toy = make_seeded_toy({});
  const BundleFile bundle = toy.open();
  const std::vector<uint32_t> prefix = {1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16};
  for (const bool right : {true, false}) {
    Machine machine = machine_for(bundle, toy, {});
    const uint32_t width = machine.table_width();
    std::vector<uint32_t> table(size_t{3} * width);
    for (uint32_t i = 0; i < table.size(); ++i) table[i] = i;
    table[width] = table[0];
    std::vector<uint32_t> prompt = prefix;
    prompt.push_back(40);
    StepInput input = step_of({{0, 0, prompt}}, 1);
    input.block_tables.assign(bundle.kv_groups().size(), table);
    const StepOutput whole = machine.run(input).value();
    std::vector<uint32_t> claimed = prefix;
    if (!right) claimed[3] = 63;
    machine.set_history(1, claimed);
    input = step_of({{1, 16, {40}}});
    input.block_tables.assign(bundle.kv_groups().size(), table);
    const StepOutput shared = machine.run(input).value();
    if (right) {
      EXPECT_EQ(first_finding(shared), "");
      EXPECT_EQ(shared.logits, whole.logits);
    } else {
      EXPECT_NE(first_finding(shared).find("position 3 of slot 1, column 0, and what is there was written by "
                                           "a step before for another token"),
                std::string::npos)
          << first_finding(shared);
    }
  }
}

TEST(Machine, NoticesACacheThatWasNeverFilled) {
  const SeededToy toy = make_seeded_toy({});
  const BundleFile bundle = toy.open();
  Machine machine = machine_for(bundle, toy, {});
  const StepOutput output = machine.run(step_of({{0, 3, {9}}})).value();
  EXPECT_EQ(first_finding(output).substr(0, 30), "read of what was never written");
  EXPECT_EQ(verified(output).error().error_class, ErrorClass::kVerification);
  EXPECT_EQ(machine.run(step_of({{0, 0, {9}}})).error().error_class, ErrorClass::kVerification);
  machine.reset(Policy::kRandom, 1);
  EXPECT_TRUE(verified(machine.run(step_of({{0, 0, {9}}})).value()).ok());
}

TEST(Machine, DrawsTheSameTokensWhateverTheBatch) {
  const SeededToy toy = make_seeded_toy({});
  const BundleFile bundle = toy.open();
  StepInput alone = step_of({{1, 0, {3, 4, 5}}}, 0),
            together = step_of({{0, 0, {9, 9}}, {1, 0, {3, 4, 5}}, {2, 0, {8}}}, 1);
  std::set<uint32_t> tokens;
  for (uint64_t seed = 0; seed < 12; ++seed) {
    SamplingParams params = greedy();
    params.flags = 0;
    params.temperature = 3;
    params.seed = seed;
    alone.sampling.assign(1, params);
    together.sampling.assign(3, params);
    Machine machine = machine_for(bundle, toy, {});
    const Sampled one = machine.run(alone).value().sampled[0][0];
    machine.reset(Policy::kRandom, seed);
    EXPECT_EQ(machine.run(together).value().sampled[0][1].token, one.token);
    tokens.insert(one.token);
  }
  EXPECT_GT(tokens.size(), 4u);
}

TEST(Machine, RefusesInputsThatTheHostMayNotGive) {
  const SeededToy toy = make_seeded_toy({});
  const BundleFile bundle = toy.open();
  Machine machine = machine_for(bundle, toy, {.context = 32});
  const auto message = [&](const StepInput& input) {
    const auto output = machine.run(input);
    return output.ok() ? "" : output.error().message;
  };
  const auto edited = [](const auto& edit) {
    StepInput input = step_of({{0, 0, {1, 2}}, {1, 0, {3}}});
    edit(input);
    return input;
  };
  const auto expect = [&](const std::string& part, const auto& edit) {
    const std::string got = message(edited(edit));
    EXPECT_NE(got.find(part), std::string::npos) << "wanted: " << part << "\ngot: " << got;
  };
  expect("program 7", [](StepInput& i) { i.program = 7; });
  expect("5 rows, 2 samples", [](StepInput& i) { i.token_ids = {1, 2, 3, 4, 5}; });
  expect("0 steps", [](StepInput& i) { i.n_steps = 0; });
  expect("span 1 has rows [1, +1)", [](StepInput& i) { i.spans[1].first_row = 1; });
  expect("span 1 has slot 0", [](StepInput& i) { i.spans[1].slot = 0; });
  expect("span 1 has slot 9", [](StepInput& i) { i.spans[1].slot = 9; });
  expect("reaches position 32", [](StepInput& i) { i.spans[1].first_position = 32; });
  expect("spans have 2 rows", [](StepInput& i) { i.spans.pop_back(); });
  expect("token 101 of 101", [](StepInput& i) { i.token_ids[0] = 101; });
  expect("sample 0 is of row 3", [](StepInput& i) { i.sample_rows[0] = 3; });
  expect("has temperature 0", [](StepInput& i) { i.sampling[1].flags = 0, i.sampling[1].temperature = 0; });
  expect("several steps need", [](StepInput& i) { i.n_steps = 2; });
  expect("block tables must be", [](StepInput& i) { i.block_tables = {{1, 2, 3}}; });
  expect("is 6 of 6", [](StepInput& i) { i.block_tables = {{0, 1, 6, 3, 4, 5}}; });
  expect("tables of slots 0 and 1", [](StepInput& i) { i.block_tables = {{0, 1, 0, 3, 4, 5}}; });
  EXPECT_EQ(message(edited([](StepInput&) {})), "");
  EXPECT_NE(Machine::create(bundle, std::span(toy.tape).first(64), {})
                .error()
                .message.find("the tape has 64 bytes"),
            std::string::npos);
  EXPECT_NE(Machine::create(bundle, toy.tape, {.slots = 4}).error().message.find("4 slots"),
            std::string::npos);
}

TEST(Memory, IsNotANumberUntilItIsWritten) {
  const SeededToy toy = make_seeded_toy({});
  const BundleFile bundle = toy.open();
  Memory memory(bundle, toy.tape, std::vector<uint32_t>{2});
  const auto& tensors = bundle.programs()[0].tensors;
  const auto activation = std::find_if(tensors.begin(), tensors.end(),
                                       [](const TensorEntry& t) { return t.space == Space::kArena; });
  const std::vector<double> values = {1, 2, 3};
  std::vector<double> read(3);
  memory.store(*activation, 1, 4, 7, values.data());
  memory.load(*activation, 1, 4, 7, read.data());
  EXPECT_EQ(read, values);
  memory.poison_arena();
  memory.load(*activation, 1, 4, 7, read.data());
  for (const double value : read) EXPECT_TRUE(std::isnan(value));
  EXPECT_TRUE(std::isnan(memory.load_kv(0, 5)));
  memory.store_kv(0, 5, 0.5);
  EXPECT_EQ(memory.load_kv(0, 5), 0.5);
}

TEST(Shadow, ForgetsAStepButNotTheCache) {
  Shadow shadow(4, 1);
  const std::vector<uint32_t> clock = {1};
  const Accessor by{0, 1, clock};
  shadow.begin_step();
  EXPECT_FALSE(shadow.write(0, 2, {7, 0, 0}, by));
  EXPECT_FALSE(shadow.read(0, 2, {7, 0, 0}, true, by));
  shadow.begin_step();
  EXPECT_EQ(shadow.read(1, 1, {7, 0, 0}, true, by)->kind, FindingKind::kNeverWritten);
  EXPECT_FALSE(shadow.read(1, 1, {7, 0, 0}, false, by));
  EXPECT_EQ(shadow.read(1, 1, {8, 0, 0}, false, by)->kind, FindingKind::kWrongContent);
  EXPECT_EQ(shadow.read(2, 1, {7, 0, 0}, false, by)->kind, FindingKind::kNeverWritten);
}

}  // namespace
}  // namespace plow::reference
