// Fixtures of the runtime's tests: engines of the tiny model, and a batcher whose answers are written down.
#pragma once

#include "runtime/batcher.h"
#include "runtime/generate.h"
#include "runtime/tiny_model.h"

#include <gtest/gtest.h>

#include <cstdint>
#include <map>
#include <utility>
#include <vector>

namespace plow {

class TinyEngineTest : public testing::Test {
 protected:
  Engine make(const EngineOptions& options = {}) {
    auto engine = make_tiny_engine(bundle_, options);
    EXPECT_TRUE(engine.ok()) << (engine.ok() ? "" : engine.error().message);
    return std::move(*engine);
  }

  const TinyModel model_;
  TinyBundle bundle_ = make_tiny_bundle(model_);
};

// What an AnswerToken says, with its likeliest tokens kept.
struct ToldToken {
  uint32_t token;
  float logprob;
  std::vector<Sampled> top;
};

struct ToldAnswer {
  std::vector<uint32_t> tokens;
  std::vector<ToldToken> told, scored;  // of the answer and of the prompt
  int begins = 0, ends = 0;
  uint32_t cached_tokens = 0;
  AnswerEnd end;
};

class TinyBatcherTest : public TinyEngineTest {
 protected:
  void add(Batcher& batcher, uint64_t id, AnswerRequest request) {
    ASSERT_TRUE(batcher.check(request).ok());
    ToldAnswer& answer = answers_[id];
    const auto told = [](const AnswerToken& token) {
      return ToldToken{token.token, token.logprob, {token.top.begin(), token.top.end()}};
    };
    request.on_begin = [&answer](uint32_t cached_tokens) {
      answer.cached_tokens = cached_tokens;
      ++answer.begins;
    };
    request.on_token = [&answer, told](const AnswerToken& token) {
      answer.tokens.push_back(token.token);
      answer.told.push_back(told(token));
    };
    request.on_prompt_token = [&answer, told](const AnswerToken& token) {
      EXPECT_TRUE(answer.tokens.empty());
      answer.scored.push_back(told(token));
    };
    request.on_end = [&answer](const AnswerEnd& end) {
      answer.end = end;
      ++answer.ends;
    };
    batcher.add(id, std::move(request));
  }
  void run(Batcher& batcher) {
    for (int step = 0; !batcher.idle(); ++step) {
      ASSERT_LT(step, 10'000);
      batcher.run_step();
    }
  }
  // The answer of an engine that never saw another sequence.
  Generated alone(const AnswerRequest& request) {
    Engine engine = make();
    GenerateOptions options;
    options.max_tokens = request.max_tokens;
    options.sampling = request.sampling;
    options.stop_ids = request.stop_ids;
    auto answer = generate(engine, *engine.open_slot(), request.prompt, options);
    EXPECT_TRUE(answer.ok()) << (answer.ok() ? "" : answer.error().message);
    return answer.ok() ? std::move(*answer) : Generated{};
  }
  static void expect_nothing_leaked(const Engine& engine) {
    for (uint32_t g = 0; g < engine.bundle().kv_groups().size(); ++g)
      EXPECT_EQ(engine.free_blocks(g), engine.n_blocks(g)) << "group " << g;
  }

  std::map<uint64_t, ToldAnswer> answers_;
};

}  // namespace plow
