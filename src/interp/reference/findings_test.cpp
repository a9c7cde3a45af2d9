// Each kind of finding, on a program small enough to see why.
#include "bundle/testing/tables.h"
#include "interp/reference/machine.h"
#include "interp/reference/testing/steps.h"

#include <gtest/gtest.h>

namespace plow::reference {
namespace {

constexpr uint32_t kCols = 16, kVocab = 16, kMaxRows = 6;
enum Tensor : uint16_t { kTable, kTokenIds, kX, kY, kZ, kSampleRows, kGathered, kLogits, kSampled };
// Packets: worker 0 has all but kScale, kClear and kLeave1.
enum Index { kEmbed, kAdd, kGather, kHead, kSample, kLeave0, kAdvance, kScale, kClear, kLeave1 };
// Counters: a band of three each for what embed and scale have made, then all who left.
enum Counter : uint32_t { kMadeX = 0, kMadeY = 3, kLeft = 6, kCounters = 7 };

// y = 2 x on worker 1 while worker 0 waits for it: z = x + y, then a token from every sampled row of z.
struct Hand {
  std::vector<Packet> packets;
  std::vector<std::vector<Wait>> waits{kLeave1 + 1};
  std::vector<std::vector<Signal>> signals{kLeave1 + 1};
  std::vector<TensorEntry> tensors;
  std::vector<std::vector<uint32_t>> lists = {{kEmbed, kAdd, kGather, kHead, kSample, kLeave0, kAdvance},
                                              {kScale, kClear, kLeave1}};
  uint32_t clear_distance = 1;

  Hand() {
    const auto arena = [](uint64_t at, Rows kind, uint32_t cols) {
      return matrix(Space::kArena, at * 1024, kind, kMaxRows, cols);
    };
    tensors = {matrix(Space::kTape, 0, Rows::kFixed, kVocab, kCols),
               column(StepColumn::kTokenIds, Rows::kTokens, kMaxRows),
               arena(0, Rows::kTokens, kCols),
               arena(1, Rows::kTokens, kCols),
               arena(2, Rows::kTokens, kCols),
               column(StepColumn::kSampleRows, Rows::kSamples, kMaxRows),
               arena(3, Rows::kSamples, kCols),
               arena(4, Rows::kSamples, kVocab),
               column(StepColumn::kSampled, Rows::kSamples, kMaxRows)};
    packets = {operation(Op::kEmbed, Rows::kTokens, {kTable, kTokenIds, kX}, kCols, 0, 1),
               operation(Op::kAdd, Rows::kTokens, {kX, kY, kZ}, kCols, 0, 1),
               operation(Op::kGatherRows, Rows::kSamples, {kZ, kSampleRows, kGathered}, kCols, 0, 1),
               operation(Op::kLinear, Rows::kSamples, {kGathered, kTable, kLogits}, kVocab, 0, 1),
               operation(Op::kSample, Rows::kSamples, {kLogits, kSampled}, 1, 0, 1),
               operation(Op::kLeave, Rows::kFixed, {}, 1, 0, 1),
               operation(Op::kAdvance, Rows::kFixed, {}, 1, 0, 1),
               operation(Op::kScale, Rows::kTokens, {kX, kY}, kCols, 0, 1),
               operation(Op::kClearBank, Rows::kFixed, {}, 1, 0, 1),
               operation(Op::kLeave, Rows::kFixed, {}, 1, 0, 1)};
    packets[kScale].immediate[0] = std::bit_cast<uint32_t>(2.0f);
    signals[kEmbed] = {{kMadeX, Band::kRow, 0, 0}};
    waits[kScale] = {{kMadeX, 0, 1, Rows::kTokens, Band::kRow, 0}};
    signals[kScale] = {{kMadeY, Band::kRow, 0, 0}};
    waits[kAdd] = {{kMadeY, 0, 1, Rows::kTokens, Band::kRow, 0}};
    signals[kLeave0] = signals[kLeave1] = {{kLeft, Band::kNone, 0, 0}};
    waits[kAdvance] = {{kLeft, 0, 2, Rows::kFixed, Band::kNone, 0}};
  }

