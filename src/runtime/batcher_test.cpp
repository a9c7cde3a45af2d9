#include "runtime/batcher.h"

#include "runtime/tiny_rig.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <map>
#include <random>

namespace plow {
namespace {

// Prompts of 1 to 70 tokens, greedy and sampled, answers of 1 to 40 tokens.
std::vector<AnswerRequest> mixed_requests(size_t n) {
  std::mt19937 random(7);
  std::vector<AnswerRequest> requests(n);
  for (size_t i = 0; i < n; ++i) {
    AnswerRequest& request = requests[i];
    request.prompt.resize(1 + random() % 70);
    for (uint32_t& token : request.prompt) token = static_cast<uint32_t>(random() % TinyModel::kVocab);
    request.max_tokens = 1 + static_cast<uint32_t>(random() % 40);
    if (i % 2 == 0) continue;
    request.sampling.flags = 0;
    request.sampling.temperature = 1.5f;
    request.sampling.repetition_penalty = 1.1f;
    request.sampling.frequency_penalty = 0.3f;
    request.sampling.seed = random();
  }
  return requests;
}

class BatcherTest : public TinyBatcherTest {
 protected:
  std::vector<std::vector<uint32_t>> tokens_alone(const std::vector<AnswerRequest>& requests) {
    std::vector<std::vector<uint32_t>> answers;
    for (const AnswerRequest& request : requests) answers.push_back(alone(request).tokens);
    return answers;
  }
  void expect_answers(const std::vector<std::vector<uint32_t>>& expected) {
    for (size_t i = 0; i < expected.size(); ++i) {
      EXPECT_EQ(answers_[i].tokens, expected[i]) << "request " << i;
      EXPECT_EQ(answers_[i].ends, 1);
      EXPECT_EQ(answers_[i].end.reason, EndReason::kMaxTokens);
      EXPECT_EQ(answers_[i].end.answer_tokens, answers_[i].tokens.size());
    }
  }
};

TEST_F(BatcherTest, EachOfManyGetsTheAnswerThatItGetsAlone) {
  const auto requests = mixed_requests(20);
  const auto expected = tokens_alone(requests);
  for (const BatchOptions& options :
       {BatchOptions{}, BatchOptions{1, 1, true}, BatchOptions{7, 1, true}, BatchOptions{18, 16, true}}) {
    answers_.clear();
    Engine engine = make();
    Batcher batcher(engine, options);
    for (size_t i = 0; i < requests.size(); ++i) {
      add(batcher, i, requests[i]);
      if (i % 3 == 0) batcher.run_step();  // others arrive while some run
    }
    run(batcher);
    expect_answers(expected);
    expect_nothing_leaked(engine);
    EXPECT_EQ(batcher.counts().preemptions, 0u);
  }
}

// Log-probabilities of every token at every position of a sequence, from the engine's logits.
std::vector<std::vector<double>> logprobs_of(Engine& engine, const std::vector<uint32_t>& tokens) {
  const uint32_t slot = *engine.open_slot();
  std::vector<std::vector<double>> rows;
  const std::vector<uint32_t> first_row = {0};
  for (const uint32_t token : tokens) {
    const StepRequest request{slot, std::span(&token, 1), first_row, greedy_sampling()};
    const auto result = engine.step(std::span(&request, 1), {1, true});
    EXPECT_TRUE(result.ok());
    std::vector<double> row(result->logits.begin(), result->logits.end());
    double sum = 0;
    for (const double logit : row) sum += std::exp(logit);
    for (double& logit : row) logit -= std::log(sum);
    rows.push_back(std::move(row));
  }
  engine.close_slot(slot);
  return rows;
}

void expect_scores(const std::vector<ToldToken>& found, const std::vector<std::vector<double>>& logprobs,
                   const std::vector<uint32_t>& tokens, size_t first, size_t n_top) {
  for (size_t i = 0; i < found.size(); ++i) {
    const std::vector<double>& row = logprobs[first + i - 1];
    EXPECT_EQ(found[i].token, tokens[first + i]);
    EXPECT_NEAR(static_cast<double>(found[i].logprob), row[tokens[first + i]], 1e-4);
    std::vector<double> best = row;
    std::ranges::sort(best, std::greater<>());
    ASSERT_EQ(found[i].top.size(), n_top);
    for (size_t t = 0; t < n_top; ++t) {
      EXPECT_NEAR(static_cast<double>(found[i].top[t].logprob), best[t], 1e-4);
      EXPECT_NEAR(row[found[i].top[t].token], best[t], 1e-4);
    }
  }
}

TEST_F(BatcherTest, PromptsAreScoredAndLikeliestTokensToldWhateverElseRuns) {
  auto requests = mixed_requests(12);
  for (size_t i = 0; i < requests.size(); ++i) {
    requests[i].score_prompt = i % 3 != 0;
    if (i % 3 == 1) requests[i].max_tokens = 0;
    requests[i].sampling.n_top = static_cast<uint32_t>(i % 5);
  }
  EngineOptions small;
  small.cache_positions = 150;
  std::map<std::vector<uint32_t>, std::vector<std::vector<double>>> expected;  // by tokens
  for (const bool preempts : {false, true}) {
    for (const BatchOptions& options : {BatchOptions{}, BatchOptions{1, 1}, BatchOptions{7, 16}}) {
      answers_.clear();
      Engine engine = make(preempts ? small : EngineOptions{});
      Batcher batcher(engine, options);
      for (size_t i = 0; i < requests.size(); ++i) add(batcher, i, requests[i]);
      run(batcher);
      for (size_t i = 0; i < requests.size(); ++i) {
        SCOPED_TRACE("request " + std::to_string(i));
        const AnswerRequest& request = requests[i];
        const ToldAnswer& answer = answers_[i];
        EXPECT_EQ(answer.ends, 1);
        EXPECT_EQ(answer.end.reason, EndReason::kMaxTokens);
        EXPECT_EQ(answer.tokens.size(), request.max_tokens);
        EXPECT_EQ(answer.scored.size(), request.score_prompt ? request.prompt.size() - 1 : 0);
        std::vector<uint32_t> tokens = request.prompt;
        tokens.insert(tokens.end(), answer.tokens.begin(), answer.tokens.end());
        auto& logprobs = expected[tokens];
        if (logprobs.empty()) logprobs = logprobs_of(engine, tokens);
        expect_scores(answer.scored, logprobs, tokens, 1, request.sampling.n_top);
        expect_scores(answer.told, logprobs, tokens, request.prompt.size(), request.sampling.n_top);
      }
      expect_nothing_leaked(engine);
    }
  }
}

TEST_F(BatcherTest, ABiasMovesTheAnswerAndIdsOfNoTokenAreNotPicked) {
  AnswerRequest request;
  request.prompt = {1, 2, 3};
  request.max_tokens = 8;
  const std::vector<uint32_t> plain = alone(request).tokens;
  Engine engine = make();
  Batcher batcher(engine);
  request.biases = {{5, 100}};
  add(batcher, 0, request);
  request.biases = {};
  for (uint32_t token = 0; token < TinyModel::kVocab; ++token) {
    if (std::ranges::find(plain, token) != plain.end()) request.biases.push_back({token, -100});
  }
  add(batcher, 1, request);
  request.biases = {};
  request.sampling.n_ids = *std::ranges::max_element(plain);
  add(batcher, 2, request);
  run(batcher);
  EXPECT_EQ(answers_[0].tokens, std::vector<uint32_t>(8, 5));
  for (const uint32_t token : answers_[1].tokens) EXPECT_EQ(std::ranges::find(plain, token), plain.end());
  for (const uint32_t token : answers_[2].tokens) EXPECT_LT(token, *std::ranges::max_element(plain));
  request.biases = {{TinyModel::kVocab, 1}};
  EXPECT_FALSE(batcher.check(request).ok());
  request.biases = {{3, 1}, {3, 1}};
  EXPECT_FALSE(batcher.check(request).ok());
  request.biases.clear();
  request.sampling.n_top = kMaxTop + 1;
  EXPECT_FALSE(batcher.check(request).ok());
}

TEST_F(BatcherTest, WhatIsPreemptedLosesNoToken) {
  auto requests = mixed_requests(12);
  for (AnswerRequest& request : requests) request.max_tokens += 50;
  EngineOptions small;
  small.cache_positions = 150;  // of one sequence, for three slots
  Engine engine = make(small);
  ASSERT_EQ(engine.n_blocks(0), 10u);
  Batcher batcher(engine);
  for (size_t i = 0; i < requests.size(); ++i) add(batcher, i, requests[i]);
  run(batcher);
  EXPECT_GT(batcher.counts().preemptions, 0u);
  expect_answers(tokens_alone(requests));
  EXPECT_EQ(engine.free_blocks(0), 10u);
}

TEST_F(BatcherTest, TheHigherPriorityGoesFirstAndEqualOnesInOrder) {
  EngineOptions one;
  one.slots = 1;
  Engine engine = make(one);
  Batcher batcher(engine);
  std::vector<uint64_t> order;
  const auto request = [&](uint64_t id, int32_t priority) {
    AnswerRequest r;
    r.prompt = {1, 2, 3};
    r.max_tokens = 2;
    r.priority = priority;
    r.on_end = [&order, id](const AnswerEnd&) { order.push_back(id); };
    batcher.add(id, std::move(r));
  };
  request(0, 0);
  request(1, 0);
  request(2, 5);
  request(3, -1);
  request(4, 5);
  run(batcher);
  EXPECT_EQ(order, (std::vector<uint64_t>{2, 4, 0, 1, 3}));
}

TEST_F(BatcherTest, ACancelledAnswerEndsAtOnceAndItsNeighboursDoNotNotice) {
  auto requests = mixed_requests(6);
  for (AnswerRequest& request : requests) request.max_tokens = 60;
  Engine engine = make();
  Batcher batcher(engine);
  for (size_t i = 0; i < requests.size(); ++i) add(batcher, i, requests[i]);
  for (int step = 0; step < 12; ++step) batcher.run_step();
  batcher.cancel(1);  // runs
  batcher.cancel(5);  // waits
  batcher.cancel(99);
  EXPECT_EQ(answers_[1].end.reason, EndReason::kCancelled);
  EXPECT_EQ(answers_[5].end.reason, EndReason::kCancelled);
  EXPECT_EQ(batcher.counts().running + batcher.counts().waiting, 4u);
  run(batcher);
  EXPECT_EQ(answers_[1].ends, 1);
  EXPECT_LT(answers_[1].tokens.size(), 60u);
  EXPECT_TRUE(answers_[5].tokens.empty());
  for (const size_t i : {0, 2, 3, 4}) EXPECT_EQ(answers_[i].tokens, alone(requests[i]).tokens) << i;
  expect_nothing_leaked(engine);
}

TEST_F(BatcherTest, AnAnswerEndsAtItsStopTokenAndAtTheContext) {
  AnswerRequest request;
  request.prompt.assign(100, 3);
  request.max_tokens = 1000;
  Engine engine = make();
  Batcher batcher(engine, {0, 64, true});
  add(batcher, 0, request);
  run(batcher);
  EXPECT_EQ(answers_[0].end.reason, EndReason::kContext);
  EXPECT_EQ(answers_[0].tokens.size(), 51u);  // the last of them is picked at the last position
  const auto whole = answers_[0].tokens;
  request.stop_ids = {whole[20]};
  const size_t at = static_cast<size_t>(std::ranges::find(whole, whole[20]) - whole.begin());
  add(batcher, 1, request);
  run(batcher);
  EXPECT_EQ(answers_[1].end.reason, EndReason::kStopToken);
  EXPECT_EQ(answers_[1].tokens, std::vector(whole.begin(), whole.begin() + static_cast<long>(at)));
}

// Lets a token be picked that is n mod 5 for the n-th of the answer, `most` of them; then it breaks or is
// complete.
class CountingRule : public AnswerRule {
 public:
  CountingRule(size_t most, bool breaks) : most_(most), breaks_(breaks) {}
  Result<const uint32_t*> allowed() override {
    if (breaks_ && n_ == most_) return does_not_fit("the rule broke");
    mask_.assign((TinyModel::kVocab + 31) / 32, 0);
    for (size_t t = n_ % 5; t < TinyModel::kVocab; t += 5) mask_[t / 32] |= 1u << (t % 32);
    return mask_.data();
  }
  bool accept(uint32_t token) override {
    EXPECT_EQ(token % 5, n_ % 5);
    return ++n_ == most_ && !breaks_;
  }

