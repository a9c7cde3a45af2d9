#include "runtime/model_pool.h"

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

// Three models that take 10 bytes each, in a budget for two.
class ModelPoolTest : public TinyEngineTest {
 protected:
  std::vector<PooledModel> models() {
    std::vector<PooledModel> models;
    for (size_t i = 0; i < 3; ++i) {
      models.push_back({"model-" + std::to_string(i), 10, TinyModel::kSlots, [this, i]() -> Result<Engine> {
                          ++loads_[i];
                          gate_.wait();
                          if (broken_ == i) return input_error("the bundle vanished");
                          return make_tiny_engine(bundle_, {});
                        }});
    }
    return models;
  }
  std::future<Answer> ask(ModelPool& pool, size_t model, uint32_t max_tokens = 5, uint64_t* id = nullptr) {
    auto promise = std::make_shared<std::promise<Answer>>();
    auto answer = std::make_shared<Answer>();
    AnswerRequest request;
    request.prompt = {3, 1, 4};
    request.max_tokens = max_tokens;
    request.on_token = [answer](const AnswerToken& token) { answer->tokens.push_back(token.token); };
    request.on_end = [this, answer, promise, model](const AnswerEnd& end) {
      answer->end = end;
      order_.push_back(model);
      promise->set_value(*answer);
    };
    std::vector<AnswerRequest> one;
    one.push_back(std::move(request));
    const auto asked = pool.ask(model, std::move(one));
    refused_ =
        std::holds_alternative<Refused>(asked) ? std::optional(std::get<Refused>(asked)) : std::nullopt;
    if (id != nullptr) *id = std::get<std::vector<uint64_t>>(asked)[0];
    return promise->get_future();
  }
  static uint64_t resident(const ModelPool& pool) {
    uint64_t n = 0;
    for (size_t i = 0; i < pool.size(); ++i) n += pool.residency(i).state != ModelState::kUnloaded ? 1 : 0;
    return n;
  }

  std::array<std::atomic<uint32_t>, 3> loads_{};
  std::atomic<size_t> broken_{99};
  std::promise<void> open_;
  std::shared_future<void> gate_ = open_.get_future().share();  // holds loads back until it is opened
  std::vector<size_t> order_;  // of the ends, as long as one model runs at a time
  std::optional<Refused> refused_;
};

TEST_F(ModelPoolTest, TheOneThatWasUsedLongestAgoMakesRoomAndComesBackWithTheSameAnswers) {
  open_.set_value();
  ModelPool pool(models(), {.budget = 20});
  std::vector<uint32_t> first;
  // Which models are there after each request: of 0, 1 and 2.
  const std::pair<size_t, std::vector<size_t>> script[] = {{0, {0}},    {1, {0, 1}}, {0, {0, 1}},
                                                           {2, {0, 2}}, {1, {1, 2}}, {0, {0, 1}}};
  for (const auto& [model, there] : script) {
    const Answer answer = ask(pool, model, 20).get();
    EXPECT_EQ(answer.end.reason, EndReason::kMaxTokens) << answer.end.message;
    if (first.empty()) first = answer.tokens;
    EXPECT_EQ(answer.tokens, first);
    for (size_t i = 0; i < 3; ++i) {
      const bool is_there = pool.residency(i).state == ModelState::kReady;
      EXPECT_EQ(is_there, std::ranges::find(there, i) != there.end()) << i << " after " << model;
    }
    EXPECT_LE(resident(pool), 2u);
  }
  EXPECT_EQ(loads_[0], 2u);
  EXPECT_EQ(loads_[1], 2u);
  EXPECT_EQ(loads_[2], 1u);
  // Goes on over the unloading. An answer may end before its step's counts can be seen.
  while (pool.status(0).counts.answer_tokens < 60) std::this_thread::yield();
  EXPECT_EQ(pool.status(0).counts.answer_tokens, 60u);
}

TEST_F(ModelPoolTest, ManyRequestsForOneCauseOneLoadAndAClientThatLeavesDoesNotStopIt) {
  ModelPool pool(models(), {.budget = 20});
  std::vector<std::future<Answer>> answers;
  uint64_t third = 0;
  for (int i = 0; i < 20; ++i) answers.push_back(ask(pool, 2, 5, i == 3 ? &third : nullptr));
  while (pool.residency(2).state != ModelState::kLoading) std::this_thread::yield();
  pool.cancel(2, third);
  EXPECT_EQ(answers[3].get().end.reason, EndReason::kCancelled);
  EXPECT_EQ(pool.status(2).counts.waiting, 19u);
  open_.set_value();
  for (size_t i = 0; i < 20; ++i) {
    EXPECT_TRUE(i == 3 || answers[i].get().tokens.size() == 5);
  }
  EXPECT_EQ(loads_[2], 1u);
}

TEST_F(ModelPoolTest, ABusyModelEndsWhatItAcceptedAndWhatComesMeanwhileWaitsForItsReturn) {
  open_.set_value();
  ModelPool pool(models(), {.budget = 10});  // room for one
  auto running = ask(pool, 0, 100);
  auto other = ask(pool, 1, 5);
  auto later = ask(pool, 0, 7);
  EXPECT_EQ(running.get().tokens.size(), 100u);
  EXPECT_EQ(other.get().tokens.size(), 5u);
  EXPECT_EQ(later.get().tokens.size(), 7u);
  EXPECT_LE(resident(pool), 1u);
}