  BundleTables tables() const {
    BundleTables result;
    result.header.isa = Isa::kX86_64;
    result.header.n_workers = static_cast<uint32_t>(lists.size());
    result.header.tape_bytes = kVocab * kCols * 4;
    result.header.vocab = kVocab;
    result.header.hidden = kCols;
    result.header.max_context = 16;
    result.header.max_slots = 2;
    result.header.kv_dtype = DType::kF32;
    ProgramTables program;
    program.entry.max_rows = program.entry.max_samples = kMaxRows;
    program.entry.token_row_tile = program.entry.sample_row_tile = 2;
    program.entry.n_counters = kCounters;
    program.entry.arena_bytes = 8 * 1024;
    program.tensors = tensors;
    for (const auto& list : lists) {
      program.workers.push_back(
          {static_cast<uint32_t>(program.packets.size()), static_cast<uint32_t>(list.size()), 0, 0});
      for (const uint32_t index : list) {
        Packet packet = packets[index];
        packet.wait_first = static_cast<uint32_t>(program.waits.size());
        packet.n_waits = static_cast<uint8_t>(waits[index].size());
        program.waits.insert(program.waits.end(), waits[index].begin(), waits[index].end());
        packet.signal_first = static_cast<uint32_t>(program.signals.size());
        packet.n_signals = static_cast<uint8_t>(signals[index].size());
        program.signals.insert(program.signals.end(), signals[index].begin(), signals[index].end());
        program.packets.push_back(packet);
      }
    }
    result.programs = {program};
    return result;
  }

  // Three steps of five rows and one, by round robin; the texts of what is found.
  std::vector<std::string> findings(Policy policy = Policy::kRoundRobin) const {
    const BundleFile bundle = BundleFile::from_bytes(serialise_bundle(tables())).value();
    std::vector<std::byte> tape(kVocab * kCols * 4);
    std::fill(tape.begin(), tape.end(), std::byte{0x3c});
    Machine machine =
        Machine::create(bundle, tape, {.slots = 2, .policy = policy, .clear_distance = clear_distance})
            .value();
    std::vector<std::string> texts;
    for (const StepInput& input :
         {step_of({{0, 0, {1, 2, 3, 4}}, {1, 0, {5}}}), step_of({{1, 1, {7}}}), step_of({{1, 2, {7}}})}) {
      const StepOutput output = machine.run(input).value();
      for (const Finding& finding : output.findings) {
        texts.push_back(std::string(finding_name(finding.kind)) + ": " + finding.text);
      }
      if (!texts.empty()) break;
    }
    return texts;
  }

