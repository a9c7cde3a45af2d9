// The whole of a GPU's software on an emulated GPU: the bodies for teams of threads, the loop, the mailbox of
// the resident kernel, and the engine above, against the graph in double.
#include "runtime/resident_device.h"

#include "graph/evaluate.h"
#include "ops/sample/sample.h"
#include "ops/sample/team_body.h"
#include "packet/testing/seeded_toy.h"
#include "runtime/engine.h"
#include "runtime/model_pool.h"
#include "runtime/testing/emulated_driver.h"

#include <gtest/gtest.h>

#include <cmath>
#include <numeric>

namespace plow {
namespace {

using emulated::EmulatedDriver;
using emulated::EmulatedGroupTeam;
using emulated::EmulatedMatrixTeam;
using emulated::EmulatedOptions;
using emulated::EmulatedTapeTeam;
using emulated::EmulatedTeam;
using emulated::EmulatedWarpTeam;

// A kind of GPU: its threads' primitives, and an instruction set of that kind.
struct WavesOf32 {
  using Team = EmulatedTeam<32>;
  static constexpr Isa kIsa = Isa::kSm90a;
};
struct WarpsWithMatrixUnits {
  using Team = EmulatedWarpTeam;
  static constexpr Isa kIsa = Isa::kSm120;
};
struct WarpsWithTape {
  using Team = EmulatedTapeTeam;
  static constexpr Isa kIsa = Isa::kSm90a;
};
struct WarpsInGroups {
  using Team = EmulatedGroupTeam;
  static constexpr Isa kIsa = Isa::kSm90a;
};
struct WavesOf64 {
  using Team = EmulatedTeam<64>;
  static constexpr Isa kIsa = Isa::kGfx942;
};
struct WavesOf64WithMatrixUnits {
  using Team = EmulatedMatrixTeam;
  static constexpr Isa kIsa = Isa::kGfx950;
};

// Fibers take their time, so each suite is run on those kinds that differ in what it looks at.
template <class Gpu>
class ResidentDeviceOn : public testing::Test {};
using Gpus = testing::Types<WavesOf32, WarpsWithTape, WavesOf64, WavesOf64WithMatrixUnits>;
TYPED_TEST_SUITE(ResidentDeviceOn, Gpus);

template <class Gpu>
class ResidentDeviceWithProductsOn : public testing::Test {};
using Products = testing::Types<WavesOf32, WarpsWithMatrixUnits, WarpsWithTape, WarpsInGroups, WavesOf64WithMatrixUnits>;
TYPED_TEST_SUITE(ResidentDeviceWithProductsOn, Products);

template <class Gpu>
class ResidentDeviceWithWavesOn : public testing::Test {};
using Waves = testing::Types<WavesOf32, WavesOf64>;
TYPED_TEST_SUITE(ResidentDeviceWithWavesOn, Waves);

template <class Gpu = WavesOf32>
SeededToy gpu_toy(SeededToyOptions options = {}) {
  options.isa = Gpu::kIsa;
  SeededToy toy = make_seeded_toy(options);
  toy.tables.header.scratch_bytes =
      static_cast<uint32_t>(dev::sample_team_scratch_bytes(options.shape.vocab));
  return toy;
}

template <class Gpu = WavesOf32>
Engine engine_of(const SeededToy& toy, EmulatedOptions emulated = {}, EngineOptions options = {}) {
  emulated.n_workers = toy.tables.header.n_workers;
  emulated.isa = Gpu::kIsa;
  auto engine = Engine::create_on(toy.open(), toy.tape, options,
                                  std::make_unique<EmulatedDriver<typename Gpu::Team>>(emulated));
  PLOW_CHECK(engine.ok(), "{}", engine.error().message);
  return std::move(engine).value();
}

std::vector<uint32_t> some_tokens(uint32_t n, uint32_t vocab, uint32_t salt) {
  std::vector<uint32_t> tokens;
  for (uint32_t i = 0; i < n; ++i) tokens.push_back((i * i * 7 + i * 31 + salt) % vocab);
  return tokens;
}

std::vector<double> row_of(const Matrix& matrix, uint32_t row) {
  return {matrix.values.begin() + ptrdiff_t{row} * matrix.cols,
          matrix.values.begin() + ptrdiff_t{row + 1} * matrix.cols};
}

// The logits of every position of a sequence, in double.
std::vector<std::vector<double>> expected_logits(const SeededToy& toy, const std::vector<uint32_t>& tokens) {
  Evaluator oracle = Evaluator::create(toy.graph, toy.weights, 1).value();
  EvalStep step;
  step.spans = {{0, static_cast<uint32_t>(tokens.size()), 0, 0}};
  step.token_ids = tokens;
  step.sample_rows.resize(tokens.size());
  std::iota(step.sample_rows.begin(), step.sample_rows.end(), 0u);
  step.sampling.assign(tokens.size(), greedy_sampling());
  const Matrix logits = oracle.run_for(step, toy.graph.inputs_of(toy.graph.tokens)[0]);
  std::vector<std::vector<double>> rows;
  for (uint32_t r = 0; r < logits.rows; ++r) rows.push_back(row_of(logits, r));
  return rows;
}

// Submits the tokens in chunks and checks every row's logits. Activations are f32 and every sum of them is
// exact to some 2^-24 a term; logits are below 30.
void expect_sequence(Engine& engine, const SeededToy& toy, const std::vector<uint32_t>& tokens,
                     uint32_t chunk) {
  const auto expected = expected_logits(toy, tokens);
  const uint32_t slot = engine.open_slot().value();
  for (uint32_t first = 0; first < tokens.size(); first += chunk) {
    const uint32_t n = std::min<uint32_t>(chunk, static_cast<uint32_t>(tokens.size()) - first);
    std::vector<uint32_t> rows(n);
    std::iota(rows.begin(), rows.end(), 0u);
    const StepRequest request{slot, std::span(tokens).subspan(first, n), rows, greedy_sampling()};
    const auto result = engine.step(std::span(&request, 1), {1, true});
    ASSERT_TRUE(result.ok()) << result.error().message;
    for (uint32_t r = 0; r < n; ++r) {
      const std::vector<double>& row = expected[first + r];
      for (uint32_t c = 0; c < row.size(); ++c)
        ASSERT_NEAR(result->logits[size_t{r} * row.size() + c], row[c], 2e-4)
            << "position " << first + r << " token " << c;
      const auto best = static_cast<uint32_t>(std::max_element(row.begin(), row.end()) - row.begin());
      EXPECT_EQ(result->tokens[r].token, best);
    }
  }
  engine.close_slot(slot);
}

TYPED_TEST(ResidentDeviceOn, ComputesWhatTheGraphSays) {
  for (const uint32_t window : {0u, 6u}) {
    SeededToyOptions options;
    options.shape.window = window;
    options.n_workers = 3;
    const SeededToy toy = gpu_toy<TypeParam>(options);
    const auto tokens = some_tokens(15, options.shape.vocab, window);
    Engine engine = engine_of<TypeParam>(toy, {.seed = window});
    expect_sequence(engine, toy, tokens, 8);
    expect_sequence(engine, toy, tokens, 3);
  }
}

// Heads beyond a wave's columns, heads that are no multiple of 8, wide norms, many query heads of a KV head,
// more positions than one unit.
TYPED_TEST(ResidentDeviceWithProductsOn, ComputesOddShapesToo) {
  // A head of 256 columns is all that a wave of 32 lanes takes at once, also over more than one unit.
  const uint32_t wide_tokens = TypeParam::Team::kLanes == 32 ? 67 : 6;
  for (const auto& [shape, tokens] : {std::pair{ToyShape{1, 64, 6, 1, 10, 56, 101, 0}, 67u},
                                      {ToyShape{1, 1040, 2, 2, 256, 24, 67, 70}, wide_tokens}}) {
    SeededToyOptions options;
    options.shape = shape;
    options.max_context = 150;
    options.n_workers = 2;
    options.programs = {{{4, 4, 4, 4}, 16, 16, {}}, {{72, 72, 72, 16}, 16, 16, {}}};
    const SeededToy toy = gpu_toy<TypeParam>(options);
    Engine engine = engine_of<TypeParam>(toy);
    expect_sequence(engine, toy, some_tokens(tokens, shape.vocab, 3), tokens);
  }
}

TYPED_TEST(ResidentDeviceOn, ARowsBitsDoNotDependOnWhatSharesTheStep) {
  SeededToyOptions options;
  const SeededToy toy = gpu_toy<TypeParam>(options);
  Engine engine = engine_of<TypeParam>(toy);
  const auto tokens = some_tokens(5, options.shape.vocab, 9), other = some_tokens(5, options.shape.vocab, 4);
  std::vector<std::vector<float>> seen;
  const uint32_t last = 0;
  for (const uint32_t neighbours : {0u, 1u, 2u}) {
    std::vector<uint32_t> slots;
    for (uint32_t i = 0; i <= neighbours; ++i) slots.push_back(engine.open_slot().value());
    std::vector<float> logits;
    for (uint32_t t = 0; t < tokens.size(); ++t) {
      std::vector<StepRequest> requests;
      for (uint32_t i = 0; i <= neighbours; ++i)
        requests.push_back({slots[i], std::span(i == 0 ? tokens : other).subspan(t, 1), std::span(&last, 1),
                            greedy_sampling()});
      const auto result = engine.step(requests, {1, true});
      ASSERT_TRUE(result.ok()) << result.error().message;
      logits.insert(logits.end(), result->logits.begin(), result->logits.begin() + options.shape.vocab);
    }
    seen.push_back(logits);
    for (const uint32_t slot : slots) engine.close_slot(slot);
  }
  EXPECT_EQ(seen[0], seen[1]);
  EXPECT_EQ(seen[0], seen[2]);
}

// A prompt's rows alone, and behind those of others.
TYPED_TEST(ResidentDeviceWithProductsOn, APromptsBitsDoNotDependOnWhatSharesTheStep) {
  SeededToyOptions options;
  options.programs = {{{4, 4, 4, 4}, 16, 16, {}}, {{72, 72, 72, 16}, 16, 16, {}}};
  const SeededToy toy = gpu_toy<TypeParam>(options);
  Engine engine = engine_of<TypeParam>(toy);
  const auto tokens = some_tokens(20, options.shape.vocab, 9), other = some_tokens(23, options.shape.vocab, 4);
  const uint32_t last = 19;
  std::vector<std::vector<float>> seen;
  for (const uint32_t neighbours : {0u, 1u, 2u}) {
    std::vector<StepRequest> requests;
    for (uint32_t i = 0; i <= neighbours; ++i)
      requests.push_back({engine.open_slot().value(), i == neighbours ? tokens : other, std::span(&last, 1), greedy_sampling()});
    const auto result = engine.step(requests, {1, true});
    ASSERT_TRUE(result.ok()) << result.error().message;
    seen.emplace_back(result->logits.end() - options.shape.vocab, result->logits.end());
    for (const StepRequest& request : requests) engine.close_slot(request.slot);
  }
  EXPECT_EQ(seen[0], seen[1]);
  EXPECT_EQ(seen[0], seen[2]);
}

// Penalties read tokens that no step submitted.
TEST(ResidentDevice, TokensThatAreTakenOverAreInTheHistory) {
  SeededToyOptions options;
  options.max_context = 80;
  const SeededToy toy = gpu_toy(options);
  Engine engine = engine_of<WavesOf32>(toy);
  const uint32_t block = engine.block_tokens();
  const auto tokens = some_tokens(block + 1, options.shape.vocab, 3);
  SamplingParams sampling = greedy_sampling();
  sampling.repetition_penalty = 3;
  sampling.frequency_penalty = 1;
  sampling.prompt_tokens = 2;
  PrefixNames names(block, "");
  std::vector<StepToken> picked;
  for (const bool shared : {false, true}) {
    const uint32_t slot = engine.open_slot().value();
    const auto whole = names.of(tokens);
    if (shared) {
      ASSERT_EQ(engine.share_blocks(slot, tokens, whole).value(), block);
    }
    for (uint32_t at = engine.position(slot); at < block; at += 8) {
      const StepRequest prompt{slot, std::span(tokens).subspan(at, 8), {}, {}};
      ASSERT_TRUE(engine.step(std::span(&prompt, 1)).ok());
    }
    engine.name_blocks(slot, shared ? 1 : 0, whole.subspan(shared ? 1 : 0));
    const uint32_t row = 0;
    const StepRequest last{slot, std::span(tokens).last(1), std::span(&row, 1), sampling};
    const auto result = engine.step(std::span(&last, 1));
    ASSERT_TRUE(result.ok()) << result.error().message;
    picked.push_back(result->tokens[0]);
    if (shared) engine.close_slot(slot);  // the first one stays: another slot takes over from it
  }
  EXPECT_EQ(picked[0].token, picked[1].token);
  EXPECT_EQ(picked[0].logprob, picked[1].logprob);
}

TEST(ResidentDevice, WhatIsPlannedIsWhatIsAllocated) {
  for (const ToyShape& shape : {ToyShape{1, 1040, 2, 2, 256, 24, 67, 70}, ToyShape{2, 512, 4, 2, 64, 1024, 500, 0}}) {
    SeededToyOptions options;
    options.shape = shape;
    const SeededToy toy = gpu_toy(options);
    uint64_t allocated = 0;
    const Engine engine = engine_of<WavesOf32>(toy, {.device_bytes = &allocated});
    const auto planned = static_cast<double>(planned_bytes(engine.bundle(), 0, 0));
    EXPECT_NEAR(planned, static_cast<double>(allocated), 0.01 * static_cast<double>(allocated));
  }
}

// Every mode of sampling, against the reference in double on the very logits.
TYPED_TEST(ResidentDeviceWithWavesOn, SamplesAsTheReferenceDoes) {
  SeededToyOptions options;
  const SeededToy toy = gpu_toy<TypeParam>(options);
  Engine engine = engine_of<TypeParam>(toy);
  std::vector<SamplingParams> modes;
  std::vector<std::vector<uint32_t>> masks(30);
  const TokenBias biases[] = {{3, 20}, {options.shape.vocab - 1, -4}};
  for (uint32_t i = 0; i < 30; ++i) {
    SamplingParams p = greedy_sampling();
    for (uint32_t t = 0; t < options.shape.vocab; t += 32)
      masks[i].push_back(0x9249'2492u >> (i % 5) | 1u << (i * 7 % 32));  // a third of the tokens
    p.mask = i >= 16 ? masks[i].data() : nullptr;
    p.flags = i % 10 == 0 ? kSampleGreedy : 0u;
    p.temperature = 0.3f + 0.2f * static_cast<float>(i % 7);
    p.top_k = i % 3 == 0 ? 1 + i % 11 : 0;
    p.top_p = i % 4 == 0 ? 0.1f + 0.08f * static_cast<float>(i % 9) : 1.0f;
    p.min_p = i % 5 == 0 ? 0.02f * static_cast<float>(i % 13) : 0.0f;
    p.repetition_penalty = i % 6 == 0 ? 1.3f : 1.0f;
    p.presence_penalty = i % 7 == 0 ? 0.4f : 0.0f;
    p.frequency_penalty = i % 8 == 0 ? 0.2f : 0.0f;
    p.prompt_tokens = i % 5;
    p.seed = i * 7919;
    p.bias = biases;
    p.n_bias = i % 9 == 4 || i == 10 ? 2 : 0;
    p.n_ids = i % 9 == 5 || i == 0 ? options.shape.vocab / 2 : 0;
    p.n_top = i % 4 == 1 ? 1 + i % kMaxTop : 0;
    modes.push_back(p);
  }
  uint32_t differ = 0;
  for (uint32_t i = 0; i < modes.size(); ++i) {
    const auto tokens = some_tokens(7, options.shape.vocab, i);
    const uint32_t slot = engine.open_slot().value();
    const StepRequest prompt{slot, std::span(tokens).first(4), {}, {}};
    ASSERT_TRUE(engine.step(std::span(&prompt, 1)).ok());
    const uint32_t last = 2;
    StepRequest request{slot, std::span(tokens).subspan(4), std::span(&last, 1), modes[i]};
    const uint32_t given = 5;
    if (i % 13 == 7) request.given = std::span(&given, 1);
    const auto result = engine.step(std::span(&request, 1), {1, true});
    ASSERT_TRUE(result.ok()) << result.error().message;
    const std::vector<double> logits(result->logits.begin(), result->logits.end());
    if (!request.given.empty()) {
      modes[i].flags = kSampleGiven;
      modes[i].given = given;
    }
    const SampleResult expected = sample_reference(logits, tokens, modes[i]);
    const auto top = top_reference(logits, modes[i].n_top);
    ASSERT_EQ(result->tokens[0].top.size(), top.size());
    for (size_t t = 0; t < top.size(); ++t) {
      EXPECT_EQ(result->tokens[0].top[t].token, top[t].token);
      EXPECT_NEAR(static_cast<double>(result->tokens[0].top[t].logprob), top[t].logprob, 1e-5);
    }
    differ += result->tokens[0].token != expected.token ? 1 : 0;
    EXPECT_NEAR(result->tokens[0].logprob,
                logits[result->tokens[0].token] - logits[expected.token] + expected.logprob, 1e-5);
    engine.close_slot(slot);
  }
  EXPECT_EQ(differ, 0u);  // a draw may fall within rounding of a boundary; none of these does
}

TYPED_TEST(ResidentDeviceWithWavesOn, StepsWithoutTheHostGiveTheSameTokens) {
  SeededToyOptions options;
  const SeededToy toy = gpu_toy<TypeParam>(options);
  Engine engine = engine_of<TypeParam>(toy);
  const auto prompt = some_tokens(6, options.shape.vocab, 2);
  SamplingParams drawn = greedy_sampling();
  drawn.flags = 0;
  drawn.frequency_penalty = 0.3f;
  drawn.prompt_tokens = 6;
  std::vector<std::vector<uint32_t>> answers;
  for (const uint32_t at_once : {1u, 2u, 6u}) {
    const uint32_t slot = engine.open_slot().value();
    const StepRequest begin{slot, std::span(prompt).first(5), {}, {}};
    ASSERT_TRUE(engine.step(std::span(&begin, 1)).ok());
    std::vector<uint32_t> answer = {prompt[5]};
    const uint32_t row = 0;
    while (answer.size() < 7) {
      const uint32_t next = answer.back();
      const StepRequest request{slot, std::span(&next, 1), std::span(&row, 1), drawn};
      const auto result = engine.step(std::span(&request, 1), {at_once, false});
      ASSERT_TRUE(result.ok()) << result.error().message;
      for (const StepToken& token : result->tokens) answer.push_back(token.token);
    }
    answers.push_back(answer);
    engine.close_slot(slot);
  }
  EXPECT_EQ(answers[0], answers[1]);
  EXPECT_EQ(answers[0], answers[2]);
}

TYPED_TEST(ResidentDeviceWithWavesOn, AStepThatWaitsInVainFailsWithItsPacketAndTheEngineGoesOn) {
  SeededToy toy = gpu_toy<TypeParam>();
  ProgramTables& program = toy.tables.programs[1];
  for (Packet& packet : program.packets) {
    if (packet.body != static_cast<uint16_t>(Op::kRmsNorm) || packet.n_signals == 0) continue;
    packet.n_signals = 0;
    break;
  }
  EngineOptions options;
  options.deadline = std::chrono::milliseconds(50);
  Engine engine = engine_of<TypeParam>(toy, {}, options);
  const uint32_t slot = engine.open_slot().value();
  const auto tokens = some_tokens(10, 60, 1);
  for (int i = 0; i < 3; ++i) {
    const StepRequest request{slot, tokens, {}, {}};
    const auto result = engine.step(std::span(&request, 1));
    ASSERT_FALSE(result.ok());
    EXPECT_EQ(result.error().error_class, ErrorClass::kDevice);
    EXPECT_NE(result.error().message.find("of program 1 for counter"), std::string::npos)
        << result.error().message;
    EXPECT_EQ(engine.position(slot), 0u);
  }
  engine.close_slot(slot);
  expect_sequence(engine, toy, tokens, 2);  // program 0
}

TEST(ResidentDevice, AKernelThatEndedForWantOfWorkIsLaunchedAgain) {
  const SeededToy toy = gpu_toy();
  Engine engine = engine_of(toy);
  const auto tokens = some_tokens(4, 60, 1);
  expect_sequence(engine, toy, tokens, 2);
  std::this_thread::sleep_for(std::chrono::milliseconds(400));
  expect_sequence(engine, toy, tokens, 2);
}

TEST(ResidentDevice, ABundleForAnotherGpuIsRefusedWithBothNumbers) {
  const SeededToy toy = gpu_toy();
  auto engine =
      Engine::create_on(toy.open(), toy.tape, {},
                        std::make_unique<EmulatedDriver<EmulatedTeam<32>>>(EmulatedOptions{.n_workers = 5}));
  ASSERT_FALSE(engine.ok());
  EXPECT_NE(engine.error().message.find("2 workers"), std::string::npos) << engine.error().message;
  EXPECT_NE(engine.error().message.find("5 multiprocessors"), std::string::npos) << engine.error().message;
  EXPECT_EQ(engine.error().error_class, ErrorClass::kDevice);
  engine = Engine::create_on(
      toy.open(), toy.tape, {},
      std::make_unique<EmulatedDriver<EmulatedTeam<32>>>(EmulatedOptions{.isa = Isa::kSm120}));
  ASSERT_FALSE(engine.ok());
  EXPECT_NE(engine.error().message.find("sm_90a, and an emulated GPU runs sm_120"), std::string::npos)
      << engine.error().message;
}

TEST(ResidentDevice, AHeadThatIsTooWideForItsCacheIsRefused) {
  SeededToyOptions options;
  options.shape = ToyShape{1, 64, 2, 2, 320, 24, 67, 0};
  const SeededToy toy = gpu_toy(options);
  const auto engine = Engine::create_on(toy.open(), toy.tape, {},
                                        std::make_unique<EmulatedDriver<EmulatedTeam<32>>>(EmulatedOptions{}));
  ASSERT_FALSE(engine.ok());
  EXPECT_NE(engine.error().message.find("attention: a head has 320 columns"), std::string::npos)
      << engine.error().message;
}

TEST(ResidentDevice, ADeviceThatIsNamedIsNeverReplaced) {
  const SeededToy toy = gpu_toy();
  EngineOptions options;
  for (const char* device : {"cpu", "cuda:", "cuda:x", "hsa:0", "hsa:x", "gpu"}) {
    options.device = device;
    const auto engine = Engine::create(toy.open(), toy.tape, options);
    ASSERT_FALSE(engine.ok()) << device;
    EXPECT_EQ(engine.error().error_class, ErrorClass::kUsage);
    EXPECT_NE(engine.error().message.find(device), std::string::npos) << engine.error().message;
  }
}

}  // namespace
}  // namespace plow
