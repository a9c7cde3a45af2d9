#include "runtime/engine.h"

#include "runtime/tiny_rig.h"

#include <gtest/gtest.h>

#include <cmath>
#include <numeric>

namespace plow {
namespace {

class EngineTest : public TinyEngineTest {
 protected:
  Error refused(const EngineOptions& options) {
    const auto engine = make_tiny_engine(bundle_, options);
    EXPECT_FALSE(engine.ok());
    return engine.ok() ? Error{} : engine.error();
  }
};

std::vector<uint32_t> some_tokens(size_t n, uint32_t seed) {
  std::vector<uint32_t> tokens(n);
  for (size_t i = 0; i < n; ++i)
    tokens[i] = static_cast<uint32_t>((i * i * 7 + i * 3 + seed) % TinyModel::kVocab);
  return tokens;
}

std::vector<uint32_t> all_rows(size_t n) {
  std::vector<uint32_t> rows(n);
  std::iota(rows.begin(), rows.end(), 0u);
  return rows;
}

// Feeds `tokens` in chunks and returns the logits of every row.
std::vector<float> feed(Engine& engine, uint32_t slot, std::span<const uint32_t> tokens, size_t chunk) {
  std::vector<float> logits;
  for (size_t first = 0; first < tokens.size(); first += chunk) {
    const auto part = tokens.subspan(first, std::min(chunk, tokens.size() - first));
    const auto rows = all_rows(part.size());
    const StepRequest request{slot, part, rows, greedy_sampling()};
    auto result = engine.step(std::span(&request, 1), {1, true});
    EXPECT_TRUE(result.ok()) << (result.ok() ? "" : result.error().message);
    logits.insert(logits.end(), result->logits.begin(), result->logits.end());
  }
  return logits;
}

// Logits are sums of tens of terms below 10 after some ten layers of them; float errors stay far below this,
// a wrong mask or rotation far above.
constexpr double kTolerance = 2e-4;

void expect_logits(const std::vector<float>& logits, const std::vector<std::vector<double>>& expected,
                   double tolerance) {
  ASSERT_EQ(logits.size(), expected.size() * TinyModel::kVocab);
  for (size_t i = 0; i < logits.size(); ++i) {
    ASSERT_NEAR(static_cast<double>(logits[i]), expected[i / TinyModel::kVocab][i % TinyModel::kVocab],
                tolerance)
        << "position " << i / TinyModel::kVocab << ", token " << i % TinyModel::kVocab;
  }
}

TEST_F(EngineTest, LogitsAreTheModelsAtEveryPositionAndLevel) {
  const auto tokens = some_tokens(120, 5);
  const auto expected = model_.logits(tokens);
  for (IsaLevel level : available_isa_levels()) {
    EngineOptions options;
    options.isa = level;
    Engine engine = make(options);
    EXPECT_EQ(engine.isa_level(), level);
    const uint32_t slot = *engine.open_slot();
    // bf16 activations are off by up to 2^-8 of themselves.
    expect_logits(feed(engine, slot, tokens, 9), expected, level == IsaLevel::kAvx512Bf16 ? 0.5 : kTolerance);
  }
}

TEST_F(EngineTest, ChunksDoNotChangeABit) {
  const auto tokens = some_tokens(100, 5);
  Engine engine = make();
  std::vector<float> first;
  for (size_t chunk : {1u, 2u, 3u, 4u, 5u, 7u, 9u}) {
    const uint32_t slot = *engine.open_slot();
    const auto logits = feed(engine, slot, tokens, chunk);
    if (first.empty()) first = logits;
    ASSERT_EQ(std::memcmp(logits.data(), first.data(), first.size() * sizeof(float)), 0)
        << "chunks of " << chunk;
    engine.close_slot(slot);
  }
}

TEST_F(EngineTest, SequencesThatShareAStepDoNotChangeEachOthersBits) {
  const auto a = some_tokens(60, 1), b = some_tokens(60, 2), c = some_tokens(60, 3);
  Engine engine = make();
  const uint32_t alone = *engine.open_slot();
  const auto expected = feed(engine, alone, a, 4);
  engine.close_slot(alone);
  const uint32_t slots[] = {*engine.open_slot(), *engine.open_slot(), *engine.open_slot()};
  std::vector<float> logits;
  size_t fed_b = 0, fed_c = 0;
  for (size_t i = 0; i < a.size(); ++i) {  // a decodes, b and c come in chunks of changing size
    const size_t n_b = std::min<size_t>(i % 4, b.size() - fed_b),
                 n_c = std::min<size_t>(i % 3 + 1, c.size() - fed_c);
    std::vector<StepRequest> requests;
    const uint32_t row = 0;
    if (n_b > 0) requests.push_back({slots[1], std::span(b).subspan(fed_b, n_b), {}, {}});
    requests.push_back({slots[0], std::span(a).subspan(i, 1), std::span(&row, 1), greedy_sampling()});
    if (n_c > 0)
      requests.push_back({slots[2], std::span(c).subspan(fed_c, n_c), std::span(&row, 1), greedy_sampling()});
    auto result = engine.step(requests, {1, true});
    ASSERT_TRUE(result.ok()) << result.error().message;
    logits.insert(logits.end(), result->logits.begin(), result->logits.begin() + TinyModel::kVocab);
    fed_b += n_b;
    fed_c += n_c;
  }
  EXPECT_EQ(std::memcmp(logits.data(), expected.data(), expected.size() * sizeof(float)), 0);
}

TEST_F(EngineTest, AStepPicksTheFirstProgramThatFits) {
  Engine engine = make();
  const uint32_t slot = *engine.open_slot();
  const auto tokens = some_tokens(18, 1);
  for (const auto& [count, program] : {std::pair{4u, 0u}, std::pair{5u, 1u}}) {
    const StepRequest request{slot, std::span(tokens).first(count), {}, {}};
    const auto result = engine.step(std::span(&request, 1));
    ASSERT_TRUE(result.ok());
    EXPECT_EQ(result->program, program);
    EXPECT_TRUE(result->tokens.empty());
  }
}

TEST_F(EngineTest, SeveralStepsAtOnceGiveTheTokensOfOneByOne) {
  SamplingParams sampling = greedy_sampling();
  sampling.flags = 0;
  sampling.temperature = 3;
  sampling.frequency_penalty = 0.5f;
  sampling.seed = 42;
  const auto prompt = some_tokens(30, 9);
  Engine engine = make();
  std::vector<uint32_t> first;
  for (uint32_t steps : {1u, 2u, 5u, 64u}) {
    const uint32_t slot = *engine.open_slot();
    GenerateOptions options;
    options.max_tokens = 70;
    options.sampling = sampling;
    options.steps_at_once = steps;
    const auto answer = generate(engine, slot, prompt, options);
    ASSERT_TRUE(answer.ok()) << answer.error().message;
    EXPECT_EQ(answer->tokens.size(), 70u);
    EXPECT_EQ(answer->reason, StopReason::kMaxTokens);
    EXPECT_EQ(engine.position(slot), 99u);
    if (first.empty()) first = answer->tokens;
    EXPECT_EQ(answer->tokens, first) << steps << " steps at once";
    engine.close_slot(slot);
  }
  // Greedy steps follow the model: each token has the largest logit of the sequence before it.
  const uint32_t slot = *engine.open_slot();
  GenerateOptions greedy;
  greedy.max_tokens = 20;
  greedy.steps_at_once = 7;
  const auto answer = generate(engine, slot, prompt, greedy);
  ASSERT_TRUE(answer.ok());
  std::vector<uint32_t> sequence = prompt;
  sequence.insert(sequence.end(), answer->tokens.begin(), answer->tokens.end());
  const auto logits = model_.logits(sequence);
  for (size_t i = 0; i < answer->tokens.size(); ++i) {
    const auto& row = logits[prompt.size() - 1 + i];
    EXPECT_GE(row[answer->tokens[i]], *std::max_element(row.begin(), row.end()) - 2 * kTolerance) << i;
  }
}

TEST_F(EngineTest, AnswersEndAtStopTokensAtTheCallersWishAndAtTheContext) {
  const auto prompt = some_tokens(30, 9);
  Engine engine = make();
  GenerateOptions options;
  options.max_tokens = 1000;
  options.steps_at_once = 4;
  uint32_t slot = *engine.open_slot();
  auto answer = generate(engine, slot, prompt, options);
  ASSERT_TRUE(answer.ok());
  EXPECT_EQ(answer->reason, StopReason::kContext);
  EXPECT_EQ(answer->tokens.size(), TinyModel::kContext - 30 + 1);
  const auto tokens = answer->tokens;
  engine.close_slot(slot);

  slot = *engine.open_slot();
  uint32_t stop = 0;
  size_t at = 3;
  while (std::find(tokens.begin(), tokens.begin() + static_cast<long>(at), tokens[at]) !=
         tokens.begin() + static_cast<long>(at))
    ++at;
  stop = tokens[at];
  options.stop_ids = {stop};
  answer = generate(engine, slot, prompt, options);
  ASSERT_TRUE(answer.ok());
  EXPECT_EQ(answer->reason, StopReason::kStopToken);
  EXPECT_EQ(answer->tokens, std::vector(tokens.begin(), tokens.begin() + static_cast<long>(at)));
  EXPECT_EQ(answer->last_token, stop);
  EXPECT_EQ(engine.position(slot), 30 + at);  // fed: prompt and answer, not the stop token
  engine.close_slot(slot);

  slot = *engine.open_slot();
  options.stop_ids.clear();
  int calls = 0;
  answer = generate(engine, slot, prompt, options, [&](uint32_t, float) { return ++calls < 3; });
  ASSERT_TRUE(answer.ok());
  EXPECT_EQ(answer->reason, StopReason::kCallback);
  EXPECT_EQ(answer->tokens.size(), 3u);
}

TEST_F(EngineTest, ATurnThatGoesOnHasTheBitsOfAWholeSequence) {
  const auto tokens = some_tokens(90, 4);
  Engine engine = make();
  const uint32_t slot = *engine.open_slot();
  const auto expected = feed(engine, slot, tokens, 9);
  ASSERT_TRUE(engine.rewind(slot, 85).ok());
  const auto again = feed(engine, slot, std::span(tokens).subspan(85), 3);
  EXPECT_EQ(std::memcmp(again.data(), expected.data() + 85 * TinyModel::kVocab, again.size() * sizeof(float)),
            0);
  // The window of layer 1 has let go of what a row at 30 would read.
  const auto status = engine.rewind(slot, 30);
  ASSERT_FALSE(status.ok());
  EXPECT_EQ(status.error().error_class, ErrorClass::kUsage);
}

TEST_F(EngineTest, BlocksAreCountedAndWindowsGiveThemBack) {
  Engine engine = make();
  // Group 0: 150 positions in blocks of 16. Group 1: a window of 20 and steps of 18 rows touch at most 4
  // blocks.
  EXPECT_EQ(engine.n_blocks(0), 3u * 10);
  EXPECT_EQ(engine.n_blocks(1), 3u * 4);
  const uint32_t slot = *engine.open_slot();
  const auto tokens = some_tokens(150, 4);
  uint32_t position = 0;
  for (; position < 150; ++position) {
    feed(engine, slot, std::span(tokens).subspan(position, 1), 1);
    const uint32_t used = engine.n_blocks(1) - engine.free_blocks(1);
    const uint32_t first =
        position >= 19 ? position - 19 : 0;  // positions that this row read: first .. position
    EXPECT_EQ(used, position / 16 - first / 16 + 1) << position;
    EXPECT_EQ(engine.n_blocks(0) - engine.free_blocks(0), position / 16 + 1);
  }
  const StepRequest beyond{slot, std::span(tokens).first(1), {}, {}};
  const auto result = engine.step(std::span(&beyond, 1));
  ASSERT_FALSE(result.ok());
  EXPECT_EQ(result.error().error_class, ErrorClass::kDoesNotFit);
  EXPECT_NE(result.error().message.find("150"), std::string::npos);
  engine.close_slot(slot);
  EXPECT_EQ(engine.free_blocks(0), engine.n_blocks(0));
  EXPECT_EQ(engine.free_blocks(1), engine.n_blocks(1));
}

TEST_F(EngineTest, SlotsRunOut) {
  Engine engine = make();
  for (uint32_t i = 0; i < TinyModel::kSlots; ++i) EXPECT_EQ(*engine.open_slot(), i);
  const auto fourth = engine.open_slot();
  ASSERT_FALSE(fourth.ok());
  EXPECT_EQ(fourth.error().error_class, ErrorClass::kDoesNotFit);
  engine.close_slot(1);
  EXPECT_EQ(*engine.open_slot(), 1u);
}

TEST_F(EngineTest, BadRequestsAreRefusedAndChangeNothing) {
  Engine engine = make();
  const uint32_t slot = *engine.open_slot();
  const auto tokens = some_tokens(30, 1);
  const std::span<const uint32_t> all(tokens);
  const uint32_t wrong_token[] = {TinyModel::kVocab}, rows[] = {0}, outside[] = {2}, descending[] = {1, 0};
  SamplingParams cold = greedy_sampling();
  cold.flags = 0;
  cold.temperature = 0;
  struct Bad {
    std::vector<StepRequest> requests;
    StepOptions options;
    ErrorClass error_class;
    const char* says;
  };
  const Bad cases[] = {
      {{}, {}, ErrorClass::kUsage, "at least one request"},
      {{{slot + 1, all.first(1), {}, {}}}, {}, ErrorClass::kUsage, "not open"},
      {{{77, all.first(1), {}, {}}}, {}, ErrorClass::kUsage, "not open"},
      {{{slot, {}, {}, {}}}, {}, ErrorClass::kUsage, "without tokens"},
      {{{slot, wrong_token, {}, {}}}, {}, ErrorClass::kUsage, "vocabulary of 50"},
      {{{slot, all.first(2), outside, greedy_sampling()}}, {}, ErrorClass::kUsage, "ascending and below 2"},
      {{{slot, all.first(2), descending, greedy_sampling()}}, {}, ErrorClass::kUsage, "ascending"},
      {{{slot, all.first(1), rows, cold}}, {}, ErrorClass::kUsage, "temperature of 0"},
      {{{slot, all.first(1), {}, {}}, {slot, all.first(1), {}, {}}}, {}, ErrorClass::kUsage, "twice"},
      {{{slot, all.first(19), {}, {}}}, {}, ErrorClass::kDoesNotFit, "19 rows"},
      {{{slot, all.first(1), rows, greedy_sampling()}}, {0, false}, ErrorClass::kUsage, "1 to 64 steps"},
      {{{slot, all.first(1), rows, greedy_sampling()}}, {65, false}, ErrorClass::kUsage, "1 to 64 steps"},
      {{{slot, all.first(2), rows, greedy_sampling()}}, {2, false}, ErrorClass::kUsage, "needs one token"},
      {{{slot, all.first(1), rows, greedy_sampling()}}, {2, true}, ErrorClass::kUsage, "one step only"},
  };
  for (const Bad& bad : cases) {
    const auto result = engine.step(bad.requests, bad.options);
    ASSERT_FALSE(result.ok()) << bad.says;
    EXPECT_EQ(result.error().error_class, bad.error_class) << bad.says;
    EXPECT_NE(result.error().message.find(bad.says), std::string::npos) << result.error().message;
    EXPECT_EQ(engine.position(slot), 0u);
  }
  EXPECT_EQ(engine.free_blocks(0), engine.n_blocks(0));
}

TEST_F(EngineTest, BundlesThatDoNotFitTheMachineAreRefusedWithBothNumbers) {
  EngineOptions options;
  options.threads = 3;
  EXPECT_EQ(refused(options).error_class, ErrorClass::kUsage);
  EXPECT_NE(refused(options).message.find("2 workers and 3 threads"), std::string::npos);
  options = {};
  options.context = 151;
  EXPECT_NE(refused(options).message.find("150 positions; 151"), std::string::npos);
  options = {};
  options.slots = 4;
  EXPECT_NE(refused(options).message.find("at most 3 slots; 4"), std::string::npos);
  bundle_.tape.bytes[100] ^= 1;
  options = {};
  options.verify_tape = true;
  EXPECT_NE(refused(options).message.find("digest differs"), std::string::npos);
  bundle_.tape.bytes.pop_back();
  EXPECT_NE(refused({}).message.find("weights have"), std::string::npos);
}

TEST_F(EngineTest, APacketThatNoBodyRunsIsRefusedByName) {
  ProgramTables& program = bundle_.tables.programs[1];
  const auto linear = std::find_if(program.packets.begin(), program.packets.end(), [](const Packet& packet) {
    return packet.body == static_cast<uint16_t>(Op::kLinear);
  });
  TensorEntry& weight = program.tensors[linear->operand[1]];
  weight.layout = Layout::kRowMajor;
  weight.row_stride = weight.cols * 2;
  weight.bytes = uint64_t{weight.rows} * weight.row_stride;
  const Error error = refused({});
  EXPECT_EQ(error.error_class, ErrorClass::kInput);
  EXPECT_NE(error.message.find(
                "of program 1 cannot run here: linear: operand 1 must be an f32, bf16 or f16 matrix"),
            std::string::npos)
      << error.message;
}

TEST_F(EngineTest, AScratchThatIsTooSmallIsRefused) {
  bundle_.tables.header.scratch_bytes = 16;
  EXPECT_NE(refused({}).message.find("bytes of scratch"), std::string::npos);
}

TEST_F(EngineTest, AStepThatWaitsInVainFailsWithItsPacketAndTheEngineGoesOn) {
  // Program 1 loses a signal: the packets that wait for it never start.
  ProgramTables& program = bundle_.tables.programs[1];
  uint32_t lost = 0;
  for (Packet& packet : program.packets) {
    if (packet.body != static_cast<uint16_t>(Op::kRmsNorm)) continue;
    lost = program.signals[packet.signal_first].counter;
    packet.n_signals = 0;
    break;
  }
  EngineOptions options;
  options.deadline = std::chrono::milliseconds(50);
  Engine engine = make(options);
  const uint32_t slot = *engine.open_slot();
  const auto tokens = some_tokens(40, 1);
  const auto expected = model_.logits(tokens);
  for (int i = 0; i < 3; ++i) {
    const StepRequest request{slot, std::span(tokens).first(10), {}, {}};
    const auto result = engine.step(std::span(&request, 1));
    ASSERT_FALSE(result.ok());
    EXPECT_EQ(result.error().error_class, ErrorClass::kDevice);
    EXPECT_NE(result.error().message.find("(linear) of program 1 for counter " + std::to_string(lost)),
              std::string::npos)
        << result.error().message;
    EXPECT_EQ(engine.position(slot), 0u);
  }
  expect_logits(feed(engine, slot, tokens, 4), expected, kTolerance);
}

}  // namespace
}  // namespace plow