 private:
  size_t most_, n_ = 0;
  bool breaks_;
  std::vector<uint32_t> mask_;
};

TEST_F(BatcherTest, ARuleMasksEveryTokenOfItsAnswerAndNoOther) {
  const auto requests = mixed_requests(5);
  EngineOptions options;
  options.cache_positions = 150;  // so little that some are preempted
  Engine engine = make(options);
  Batcher batcher(engine, {0, 8, true});
  for (size_t i = 0; i < 5; ++i) add(batcher, i, requests[i]);
  for (size_t i = 0; i < 3; ++i) {
    AnswerRequest ruled = requests[i];
    ruled.max_tokens = 60;
    ruled.rule = std::make_shared<CountingRule>(20 + i, i == 2);
    add(batcher, 10 + i, ruled);
  }
  run(batcher);
  for (size_t i = 0; i < 5; ++i) EXPECT_EQ(answers_[i].tokens, alone(requests[i]).tokens) << i;
  for (size_t i = 10; i < 13; ++i) EXPECT_EQ(answers_[i].tokens.size(), 10 + i);
  EXPECT_EQ(answers_[10].end.reason, EndReason::kStopToken);
  EXPECT_EQ(answers_[12].end.reason, EndReason::kFailed);
  EXPECT_EQ(answers_[12].end.message, "the rule broke");
  expect_nothing_leaked(engine);
}

TEST_F(BatcherTest, AnAnswerFailsWhenNothingCanBePicked) {
  AnswerRequest request = mixed_requests(1)[0];
  const std::vector<uint32_t> none((TinyModel::kVocab + 31) / 32, 0);
  request.sampling.mask = none.data();
  Engine engine = make();
  Batcher batcher(engine);
  add(batcher, 0, request);
  run(batcher);
  EXPECT_EQ(answers_[0].end.reason, EndReason::kFailed);
  EXPECT_TRUE(answers_[0].tokens.empty());
}

TEST_F(BatcherTest, RequestsThatCannotBeAnsweredAreRefused) {
  Engine engine = make();
  const Batcher batcher(engine);
  AnswerRequest good;
  good.prompt = {1};
  ASSERT_TRUE(batcher.check(good).ok());
  const auto refused = [&](const auto& change) {
    AnswerRequest request = good;
    change(request);
    const Status status = batcher.check(request);
    EXPECT_FALSE(status.ok());
    return status.ok() ? std::string() : status.error().message;
  };
  EXPECT_NE(refused([](auto& r) { r.prompt.clear(); }).find("empty"), std::string::npos);
  EXPECT_NE(refused([](auto& r) { r.max_tokens = 0; }).find("max_tokens"), std::string::npos);
  EXPECT_NE(refused([](auto& r) { r.prompt = {TinyModel::kVocab}; }).find("vocabulary of 50"),
            std::string::npos);
  EXPECT_NE(refused([](auto& r) { r.prompt.assign(151, 1); }).find("context is 150"), std::string::npos);
  EXPECT_NE(refused([](auto& r) { r.sampling = {}; }).find("temperature"), std::string::npos);
}

TEST_F(BatcherTest, AStepThatFailsEndsTheAnswersInItAndNoOthers) {
  // Program 1, that of long prompts, loses a signal.
  for (Packet& packet : bundle_.tables.programs[1].packets) {
    if (packet.body != static_cast<uint16_t>(Op::kRmsNorm)) continue;
    packet.n_signals = 0;
    break;
  }
  EngineOptions options;
  options.slots = 2;
  options.deadline = std::chrono::milliseconds(50);
  Engine engine = make(options);
  Batcher batcher(engine);
  auto requests = mixed_requests(3);
  requests[0].prompt.assign(16, 1);  // with the next one a step of 18 rows
  requests[1].prompt = {1, 2};
  requests[2].prompt = {3};
  for (size_t i = 0; i < 3; ++i) add(batcher, i, requests[i]);
  run(batcher);
  for (const size_t i : {0, 1}) {
    EXPECT_EQ(answers_[i].end.reason, EndReason::kFailed);
    EXPECT_NE(answers_[i].end.message.find("waited at its packet"), std::string::npos);
  }
  EXPECT_EQ(answers_[2].end.reason, EndReason::kMaxTokens);
  EXPECT_EQ(answers_[2].tokens, alone(requests[2]).tokens);
  expect_nothing_leaked(engine);
}

}  // namespace
}  // namespace plow