  std::string first(Policy policy = Policy::kRoundRobin) const {
    const auto texts = findings(policy);
    return texts.empty() ? "" : texts[0];
  }
};

TEST(Findings, AreNoneInAValidProgram) {
  for (const Policy policy :
       {Policy::kRoundRobin, Policy::kRandom, Policy::kFurthestAhead, Policy::kDelayOne, Policy::kReverse}) {
    EXPECT_EQ(Hand().first(policy), "");
  }
}

TEST(Findings, AReadThatNoWaitPutsAfterTheWriteWhicheverCameFirst) {
  Hand hand;
  hand.waits[kScale].clear();
  hand.signals[kEmbed].clear();
  EXPECT_EQ(hand.first(Policy::kRoundRobin),
            "read of what was never written: p7 scale (worker 1, row tile 0) reads t2:f32[T,16] row 0 column "
            "0, and nothing has written it in "
            "this step; p0 should, and no wait makes the read come after it");
  // Worker 0 as far as it gets, then worker 1.
  hand.lists[0] = {kEmbed, kAdd, kGather, kHead, kSample, kLeave0, kAdvance};
  EXPECT_EQ(hand.first(Policy::kFurthestAhead),
            "unordered read: p7 scale (worker 1, row tile 0) reads t2:f32[T,16] row 0 column 0, which p0 "
            "embed (worker 0, row tile 0) writes, "
            "and no wait puts the write before the read");
}

TEST(Findings, AWriteOverWhatOthersMayStillRead) {
  Hand hand;
  hand.tensors[kGathered].offset = hand.tensors[kX].offset;  // gather waits for nobody who reads x
  EXPECT_EQ(hand.first(), "");  // add has read y, which is made of x: all reads of x are over
  hand = Hand();
  hand.tensors[kLogits].offset = hand.tensors[kGathered].offset;
  EXPECT_EQ(hand.first(),
            "own input overwritten: p3 linear (worker 0, row tile 0) writes t7:f32[S,16] row 0 column 0 over "
            "its own input");
  hand = Hand();
  hand.waits[kAdd].clear();
  hand.signals[kScale].clear();
  hand.packets[kAdd].operand[1] = kX;
  hand.tensors[kGathered].offset = hand.tensors[kX].offset;
  const std::string expected =
      "unordered write: p2 gather_rows (worker 0, row tile 0) writes t6:f32[S,16] row 0 column 0 over what "
      "p7 scale (worker 1, row tile 0) "
      "reads, and no wait puts that first";
  EXPECT_EQ(hand.first(), expected);
}

TEST(Findings, TwoWritesInNoOrder) {
  Hand hand;
  hand.tensors[kZ].offset = hand.tensors[kY].offset;
  hand.packets[kAdd].operand[1] = kX;
  hand.waits[kAdd].clear();
  hand.signals[kScale].clear();
  const std::string found = hand.first();
  EXPECT_EQ(found,
            "unordered write: p1 add (worker 0, row tile 0) writes t4:f32[T,16] row 0 column 0 over what p7 "
            "scale (worker 1, row tile 0) "
            "writes, and no wait puts that first");
}

TEST(Findings, OrderedButWrongContent) {
  Hand hand;
  hand.tensors[kX].offset =
      hand.tensors[kZ].offset;  // the second row tile of embed is read after add's first has gone over it
  hand.packets[kGather].operand[0] = kX;
  EXPECT_EQ(hand.findings().back(),
            "wrong content: p2 gather_rows (worker 0, row tile 0) reads t2:f32[T,16] row 0 column 0, and "
            "what is there is t4:f32[T,16], written "
            "by p1 add (worker 0, row tile 0)");
}

TEST(Findings, ATileTwiceAndATileNever) {
  Hand hand;
  hand.lists[0].insert(hand.lists[0].begin() + 1, kAdd);
  EXPECT_EQ(hand.first(),
            "written twice: p2 add (worker 0, row tile 0) writes column 0 of t4:f32[T,16], which p1 has "
            "written in the same row tile");
  hand = Hand();
  hand.lists[0].erase(hand.lists[0].begin() + kSample);
  EXPECT_EQ(hand.first(),
            "read of what was never written: p5 advance (worker 0, row tile 0) hands out the token of sample "
            "0, and nothing has written it in "
            "this step");
  hand = Hand();
  hand.packets[kAdd].operand[1] = kX;  // nobody reads y
  hand.waits[kAdd].clear();
  hand.signals[kScale].clear();
  hand.packets[kScale].row_first = 1;
  EXPECT_EQ(hand.first(), "not written: no tile writes column 0 of t3:f32[T,16] in row tile 0");
}

TEST(Findings, ADeadlockSaysWhoWaitsForWhat) {
  Hand hand;
  hand.signals[kScale].clear();
  EXPECT_EQ(
      hand.first(),
      "deadlock: no worker can go on: p1 add (worker 0, row tile 0) waits for c3 >= 1, sees 0 of 0 promised");
}

TEST(Findings, AWaitForFewerThanPromised) {
  Hand hand;
  hand.waits[kAdvance][0].constant = 1;
  EXPECT_EQ(hand.first(),
            "counter: p6 advance (worker 0, row tile 0) waits for c6 >= 1, and 2 signals are promised");
}

TEST(Findings, TheBankOfTheStepBefore) {
  Hand hand;
  hand.lists[1].erase(hand.lists[1].begin() + 1);
  EXPECT_EQ(hand.first(),
            "counter: counter c0 of bank 1, of the step before, still has 1 at the end of step 2: no packet "
            "cleared it");
  hand = Hand();
  hand.clear_distance = 0;
  EXPECT_EQ(hand.first(), "counter: counter c0 ends the step at 0, and 1 signals are promised");
}

TEST(Findings, TheEndComesLastAndOnce) {
  Hand hand;
  hand.waits[kAdvance].clear();
  const auto found = hand.findings();
  ASSERT_FALSE(found.empty());
  EXPECT_EQ(found[0],
            "end of step: p6 advance (worker 0, row tile 0) ends the step, and no wait puts p8 clear_bank "
            "(worker 1, row tile 0) before it");
  hand = Hand();
  hand.lists[0].push_back(kAdvance);
  EXPECT_EQ(hand.first().substr(0, 12), "end of step:");
  hand = Hand();
  hand.lists[0].pop_back();
  EXPECT_EQ(hand.first(), "end of step: no packet ends the step: advance is missing");
}

}  // namespace
}  // namespace plow::reference
