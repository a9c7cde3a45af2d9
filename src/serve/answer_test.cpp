#include "serve/answer.h"

#include "serve/answer_format.h"
#include "serve/testing/byte_model.h"

#include <gtest/gtest.h>

#include <map>

namespace plow {
namespace {

namespace json = boost::json;

class AnswerTest : public testing::Test {
 protected:
  // Asks; the response is in exchange_.
  void ask(AnswerSpec spec) {
    AnswerHead head{spec.chat, "id-1", "byte-model", "fp", 17, spec.include_usage};
    RequestOrigin origin;
    origin.route = spec.chat ? RouteId::kChat : RouteId::kCompletions;
    origin.record.id = "r-1";
    origin.arrival = std::chrono::steady_clock::now();
    exchange_ = std::make_shared<RecordedExchange>();
    const AnswerSurroundings surroundings{*model_, source_, log_, metrics_, queue_};
    answer_ = std::make_shared<Answer>(surroundings, std::move(spec),
                                       std::make_unique<CompletionWriter>(head), origin, exchange_);
    answer_->start(99);
    first_ = source_.asked.empty() ? 0 : source_.asked.size() - 1;
  }
  static AnswerSpec spec(bool chat, bool stream) {
    AnswerSpec spec;
    spec.chat = chat;
    spec.stream = stream;
    spec.prompts = {{1, 2, 3}};
    spec.max_tokens = {50};
    spec.sampling = greedy_sampling();
    return spec;
  }
  json::value whole() {
    exchange_->run();
    EXPECT_TRUE(exchange_->over);
    return json::parse(exchange_->response.body);
  }
  // The data of every frame; [DONE] is left as a string.
  std::vector<json::value> frames() {
    exchange_->run();
    std::vector<json::value> frames;
    std::string_view rest = exchange_->response.body;
    while (!rest.empty()) {
      const size_t end = rest.find("\n\n");
      EXPECT_TRUE(rest.starts_with("data: ")) << rest;
      if (end == std::string_view::npos) return frames;
      const std::string_view data = rest.substr(6, end - 6);
      frames.push_back(data == "[DONE]" ? json::value("[DONE]") : json::parse(data));
      rest.remove_prefix(end + 2);
    }
    return frames;
  }
  std::string content(const std::vector<json::value>& frames) {
    std::string text;
    for (const json::value& frame : frames) {
      if (!frame.is_object() || !frame.as_object().contains("choices")) continue;
      for (const json::value& choice : frame.at("choices").as_array()) {
        const json::object& delta = choice.at("delta").as_object();
        if (const json::value* piece = delta.if_contains("content"))
          text += std::string_view(piece->as_string());
      }
    }
    return text;
  }

