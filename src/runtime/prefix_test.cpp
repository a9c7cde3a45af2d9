// Sharing what sequences begin with: which blocks may be taken over, and that no answer notices.
#include "runtime/kv_cache.h"
#include "runtime/prefix_names.h"
#include "runtime/tiny_rig.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <numeric>
#include <random>

namespace plow {
namespace {

std::vector<BlockName> names_for(std::span<const uint32_t> tokens, uint32_t block,
                                 std::string_view salt = {}) {
  PrefixNames names(block, salt);
  const auto all = names.of(tokens);
  return {all.begin(), all.end()};
}

std::vector<uint32_t> counting(uint32_t n) {
  std::vector<uint32_t> tokens(n);
  std::iota(tokens.begin(), tokens.end(), 0u);
  return tokens;
}

TEST(PrefixNames, ANameStandsForAllTokensUpToItsBlocksEndAndForTheSalt) {
  const auto tokens = counting(50);
  const auto names = names_for(tokens, 16);
  ASSERT_EQ(names.size(), 3u);
  // sha256(sha256("") || 0 .. 15 as u32), of Python's hashlib.
  EXPECT_EQ(to_hex(names[0]), "9743bccd0ac545748b33ad3e312a4f5b85f2a530402434fe7500be1998ea57a3");
  EXPECT_EQ(to_hex(names[1]), "2160f1b2a57352bfeff8022911eee0db1f35f3c7c82600211806773e918beb5d");
  for (const size_t at : {0u, 15u, 16u, 31u}) {
    auto other = tokens;
    other[at] = 99;
    const auto changed = names_for(other, 16);
    for (size_t i = 0; i < 3; ++i) EXPECT_EQ(changed[i] == names[i], i < at / 16) << at << " " << i;
  }
  EXPECT_NE(names_for(tokens, 16, "a")[0], names[0]);
  PrefixNames in_pieces(16, {});
  EXPECT_TRUE(in_pieces.of(std::span(tokens).first(15)).empty());
  EXPECT_EQ(in_pieces.of(std::span(tokens).first(33)).size(), 2u);
  EXPECT_TRUE(std::ranges::equal(in_pieces.of(tokens), names));
}

TEST(BlockPool, KeptBlocksAreFoundUntilTheRoomIsNeededAndTheOldestGoesFirst) {
  const auto names = names_for(counting(64), 16);
  BlockPool pool(4);
  const uint32_t a = pool.take(), b = pool.take(), c = pool.take();
  pool.name(a, names[0]);
  pool.name(b, names[1]);
  pool.name(c, names[1]);  // taken: c stays without one
  pool.give(b);
  pool.give(a);
  pool.give(c);
  EXPECT_EQ(pool.n_free(), 4u);
  EXPECT_EQ(pool.n_kept(), 2u);
  EXPECT_EQ(pool.find(names[0]), a);
  EXPECT_EQ(pool.take(), c);  // what holds nothing goes first
  EXPECT_NE(pool.take(), b);
  EXPECT_EQ(pool.evictions(), 0u);
  pool.hold(b);  // is now of two sequences' use
  pool.hold(b);
  EXPECT_EQ(pool.take(), a);
  EXPECT_EQ(pool.evictions(), 1u);
  EXPECT_FALSE(pool.find(names[0]));
  pool.give(b);
  EXPECT_TRUE(pool.in_use(b));
  EXPECT_EQ(pool.n_free(), 0u);
  pool.give(b);
  EXPECT_EQ(pool.n_free(), 1u);
  EXPECT_EQ(pool.take(), b);
  EXPECT_FALSE(pool.find(names[1]));
}

// A group that keeps everything and one with a window of 20, blocks of 16.
class SharedCache : public testing::Test {
 protected:
  static constexpr uint32_t kBlocks[] = {20, 12};
  static std::vector<KvGroup> groups() {
    KvGroup all{}, windowed{};
    all.block_tokens = windowed.block_tokens = 16;
    windowed.window = 20;
    return {all, windowed};
  }
  // Feeds slot 0 up to `n` tokens, 16 a step, and names its blocks.
  void feed(uint32_t n) {
    for (uint32_t at = 0; at < n; at += 16) {
      const KvRun run{0, at, 16};
      ASSERT_TRUE(cache_.reserve(std::span(&run, 1)).ok());
      cache_.name(0, at / 16, std::span(names_).subspan(at / 16, 1));
    }
  }
  std::vector<BlockName> names_ = names_for(counting(160), 16);
  KvCache cache_{groups(), kBlocks, 3, 160};
};

TEST_F(SharedCache, WhatAllGroupsStillHoldIsSharedAndUsedTwice) {
  feed(96);
  EXPECT_EQ(cache_.shareable(0, names_), 6u);
  EXPECT_EQ(cache_.shareable(0, std::span(names_).first(4)), 4u);  // kept behind the window, not yet needed
  cache_.share(1, 0, std::span(names_).first(6));
  EXPECT_EQ(cache_.held(0, 1), 6u);
  EXPECT_EQ(cache_.held(1, 1), 2u);  // a row at 96 reads from 77 on
  EXPECT_EQ(cache_.pool(0).n_free(), 14u);
  EXPECT_TRUE(std::equal(cache_.table(0), cache_.table(0) + 6, cache_.table(0) + cache_.table_width()));
  EXPECT_TRUE(cache_.holds_window_of(1, 96));
  EXPECT_FALSE(cache_.holds_window_of(1, 80));
  cache_.release(0);
  EXPECT_EQ(cache_.pool(0).n_free(), 14u);  // slot 1 uses them
  cache_.release(1);
  EXPECT_EQ(cache_.pool(0).n_free(), 20u);
  EXPECT_EQ(cache_.pool(1).n_free(), 12u);
  EXPECT_EQ(cache_.shareable(0, names_), 6u);
}

TEST_F(SharedCache, ABlockThatAWindowLetGoAndAnotherTookEndsWhatCanBeShared) {
  feed(96);
  // Slot 2 needs all that is free of the windowed group: 6 blocks, and 0 to 2 of slot 0, which left its
  // window.
  const KvRun greedy{2, 0, 144};
  ASSERT_TRUE(cache_.reserve(std::span(&greedy, 1)).ok());
  EXPECT_EQ(cache_.shareable(0, names_), 6u);  // slot 0 holds the last three
  EXPECT_EQ(cache_.shareable(0, std::span(names_).first(5)), 5u);
  EXPECT_EQ(cache_.shareable(0, std::span(names_).first(4)), 0u);  // a row at 64 reads from 45 on
  EXPECT_EQ(cache_.shareable(3, std::span(names_).first(4)), 4u);  // of which a sequence has block 2 itself
}

TEST_F(SharedCache, TheEndOfWhatWasLetGoIsForgottenBeforeItsBeginning) {
  const auto all = groups();
  KvCache one(std::span<const KvGroup>(all).first(1), kBlocks, 3, 160);
  const KvRun runs[] = {{0, 0, 96}};
  ASSERT_TRUE(one.reserve(runs).ok());
  one.name(0, 0, std::span(names_).first(6));
  one.release(0);
  const KvRun both[] = {{1, 0, 160}, {2, 0, 96}};  // 16 blocks: the 14 that hold nothing, and 2 more
  ASSERT_TRUE(one.reserve(both).ok());
  EXPECT_EQ(one.pool(0).evictions(), 2u);
  EXPECT_EQ(one.shareable(0, names_), 4u);
}

class PrefixTest : public TinyBatcherTest {
 protected:
  // The answer's tokens and their bits of logprob are those of an engine that never saw another sequence, or
  // their beginning when it was cancelled.
  void expect_as_alone(const AnswerRequest& request, const ToldAnswer& answer) {
    const Generated whole = alone(request);
    ASSERT_LE(answer.told.size(), whole.tokens.size());
    for (size_t i = 0; i < answer.told.size(); ++i) {
      EXPECT_EQ(answer.told[i].token, whole.tokens[i]);
      EXPECT_EQ(answer.told[i].logprob, whole.logprobs[i]);
    }
    EXPECT_TRUE(answer.end.reason == EndReason::kCancelled || answer.told.size() == whole.tokens.size());
  }
};

AnswerRequest request_of(std::vector<uint32_t> prompt, uint32_t max_tokens) {
  AnswerRequest request;
  request.prompt = std::move(prompt);
  request.max_tokens = max_tokens;
  return request;
}

TEST_F(PrefixTest, ThePromptThatWasThereBeforeIsNotComputedAgainAndItsAnswerIsTheSame) {
  Engine engine = make();
  Batcher batcher(engine);
  const AnswerRequest request = request_of(std::vector<uint32_t>(64, 7), 10);
  add(batcher, 0, request);
  run(batcher);
  EXPECT_EQ(batcher.counts().prompt_tokens, 64u);
  EXPECT_EQ(answers_[0].cached_tokens, 0u);
  add(batcher, 1, request);
  run(batcher);
  EXPECT_EQ(answers_[1].cached_tokens, 48u);  // not the block of the last token, which must be computed
  EXPECT_EQ(batcher.counts().prompt_tokens, 64u + 16);
  AnswerRequest salted = request;
  salted.cache_salt = "another user";
  add(batcher, 2, salted);
  run(batcher);
  EXPECT_EQ(answers_[2].cached_tokens, 0u);
  EXPECT_EQ(batcher.counts().asked_tokens, 192u);
  EXPECT_EQ(batcher.counts().shared_tokens, 48u);
  for (uint64_t i = 0; i < 3; ++i) expect_as_alone(request, answers_[i]);
  expect_nothing_leaked(engine);
}

TEST_F(PrefixTest, TheNextTurnTakesOverTheAnswerToo) {
  Engine engine = make();
  Batcher batcher(engine, {0, 16, true});
  add(batcher, 0, request_of(std::vector<uint32_t>(20, 3), 30));
  run(batcher);
  std::vector<uint32_t> turn(20, 3);
  turn.insert(turn.end(), answers_[0].tokens.begin(), answers_[0].tokens.end());
  turn.insert(turn.end(), 10, 5);
  const AnswerRequest next = request_of(turn, 20);
  add(batcher, 1, next);
  run(batcher);
  EXPECT_EQ(answers_[1].cached_tokens, 48u);  // 49 tokens of the first turn were fed
  expect_as_alone(next, answers_[1]);
}

TEST_F(PrefixTest, RequestsThatComeTogetherComputeTheirBeginningOnce) {
  Engine engine = make();
  Batcher batcher(engine);
  AnswerRequest request = request_of(std::vector<uint32_t>(100, 9), 8);
  for (uint64_t i = 0; i < 3; ++i) {
    request.prompt.back() = static_cast<uint32_t>(i);
    add(batcher, i, request);
  }
  run(batcher);
  EXPECT_EQ(answers_[0].cached_tokens, 0u);
  EXPECT_EQ(answers_[1].cached_tokens, 80u);  // it began in the step in which the first one's prompt ended
  EXPECT_EQ(answers_[2].cached_tokens, 96u);
  for (uint64_t i = 0; i < 3; ++i) {
    request.prompt.back() = static_cast<uint32_t>(i);
    expect_as_alone(request, answers_[i]);
  }
}

TEST_F(PrefixTest, WhatIsSharedCountsOnceWhenItIsAskedWhetherAllFit) {
  EngineOptions small;
  small.cache_positions = 192;  // 12 blocks; two whole prompts would need 2 * 9
  Engine engine = make(small);
  Batcher batcher(engine);
  const AnswerRequest request = request_of(std::vector<uint32_t>(100, 9), 20);
  add(batcher, 0, request);
  while (answers_[0].tokens.empty()) batcher.run_step();
  add(batcher, 1, request);
  batcher.run_step();
  EXPECT_EQ(batcher.counts().running, 2u);
  AnswerRequest other = request;
  other.cache_salt = "no sharing";
  add(batcher, 2, other);
  batcher.run_step();
  EXPECT_EQ(batcher.counts().running, 2u);
  run(batcher);
  EXPECT_EQ(batcher.counts().preemptions, 0u);
  for (uint64_t i = 0; i < 3; ++i) expect_as_alone(request, answers_[i]);
  expect_nothing_leaked(engine);
}

TEST_F(PrefixTest, WhatIsSharedCannotBeRewound) {
  Engine engine = make();
  const uint32_t slot = *engine.open_slot();
  const auto tokens = std::vector<uint32_t>(18, 4);
  const StepRequest request{slot, tokens, {}, {}};
  ASSERT_TRUE(engine.step(std::span(&request, 1)).ok());
  engine.name_blocks(slot, 0, names_for(tokens, 16));
  EXPECT_TRUE(engine.rewind(slot, 16).ok());
  const Status status = engine.rewind(slot, 15);
  ASSERT_FALSE(status.ok());
  EXPECT_NE(status.error().message.find("first 16 tokens are shared"), std::string::npos);
}

// Random prompts with common beginnings, salts, priorities, cancels and too little cache: each stream is what
// it is alone, to the bit, and no block is lost.
TEST_F(PrefixTest, NoAnswerNoticesWhatItShares) {
  uint64_t shared = 0, evictions = 0, preemptions = 0;
  for (uint32_t round = 0; round < 12; ++round) {
    std::mt19937 random(round);
    const auto below = [&](uint32_t n) { return static_cast<uint32_t>(random() % n); };
    EngineOptions options;
    if (round % 3 != 0) options.cache_positions = 150 + 16 * below(6);
    Engine engine = make(options);
    Batcher batcher(engine, {round % 4 == 1 ? 5u : 0u, 1 + 8 * (round % 2), true});
    std::vector<std::vector<uint32_t>> beginnings(3);
    for (auto& beginning : beginnings) {
      beginning.resize(10 + below(90));
      for (uint32_t& token : beginning) token = below(TinyModel::kVocab);
    }
    std::vector<AnswerRequest> requests(24);
    answers_.clear();
    for (uint32_t i = 0; i < requests.size(); ++i) {
      AnswerRequest& request = requests[i];
      const auto& beginning = beginnings[below(3)];
      request.prompt.assign(beginning.begin(),
                            beginning.begin() + 1 + below(static_cast<uint32_t>(beginning.size())));
      for (uint32_t n = below(20); n > 0; --n) request.prompt.push_back(below(TinyModel::kVocab));
      request.max_tokens = 1 + below(50);
      request.priority = static_cast<int32_t>(below(2));
      if (below(5) == 0) request.cache_salt = "salt";
      request.sampling.prompt_tokens = static_cast<uint32_t>(request.prompt.size());
      if (below(2) == 0) {
        request.sampling.flags = 0;
        request.sampling.temperature = 1.5f;
        request.sampling.repetition_penalty = 1.2f;  // reads the tokens that were taken over
        request.sampling.presence_penalty = 0.4f;
        request.sampling.seed = random();
      }
      add(batcher, i, request);
      for (uint32_t n = below(12); n > 0 && !batcher.idle(); --n) batcher.run_step();
      if (below(4) == 0) {
        const uint32_t victim = below(i + 1);
        batcher.cancel(victim);
      }
    }
    run(batcher);
    for (uint32_t i = 0; i < requests.size(); ++i) {
      const ToldAnswer& answer = answers_[i];
      EXPECT_EQ(answer.ends, 1);
      EXPECT_EQ(answer.begins, answer.tokens.empty() ? 0 : 1);
      EXPECT_NE(answer.end.reason, EndReason::kFailed) << answer.end.message;
      EXPECT_EQ(answer.cached_tokens % 16, 0u);
      EXPECT_LT(answer.cached_tokens, requests[i].prompt.size());
      expect_as_alone(requests[i], answer);
    }
    expect_nothing_leaked(engine);
    shared += batcher.counts().shared_tokens;
    evictions += batcher.counts().evictions;
    preemptions += batcher.counts().preemptions;
  }
  EXPECT_GT(shared, 1000u);  // that something was tested
  EXPECT_GT(evictions, 50u);
  EXPECT_GT(preemptions, 2u);
}

TEST_F(PrefixTest, NothingIsSharedWhenItIsTurnedOff) {
  Engine engine = make();
  Batcher batcher(engine, {0, 1, false});
  const AnswerRequest request = request_of(std::vector<uint32_t>(64, 7), 4);
  for (uint64_t i = 0; i < 2; ++i) {
    add(batcher, i, request);
    run(batcher);
    EXPECT_EQ(answers_[i].cached_tokens, 0u);
  }
  EXPECT_EQ(batcher.counts().asked_tokens, 0u);
  EXPECT_EQ(batcher.counts().kept_blocks, 0u);
}

}  // namespace
}  // namespace plow