TEST_F(ModelPoolTest, MoreThanMayWaitForALoadAreToldWhenToComeAgain) {
  auto large = models();
  large[0].bytes = 4'000'000'000;
  large[1].bytes = 7'000'000'000;
  PoolOptions options{.budget = 8'000'000'000};
  options.dispatch.queue = 1;
  ModelPool pool(std::move(large), options);
  std::vector<std::future<Answer>> answers;
  for (uint32_t i = 0; i < 1 + TinyModel::kSlots; ++i) answers.push_back(ask(pool, 0));
  ASSERT_FALSE(refused_);
  ask(pool, 0);
  ASSERT_TRUE(refused_);
  EXPECT_EQ(refused_->why, Refusal::kQueueFull);
  EXPECT_EQ(refused_->wait_seconds, 4u);  // at 1 GB/s
  for (uint32_t i = 0; i < 1 + TinyModel::kSlots; ++i) answers.push_back(ask(pool, 1));
  ask(pool, 1);
  ASSERT_TRUE(refused_);
  EXPECT_EQ(refused_->wait_seconds, 11u);  // after the other
  open_.set_value();
  for (auto& answer : answers) EXPECT_EQ(answer.get().end.reason, EndReason::kMaxTokens);
  EXPECT_EQ(loads_[0] + loads_[1], 2u);
}

TEST_F(ModelPoolTest, ALoadThatFailsEndsWhatWaitedForItAndIsTriedAgain) {
  open_.set_value();
  broken_ = 1;
  ModelPool pool(models(), {.budget = 20});
  const Answer failed = ask(pool, 1).get();
  EXPECT_EQ(failed.end.reason, EndReason::kFailed);
  EXPECT_EQ(failed.end.message, "the bundle vanished");
  EXPECT_EQ(pool.residency(1).error, "the bundle vanished");
  const Status loaded = pool.load(1);
  ASSERT_FALSE(loaded.ok());
  EXPECT_EQ(loaded.error().message, "the bundle vanished");
  broken_ = 99;
  EXPECT_EQ(ask(pool, 1).get().end.reason, EndReason::kMaxTokens);
  EXPECT_EQ(pool.residency(1).error, "");
}

TEST_F(ModelPoolTest, ModelsAreLoadedAndUnloadedAtWill) {
  open_.set_value();
  ModelPool pool(models(), {.budget = 20});
  EXPECT_TRUE(pool.load(0).ok());
  EXPECT_TRUE(pool.load(0).ok());
  EXPECT_EQ(loads_[0], 1u);
  EXPECT_TRUE(pool.has_room_for(1));
  EXPECT_TRUE(pool.load(1).ok());
  EXPECT_FALSE(pool.has_room_for(2));
  EXPECT_TRUE(pool.unload(0).ok());
  EXPECT_TRUE(pool.unload(0).ok());
  EXPECT_EQ(pool.residency(0).state, ModelState::kUnloaded);
  EXPECT_TRUE(pool.has_room_for(2));
  EXPECT_EQ(ask(pool, 0).get().tokens.size(), 5u);
}

TEST_F(ModelPoolTest, AModelThatIsLeavingAndToldToIsThereAgainWhenItIsAskedFor) {
  open_.set_value();
  ModelPool pool(models(), {.budget = 10});
  auto running = ask(pool, 0, 140);
  auto other = ask(pool, 1);
  while (pool.residency(0).state != ModelState::kLeaving) std::this_thread::yield();
  EXPECT_TRUE(pool.unload(0).ok());
  EXPECT_EQ(running.get().tokens.size(), 140u);
  EXPECT_EQ(other.get().tokens.size(), 5u);
  EXPECT_TRUE(pool.load(0).ok());
  EXPECT_EQ(ask(pool, 0).get().tokens.size(), 5u);
  EXPECT_EQ(pool.residency(0).state, ModelState::kReady);
}

TEST_F(ModelPoolTest, DrainingAnswersWhatWasAcceptedAlsoWhereAModelHasToComeFirst) {
  open_.set_value();
  ModelPool pool(models(), {.budget = 10});
  std::vector<std::future<Answer>> answers;
  for (size_t i = 0; i < 3; ++i) answers.push_back(ask(pool, i, 30));
  EXPECT_TRUE(pool.drain(std::chrono::steady_clock::now() + 60s));
  for (auto& answer : answers) EXPECT_EQ(answer.get().end.reason, EndReason::kMaxTokens);
  ask(pool, 0);
  ASSERT_TRUE(refused_);
  EXPECT_EQ(refused_->why, Refusal::kDraining);
  EXPECT_FALSE(pool.load(1).ok());
}

TEST_F(ModelPoolTest, StoppingEndsWhatRunsAndWhatWaits) {
  open_.set_value();
  ModelPool pool(models(), {.budget = 10});
  auto running = ask(pool, 0, 140);
  while (pool.residency(0).state != ModelState::kReady) std::this_thread::yield();
  auto waiting = ask(pool, 1);
  pool.stop();
  EXPECT_NE(running.get().end.reason, EndReason::kFailed);
  EXPECT_NE(waiting.get().end.reason, EndReason::kFailed);
  EXPECT_EQ(pool.residency(2).loads, 0u);
}

TEST_F(ModelPoolTest, AModelThatNeverFitsIsRefusedWithBothNumbers) {
  const Status status = ModelPool::check(models(), {.budget = 9});
  ASSERT_FALSE(status.ok());
  EXPECT_EQ(status.error().error_class, ErrorClass::kDoesNotFit);
  EXPECT_NE(status.error().message.find("model-0 needs 10 bytes and the models together may take 9"),
            std::string::npos);
  EXPECT_TRUE(ModelPool::check(models(), {.budget = 10}).ok());
}

}  // namespace
}  // namespace plow