  ByteModel model_;
  ScriptedSource source_;
  SilentLog log_;
  Metrics metrics_;
  QueueEstimate queue_;
  std::shared_ptr<RecordedExchange> exchange_;
  std::shared_ptr<Answer> answer_;
  size_t first_ = 0;
};

TEST_F(AnswerTest, AWholeChatHasOpenAisShape) {
  ask(spec(true, false));
  source_.say(0, "Hel\"lo\n");
  source_.end(0, EndReason::kStopToken);
  EXPECT_EQ(whole(), json::parse(R"({"id":"id-1","object":"chat.completion","created":17,"model":"byte-model",
      "system_fingerprint":"fp","choices":[{"index":0,"message":{"role":"assistant","content":"Hel\"lo\n","refusal":null},
      "logprobs":null,"finish_reason":"stop"}],
      "usage":{"prompt_tokens":3,"completion_tokens":7,"total_tokens":10,"prompt_tokens_details":{"cached_tokens":0}}})"));
  EXPECT_EQ(exchange_->response.status, 200);
  ASSERT_EQ(log_.records.size(), 1u);
  EXPECT_EQ(log_.records[0].answer_tokens, 7u);
}

TEST_F(AnswerTest, AStreamIsRoleThenContentThenOneFinishThenDone) {
  ask(spec(true, true));
  EXPECT_TRUE(exchange_->streams);
  EXPECT_EQ(exchange_->response.content_type, "text/event-stream; charset=utf-8");
  source_.say(0, "Hi");
  source_.end(0, EndReason::kMaxTokens);
  const auto all = frames();
  ASSERT_EQ(all.size(), 5u);
  EXPECT_EQ(all[0],
            json::parse(R"({"id":"id-1","object":"chat.completion.chunk","created":17,"model":"byte-model",
      "system_fingerprint":"fp","choices":[{"index":0,"delta":{"role":"assistant","content":""},"logprobs":null,
      "finish_reason":null}]})"));
  EXPECT_EQ(all[1].at("choices").at(0).at("delta"), json::parse(R"({"content":"H"})"));
  EXPECT_EQ(all[2].at("choices").at(0).at("delta"), json::parse(R"({"content":"i"})"));
  EXPECT_TRUE(all[2].at("choices").at(0).at("finish_reason").is_null());
  EXPECT_EQ(all[3].at("choices").at(0).at("delta"), json::object());
  EXPECT_EQ(all[3].at("choices").at(0).at("finish_reason"), "length");
  EXPECT_EQ(all[4], "[DONE]");
  EXPECT_TRUE(exchange_->over);
}

TEST_F(AnswerTest, UsageIsAChunkWithoutChoicesAndOnlyWhenAskedFor) {
  AnswerSpec with = spec(true, true);
  with.include_usage = true;
  ask(with);
  source_.say(0, "Hi");
  source_.end(0, EndReason::kStopToken);
  const auto all = frames();
  ASSERT_EQ(all.size(), 6u);
  for (size_t i = 0; i < 4; ++i) EXPECT_TRUE(all[i].at("usage").is_null());
  EXPECT_EQ(all[4].at("choices"), json::array());
  EXPECT_EQ(all[4].at("usage"), json::parse(R"({"prompt_tokens":3,"completion_tokens":2,"total_tokens":5,
      "prompt_tokens_details":{"cached_tokens":0}})"));
}

TEST_F(AnswerTest, TokensThatWereInTheCacheAreCountedOnceForEachPrompt) {
  AnswerSpec two = spec(false, false);
  two.prompts = {{1, 2, 3}, {1, 2, 3, 4}};
  two.max_tokens = {50, 50};
  two.n = 2;
  two.cache_salt = "s";
  ask(two);
  ASSERT_EQ(source_.asked.size(), 4u);
  for (size_t i = 0; i < 4; ++i) {
    const AnswerRequest& request = source_.asked[i];
    EXPECT_EQ(request.cache_salt, "s");
    if (request.on_begin) request.on_begin(i < 2 ? 2 : 3);
    source_.say(i, "x");
    source_.end(i, EndReason::kMaxTokens);
  }
  EXPECT_EQ(whole().at("usage").at("prompt_tokens_details").at("cached_tokens"), 5);
}

TEST_F(AnswerTest, NoDeltaEndsInsideACharacter) {
  ask(spec(true, true));
  const std::string text = "a\u4e2d\U0001f469\u200d\U0001f4bb!";
  source_.say(0, text);
  source_.end(0, EndReason::kStopToken);
  EXPECT_EQ(content(frames()), text);  // frames() parses each, which refuses what is not UTF-8
}

TEST_F(AnswerTest, AStopStringIsCutOffAndCancelsTheRest) {
  for (const bool stream : {false, true}) {
    AnswerSpec with = spec(true, stream);
    with.stops = {"own fox"};
    ask(with);
    source_.say(first_, "the brown fox");
    source_.say(first_, " jumps");
    source_.end(first_, EndReason::kCancelled);
    exchange_->run();
    ASSERT_FALSE(source_.cancelled.empty());
    EXPECT_EQ(source_.cancelled.back(), first_);
    if (stream) {
      const auto all = frames();
      EXPECT_EQ(content(all), "the br");
      EXPECT_EQ(all[all.size() - 2].at("choices").at(0).at("finish_reason"), "stop");
    } else {
      const json::value body = whole();
      EXPECT_EQ(body.at("choices").at(0).at("message").at("content"), "the br");
      EXPECT_EQ(body.at("choices").at(0).at("finish_reason"), "stop");
      EXPECT_EQ(body.at("choices").at(0).at("stop_reason"), "own fox");
      EXPECT_EQ(body.at("usage").at("completion_tokens"), 13);
    }
  }
}

TEST_F(AnswerTest, ChoicesKeepApartAndDrawWithTheirOwnSeeds) {
  AnswerSpec three = spec(true, true);
  three.n = 3;
  three.seed = 7;
  ask(three);
  ASSERT_EQ(source_.asked.size(), 3u);
  for (size_t i = 0; i < 3; ++i) EXPECT_EQ(source_.asked[i].sampling.seed, seed_of(7, i));
  source_.say(2, "c");
  source_.say(0, "a");
  source_.end(2, EndReason::kStopToken);
  source_.say(1, "b");
  source_.end(0, EndReason::kMaxTokens);
  source_.say(1, "B");
  source_.end(1, EndReason::kStopToken);
  std::map<int64_t, std::string> text;
  std::map<int64_t, int> finishes;
  for (const json::value& frame : frames()) {
    if (!frame.is_object()) continue;
    const json::value& choice = frame.at("choices").at(0);
    const int64_t index = choice.at("index").as_int64();
    if (const json::value* piece = choice.at("delta").as_object().if_contains("content"))
      text[index] += std::string_view(piece->as_string());
    finishes[index] += choice.at("finish_reason").is_null() ? 0 : 1;
    EXPECT_EQ(frame.at("id"), "id-1");
  }
  EXPECT_EQ(text, (std::map<int64_t, std::string>{{0, "a"}, {1, "bB"}, {2, "c"}}));
  EXPECT_EQ(finishes, (std::map<int64_t, int>{{0, 1}, {1, 1}, {2, 1}}));
}

TEST_F(AnswerTest, ACompletionEchoesItsPromptsAndGivesLogprobs) {
  AnswerSpec two = spec(false, false);
  two.prompts = {{'x'}, {'y', 'z'}};
  two.max_tokens = {5, 5};
  two.echoes = {"x", "yz"};
  ask(two);
  source_.say(0, "1");
  source_.end(0, EndReason::kMaxTokens);
  source_.say(1, "2");
  source_.end(1, EndReason::kStopToken);
  json::value body = whole();
  EXPECT_EQ(body.at("object"), "text_completion");
  EXPECT_EQ(body.at("choices").at(0).at("text"), "x1");
  EXPECT_EQ(body.at("choices").at(1).at("text"), "yz2");
  EXPECT_EQ(body.at("choices").at(0).at("finish_reason"), "length");
  EXPECT_EQ(body.at("usage").at("prompt_tokens"), 3);

  AnswerSpec logprobs = spec(false, false);
  logprobs.logprobs = true;
  logprobs.return_token_ids = true;
  ask(logprobs);
  source_.say(first_, "a\xe4");
  source_.end(first_, EndReason::kMaxTokens);
  body = whole();
  EXPECT_EQ(body.at("choices").at(0).at("logprobs"),
            json::parse(R"({"tokens":["a","bytes:\\xe4"],"token_logprobs":[-0.5,-0.5],
                "top_logprobs":[{"a":-0.5},{"bytes:\\xe4":-0.5}],"text_offset":[0,1]})"));
  EXPECT_EQ(body.at("choices").at(0).at("token_ids"), json::parse("[97,228]"));
  EXPECT_EQ(body.at("choices").at(0).at("text"), "a\ufffd");
}

TEST_F(AnswerTest, AnEchoedPromptHasScoresButForItsFirstToken) {
  for (const bool stream : {false, true}) {
    AnswerSpec scored = spec(false, stream);
    scored.prompts = {{'x', 'y', 'z'}};
    scored.echoes = {"xyz"};
    scored.max_tokens = {0};
    scored.logprobs = scored.score_prompt = true;
    scored.sampling.n_top = 2;
    ask(scored);
    EXPECT_TRUE(source_.asked[first_].score_prompt);
    const Sampled of_y[] = {{'z', -0.25f}, {'y', -2}}, of_z[] = {{'q', -1}, {'r', -INFINITY}};
    source_.asked[first_].on_prompt_token({'y', -2, of_y});
    source_.asked[first_].on_prompt_token({'z', -INFINITY, of_z});
    source_.end(first_, EndReason::kMaxTokens);
    const json::value body = stream ? frames()[0] : whole();
    EXPECT_EQ(body.at("choices").at(0).at("logprobs"),
              json::parse(R"({"tokens":["x","y","z"],"token_logprobs":[null,-2,-9999],
                  "top_logprobs":[null,{"z":-0.25,"y":-2},{"q":-1,"r":-9999,"z":-9999}],
                  "text_offset":[0,1,2]})"));
    EXPECT_EQ(body.at("choices").at(0).at("text"), "xyz");
    EXPECT_EQ(body.at("choices").at(0).at("finish_reason"), "length");
    if (!stream) {
      EXPECT_EQ(body.at("usage").at("completion_tokens"), 0);
    }
  }
}

TEST_F(AnswerTest, AChatTellsTheLikeliestTokensOfEachPlace) {
  AnswerSpec with = spec(true, false);
  with.logprobs = true;
  with.sampling.n_top = 2;
  with.biases = {{7, 3}};
  ask(with);
  EXPECT_EQ(source_.asked[0].sampling.n_top, 2u);
  ASSERT_EQ(source_.asked[0].biases.size(), 1u);
  const Sampled top[] = {{'a', -0.25f}, {0xc3, -1.5f}};
  source_.asked[0].on_token({'a', -0.25f, top});
  source_.end(0, EndReason::kStopToken);
  EXPECT_EQ(whole().at("choices").at(0).at("logprobs").at("content").at(0), json::parse(R"(
      {"token":"a","logprob":-0.25,"bytes":[97],"top_logprobs":[
          {"token":"a","logprob":-0.25,"bytes":[97]},{"token":"bytes:\\xc3","logprob":-1.5,"bytes":[195]}]})"));
}

TEST_F(AnswerTest, LogprobsOfAChatNameTokenAndBytes) {
  AnswerSpec with = spec(true, true);
  with.logprobs = true;
  ask(with);
  source_.say(0, "\u00e9");
  source_.end(0, EndReason::kStopToken);
  std::string tokens;
  for (const json::value& frame : frames()) {
    if (!frame.is_object() || frame.at("choices").at(0).at("logprobs").is_null()) continue;
    for (const json::value& token : frame.at("choices").at(0).at("logprobs").at("content").as_array())
      tokens += json::serialize(token);
  }
  EXPECT_EQ(tokens, R"({"token":"bytes:\\xc3","logprob":-5E-1,"bytes":[195],"top_logprobs":[]})"
                    R"({"token":"bytes:\\xa9","logprob":-5E-1,"bytes":[169],"top_logprobs":[]})");
}

TEST_F(AnswerTest, AClientThatLeavesCancelsAllChoices) {
  AnswerSpec two = spec(true, true);
  two.n = 2;
  ask(two);
  source_.say(0, "abc");
  exchange_->run();
  exchange_->leave();
  EXPECT_EQ(source_.cancelled, (std::vector<uint64_t>{0, 1}));
  source_.say(0, "more");
  source_.end(0, EndReason::kCancelled);
  source_.end(1, EndReason::kCancelled);
  const std::string before = exchange_->response.body;
  exchange_->run();
  EXPECT_EQ(exchange_->response.body, before);
  EXPECT_EQ(metrics_.open_requests.load(), 0u);
  ASSERT_EQ(log_.records.size(), 1u);
  EXPECT_EQ(log_.records[0].note, "the client left");
}

TEST_F(AnswerTest, ASlowReaderHoldsBackFramesAndGetsThemWhenThereIsRoom) {
  ask(spec(true, true));
  exchange_->pretend_unsent = kStreamRoom;
  source_.say(0, "abc");
  source_.end(0, EndReason::kStopToken);
  EXPECT_TRUE(frames().empty());
  EXPECT_FALSE(exchange_->over);
  exchange_->pretend_unsent = 0;
  const auto room = exchange_->events.on_room;
  room();
  EXPECT_EQ(content(frames()), "abc");
  EXPECT_TRUE(exchange_->over);
}

TEST_F(AnswerTest, AStalledReaderIsEndedWithAnErrorFrame) {
  ask(spec(true, true));
  source_.say(0, "a");
  exchange_->run();
  const auto stalled = exchange_->events.on_stalled;
  stalled();
  const auto all = frames();
  EXPECT_EQ(all[all.size() - 2].at("error").at("code"), "slow_client");
  EXPECT_EQ(all.back(), "[DONE]");
  EXPECT_EQ(source_.cancelled, std::vector<uint64_t>{0});
  EXPECT_TRUE(exchange_->over);
}

TEST_F(AnswerTest, AFailedStepIsAnErrorFrameInAStreamAndA500Otherwise) {
  ask(spec(true, true));
  source_.say(0, "abcde");
  source_.end(0, EndReason::kFailed, "worker 1 waited in vain");
  const auto all = frames();
  EXPECT_EQ(content(all), "abcde");
  EXPECT_EQ(all[all.size() - 2].at("error").at("message"), "worker 1 waited in vain");
  EXPECT_EQ(all.back(), "[DONE]");
  for (const json::value& frame : all) {
    if (frame.is_object() && frame.as_object().contains("choices")) {
      EXPECT_TRUE(frame.at("choices").at(0).at("finish_reason").is_null());
    }
  }
  ask(spec(true, false));
  source_.end(first_, EndReason::kFailed, "worker 1 waited in vain");
  EXPECT_EQ(whole().at("error").at("type"), "server_error");
  EXPECT_EQ(exchange_->response.status, 500);
  EXPECT_NE(metrics_.text({}).find("plow_answers_total{reason=\"error\"} 2"), std::string::npos);
}

TEST_F(AnswerTest, WhatTheSourceDoesNotTakeIsAnHttpErrorBeforeAnyEvent) {
  source_.refuse_with = Refused{Refusal::kQueueFull, "full"};
  source_.now.counts.waiting = 9;
  ask(spec(true, true));
  EXPECT_FALSE(exchange_->streams);
  EXPECT_EQ(exchange_->response.status, 503);
  EXPECT_EQ(whole().at("error").at("code"), "queue_full");
  const auto retry = std::ranges::find_if(exchange_->response.fields,
                                          [](const HttpField& f) { return f.name == "Retry-After"; });
  ASSERT_NE(retry, exchange_->response.fields.end());
  EXPECT_EQ(retry->value, "10");  // a second each, before any was measured
  source_.refuse_with = Refused{Refusal::kDraining, "bye"};
  ask(spec(true, false));
  EXPECT_EQ(exchange_->response.status, 503);
  source_.refuse_with = Refused{Refusal::kInvalid, "no"};
  ask(spec(true, false));
  EXPECT_EQ(exchange_->response.status, 400);
}

TEST_F(AnswerTest, AServerThatStopsSaysSo) {
  ask(spec(true, true));
  source_.say(0, "a");
  source_.end(0, EndReason::kCancelled);
  EXPECT_EQ(frames()[2].at("error").at("code"), "shutting_down");
  ask(spec(true, false));
  source_.end(first_, EndReason::kCancelled);
  whole();
  EXPECT_EQ(exchange_->response.status, 503);
}

TEST_F(AnswerTest, AnEmptyAnswerIsStillAnAnswer) {
  ask(spec(true, true));
  source_.end(0, EndReason::kStopToken);
  const auto all = frames();
  ASSERT_EQ(all.size(), 3u);
  EXPECT_EQ(all[0].at("choices").at(0).at("delta").at("role"), "assistant");
  EXPECT_EQ(all[1].at("choices").at(0).at("finish_reason"), "stop");
}

TEST_F(AnswerTest, NothingIsKeptWhenAnAnswerIsOver) {
  ask(spec(true, true));
  source_.say(0, "a");
  source_.end(0, EndReason::kStopToken);
  exchange_->run();
  source_.asked.clear();  // as the batcher lets go of the request
  const std::weak_ptr<Answer> answer = answer_;
  answer_.reset();
  EXPECT_TRUE(answer.expired());
}

constexpr const char* kTwoCalls =
    "Wait.\n<tool_call>\n{\"name\": \"f\", \"arguments\": {\"x\": 1}}\n</tool_call>\n<tool_call>{\"name\": "
    "\"g\", "
    "\"arguments\": {}}</tool_call>";

TEST_F(AnswerTest, CallsOfToolsAreTakenOutOfTheText) {
  AnswerSpec request = spec(true, false);
  request.tools = ToolDialect::kHermes;
  ask(request);
  source_.say(0, kTwoCalls);
  source_.end(0, EndReason::kStopToken);
  const json::value choice = whole().at("choices").at(0);
  EXPECT_EQ(choice.at("finish_reason"), "tool_calls");
  EXPECT_EQ(choice.at("message").at("content"), "Wait.");
  const json::array& calls = choice.at("message").at("tool_calls").as_array();
  ASSERT_EQ(calls.size(), 2u);
  EXPECT_EQ(calls[0].at("type"), "function");
  EXPECT_EQ(calls[0].at("function"), (json::object{{"name", "f"}, {"arguments", "{\"x\": 1}"}}));
  EXPECT_EQ(calls[1].at("function").at("arguments"), "{}");
  EXPECT_NE(calls[0].at("id"), calls[1].at("id"));
}

TEST_F(AnswerTest, StreamedCallsJoinToTheWholeOnesAndAreNamedOnce) {
  AnswerSpec request = spec(true, true);
  request.tools = ToolDialect::kHermes;
  ask(request);
  source_.say(0, kTwoCalls);
  source_.end(0, EndReason::kStopToken);
  std::map<int64_t, std::string> names, arguments;
  std::map<int64_t, int> ids;
  std::string text, reason;
  for (const json::value& frame : frames()) {
    if (!frame.is_object()) continue;
    const json::value& choice = frame.at("choices").at(0);
    if (choice.at("finish_reason").is_string()) reason = choice.at("finish_reason").as_string();
    const json::object& delta = choice.at("delta").as_object();
    if (const json::value* piece = delta.if_contains("content")) text += std::string_view(piece->as_string());
    if (!delta.contains("tool_calls")) continue;
    for (const json::value& call : delta.at("tool_calls").as_array()) {
      const int64_t index = call.at("index").to_number<int64_t>();
      ids[index] += call.as_object().contains("id") ? 1 : 0;
      const json::object& function = call.at("function").as_object();
      if (function.contains("name")) names[index] += std::string_view(function.at("name").as_string());
      arguments[index] += std::string_view(function.at("arguments").as_string());
    }
  }
  EXPECT_EQ(text, "Wait.");
  EXPECT_EQ(reason, "tool_calls");
  EXPECT_EQ(ids, (std::map<int64_t, int>{{0, 1}, {1, 1}}));
  EXPECT_EQ(names, (std::map<int64_t, std::string>{{0, "f"}, {1, "g"}}));
  EXPECT_EQ(arguments, (std::map<int64_t, std::string>{{0, "{\"x\": 1}"}, {1, "{}"}}));
}

TEST_F(AnswerTest, AToolThatWasNamedEndsWithStopAndACutCallWithLength) {
  AnswerSpec request = spec(true, false);
  request.tools = ToolDialect::kHermes;
  request.named_tool = true;
  ask(request);
  source_.say(0, "<tool_call>{\"name\": \"f\", \"arguments\": {}}</tool_call>");
  source_.end(0, EndReason::kStopToken);
  const json::value named = whole().at("choices").at(0);
  EXPECT_EQ(named.at("finish_reason"), "stop");
  EXPECT_TRUE(named.at("message").at("content").is_null());
  request.named_tool = false;
  ask(request);
  source_.say(1, "<tool_call>{\"name\": \"f\", \"arg");
  source_.end(1, EndReason::kMaxTokens);
  EXPECT_EQ(whole().at("choices").at(0).at("finish_reason"), "length");
}

TEST_F(AnswerTest, ThoughtsAreKeptApartUnderBothNamesAndCounted) {
  for (const bool in_thought : {false, true}) {
    AnswerSpec request = spec(true, false);
    request.thinks = true;
    request.in_thought = in_thought;
    ask(request);
    source_.say(first_, std::string(in_thought ? "" : "<think>") + "hm</think>\n\nYes.");
    source_.end(first_, EndReason::kStopToken);
    const json::value answer = whole();
    const json::value& message = answer.at("choices").at(0).at("message");
    EXPECT_EQ(message.at("content"), "Yes.");
    EXPECT_EQ(message.at("reasoning_content"), "hm");
    EXPECT_EQ(message.at("reasoning"), "hm");
    EXPECT_GE(answer.at("usage").at("completion_tokens_details").at("reasoning_tokens").to_number<int>(), 2);
  }
  AnswerSpec request = spec(true, false);
  request.thinks = true;
  ask(request);
  source_.say(first_, "<think>and the budget en");
  source_.end(first_, EndReason::kMaxTokens);
  const json::value answer = whole();
  EXPECT_EQ(answer.at("choices").at(0).at("finish_reason"), "length");
  EXPECT_EQ(answer.at("choices").at(0).at("message").at("content"), "");
  EXPECT_EQ(answer.at("choices").at(0).at("message").at("reasoning"), "and the budget en");
}

}  // namespace
}  // namespace plow
