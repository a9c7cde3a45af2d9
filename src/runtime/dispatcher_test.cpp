#include "runtime/dispatcher.h"

#include "runtime/tiny_rig.h"

#include <gtest/gtest.h>

#include <atomic>
#include <future>

namespace plow {
namespace {

using namespace std::chrono_literals;

struct Answer {
  std::vector<uint32_t> tokens;
  AnswerEnd end;
};

class DispatcherTest : public TinyEngineTest {
 protected:
  static AnswerRequest request(uint32_t seed, uint32_t max_tokens) {
    AnswerRequest request;
    request.prompt = {seed % TinyModel::kVocab, 3, 7};
    request.max_tokens = max_tokens;
    return request;
  }
  static uint64_t new_ids(uint64_t n) {
    static std::atomic<uint64_t> next{1};
    return next.fetch_add(n);
  }
  // Asks, and promises the answer.
  static std::pair<std::variant<std::vector<uint64_t>, Refused>, std::future<Answer>> ask(
      Dispatcher& dispatcher, AnswerRequest request) {
    auto promise = std::make_shared<std::promise<Answer>>();
    auto answer = std::make_shared<Answer>();
    request.on_token = [answer](const AnswerToken& token) { answer->tokens.push_back(token.token); };
    request.on_end = [answer, promise](const AnswerEnd& end) {
      answer->end = end;
      promise->set_value(*answer);
    };
    auto future = promise->get_future();
    return {dispatcher.ask({std::move(request)}, new_ids(1)), std::move(future)};
  }
};

TEST_F(DispatcherTest, AnswersOfManyThreadsAreThoseOfOne) {
  std::vector<std::vector<uint32_t>> alone(24);
  {
    Dispatcher dispatcher(make(), {});
    for (uint32_t i = 0; i < 24; ++i) alone[i] = ask(dispatcher, request(i, 10 + i)).second.get().tokens;
  }
  Dispatcher dispatcher(make(), {});
  std::vector<std::thread> threads;
  for (uint32_t t = 0; t < 4; ++t) {
    threads.emplace_back([&, t] {
      std::vector<std::pair<uint32_t, std::future<Answer>>> asked;
      for (uint32_t i = t; i < 24; i += 4) asked.emplace_back(i, ask(dispatcher, request(i, 10 + i)).second);
      for (auto& [i, future] : asked) {
        const Answer answer = future.get();
        EXPECT_EQ(answer.tokens, alone[i]);
        EXPECT_EQ(answer.end.reason, EndReason::kMaxTokens);
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_TRUE(dispatcher.drain(std::chrono::steady_clock::now() + 10s));
  const DispatchStatus status = dispatcher.status();
  EXPECT_EQ(status.counts.running + status.counts.waiting, 0u);
  EXPECT_FALSE(status.in_step);
}

TEST_F(DispatcherTest, MoreThanMayWaitAreRefusedAndTheRestIsAnswered) {
  DispatchOptions options;
  options.queue = 4;
  Dispatcher dispatcher(make(), options);
  std::vector<std::future<Answer>> accepted;
  size_t full = 0;
  for (uint32_t i = 0; i < 60; ++i) {
    auto [id, answer] = ask(dispatcher, request(i, 100));
    if (const Refused* refused = std::get_if<Refused>(&id)) {
      EXPECT_EQ(refused->why, Refusal::kQueueFull);
      ++full;
    } else {
      accepted.push_back(std::move(answer));
    }
  }
  EXPECT_GT(full, 0u);
  EXPECT_GE(accepted.size(), TinyModel::kSlots + 4u);
  for (auto& answer : accepted) EXPECT_EQ(answer.get().tokens.size(), 100u);
}

TEST_F(DispatcherTest, DrainingTakesNoMoreAndFinishesWhatWasAccepted) {
  Dispatcher dispatcher(make(), {});
  auto first = ask(dispatcher, request(1, 140));
  EXPECT_FALSE(dispatcher.drain(std::chrono::steady_clock::now()));
  const auto second = ask(dispatcher, request(2, 5));
  ASSERT_TRUE(std::holds_alternative<Refused>(second.first));
  EXPECT_EQ(std::get<Refused>(second.first).why, Refusal::kDraining);
  EXPECT_TRUE(dispatcher.drain(std::chrono::steady_clock::now() + 30s));
  ASSERT_EQ(first.second.wait_for(0s), std::future_status::ready);
  EXPECT_EQ(first.second.get().tokens.size(), 140u);
}

TEST_F(DispatcherTest, ACancelledAnswerAndThoseLeftAtTheEndAreTold) {
  std::future<Answer> left;
  {
    Dispatcher dispatcher(make(), {});
    auto cancelled = ask(dispatcher, request(1, 145));
    dispatcher.cancel(std::get<std::vector<uint64_t>>(cancelled.first)[0]);
    EXPECT_EQ(cancelled.second.get().end.reason, EndReason::kCancelled);
    left = ask(dispatcher, request(2, 145)).second;
  }
  EXPECT_EQ(left.get().end.reason, EndReason::kCancelled);
}

TEST_F(DispatcherTest, TheCacheIsCountedBeforeTheFirstStep) {
  const Dispatcher dispatcher(make(), {});
  const BatchCounts counts = dispatcher.status().counts;
  EXPECT_GT(counts.blocks, 0u);
  EXPECT_EQ(counts.free_blocks, counts.blocks);
}

TEST_F(DispatcherTest, AnInvalidRequestIsRefusedBeforeItIsQueued) {
  Dispatcher dispatcher(make(), {});
  AnswerRequest empty;
  const auto refused = dispatcher.ask({std::move(empty)}, 1);
  ASSERT_TRUE(std::holds_alternative<Refused>(refused));
  EXPECT_EQ(std::get<Refused>(refused).why, Refusal::kInvalid);
}

TEST_F(DispatcherTest, SeveralAreAcceptedTogetherOrNotAtAll) {
  DispatchOptions options;
  options.queue = 2;
  Dispatcher dispatcher(make(), options);
  const auto ask_for = [&](size_t n) {
    std::vector<AnswerRequest> requests(n);
    for (AnswerRequest& one : requests) one = request(1, 140);
    return dispatcher.ask(std::move(requests), new_ids(n));
  };
  ASSERT_EQ(std::get<std::vector<uint64_t>>(ask_for(4)).size(), 4u);
  const auto full = ask_for(2);
  ASSERT_TRUE(std::holds_alternative<Refused>(full));
  EXPECT_EQ(std::get<Refused>(full).why, Refusal::kQueueFull);
  EXPECT_EQ(dispatcher.status().counts.running + dispatcher.status().counts.waiting, 4u);
  // More than can ever run and wait would be refused again.
  const auto never = ask_for(TinyModel::kSlots + 3);
  ASSERT_TRUE(std::holds_alternative<Refused>(never));
  EXPECT_EQ(std::get<Refused>(never).why, Refusal::kInvalid);
}

TEST_F(DispatcherTest, AStoppedDispatcherHasToldAllEnds) {
  Dispatcher dispatcher(make(), {});
  auto left = ask(dispatcher, request(2, 145));
  dispatcher.stop();
  ASSERT_EQ(left.second.wait_for(0s), std::future_status::ready);
  EXPECT_EQ(left.second.get().end.reason, EndReason::kCancelled);
  EXPECT_TRUE(std::holds_alternative<Refused>(ask(dispatcher, request(2, 5)).first));
}

}  // namespace
}  // namespace plow
