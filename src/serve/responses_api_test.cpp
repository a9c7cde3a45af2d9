#include "serve/responses_api.h"

#include "serve/testing/service_rig.h"

#include <gtest/gtest.h>

#include <map>

namespace plow {
namespace {

namespace json = boost::json;

const char* const kTools =
    R"(,"tools":[{"type":"function","name":"add","parameters":{"type":"object","properties":{"a":{"type":"integer"}}}}])";
const char* const kCall = "Sure.\n<tool_call>\n{\"name\": \"add\", \"arguments\": {\"a\": 5}}\n</tool_call>";

TEST(Responses, AnAnswerIsAListOfItems) {
  ServiceRig rig;
  rig.send("POST", "/v1/responses",
           R"({"input":"Hi","instructions":"Be brief","max_output_tokens":9,"metadata":{"k":"v"}})");
  EXPECT_EQ(
      rig.prompt(),
      "<|im_start|>system\nBe brief<|im_end|>\n<|im_start|>user\nHi<|im_end|>\n<|im_start|>assistant\n");
  EXPECT_EQ(rig.source.asked[0].max_tokens, 9u);
  rig.answer("Hello");
  const json::object body = rig.body().as_object();
  EXPECT_EQ(body.at("id"), "resp_1");
  EXPECT_EQ(body.at("object"), "response");
  EXPECT_EQ(body.at("status"), "completed");
  EXPECT_EQ(body.at("output"),
            json::parse(R"([{"id":"msg_resp_1_0","status":"completed","type":"message","role":"assistant",
      "content":[{"type":"output_text","text":"Hello","annotations":[],"logprobs":[]}]}])"));
  EXPECT_EQ(body.at("usage").at("total_tokens"), 44);
  EXPECT_EQ(body.at("metadata"), json::parse(R"({"k":"v"})"));
  EXPECT_EQ(body.at("instructions"), "Be brief");
  rig.send("POST", "/v1/responses", R"({"input":"Hi"})");
  rig.answer("Hel", EndReason::kMaxTokens);
  EXPECT_EQ(rig.body().at("status"), "incomplete");
  EXPECT_EQ(rig.body().at("incomplete_details").at("reason"), "max_output_tokens");
}

TEST(Responses, EventsAreNumberedAndEachItemBeginsAndEnds) {
  ServiceRig rig(ToolDialect::kHermes, true);
  rig.send("POST", "/v1/responses", std::string(R"({"input":"Hi","stream":true)") + kTools + "}");
  rig.answer(std::string("<think>hm</think>") + kCall);
  std::map<std::string, std::string> deltas;
  std::vector<std::string> done;
  std::string open;
  uint64_t n = 0;
  for (const json::object& event : rig.events()) {
    EXPECT_EQ(event.at("sequence_number"), n++);
    const std::string type(event.at("type").as_string());
    if (type == "response.output_item.added") {
      EXPECT_EQ(open, "");
      open = std::string(event.at("item").at("id").as_string());
      EXPECT_EQ(event.at("output_index"), done.size());
    } else if (type.ends_with(".delta")) {
      EXPECT_EQ(event.at("item_id"), open.c_str());
      deltas[type] += std::string_view(event.at("delta").as_string());
    } else if (type == "response.output_item.done") {
      EXPECT_EQ(event.at("item").at("id"), open.c_str());
      open.clear();
      done.emplace_back(event.at("item").at("type").as_string());
    }
  }
  EXPECT_EQ(done, (std::vector<std::string>{"reasoning", "message", "function_call"}));
  EXPECT_EQ(deltas["response.reasoning_text.delta"], "hm");
  EXPECT_EQ(deltas["response.output_text.delta"], "Sure.");
  EXPECT_EQ(json::parse(deltas["response.function_call_arguments.delta"]), json::parse(R"({"a":5})"));
  const auto events = rig.events();
  EXPECT_EQ(events[0].at("type"), "response.created");
  EXPECT_EQ(events[0].at("response").at("status"), "in_progress");
  EXPECT_EQ(events.back().at("type"), "response.completed");
  const json::array output = events.back().at("response").at("output").as_array();
  ASSERT_EQ(output.size(), 3u);
  EXPECT_EQ(output[2].at("name"), "add");

  // The same answer, whole.
  rig.send("POST", "/v1/responses", std::string(R"({"input":"Hi")") + kTools + "}");
  rig.answer(std::string("<think>hm</think>") + kCall);
  EXPECT_EQ(json::serialize(rig.body().at("output")), json::serialize(output));
}

TEST(Responses, AConversationGoesOnFromAStoredResponse) {
  ServiceRig rig;
  rig.send("POST", "/v1/responses", R"({"input":"one","instructions":"x"})");
  rig.answer("two");
  EXPECT_EQ(rig.send("GET", "/v1/responses/resp_1").status, 200);
  EXPECT_EQ(rig.body().at("output").at(0).at("content").at(0).at("text"), "two");
  rig.send("POST", "/v1/responses", R"({"input":"three","previous_response_id":"resp_1","store":false})",
           {{"X-Request-Id", "2"}});
  EXPECT_EQ(rig.prompt(),
            "<|im_start|>user\none<|im_end|>\n<|im_start|>assistant\ntwo<|im_end|>\n<|im_start|>user\nthree<|"
            "im_end|>\n"
            "<|im_start|>assistant\n");
  rig.answer("four");
  EXPECT_EQ(rig.body().at("previous_response_id"), "resp_1");
  EXPECT_EQ(rig.send("GET", "/v1/responses/resp_2").status, 404);  // it was not stored
  EXPECT_EQ(rig.send("POST", "/v1/responses", R"({"input":"x","previous_response_id":"resp_2"})").status,
            400);
  EXPECT_EQ(rig.body().at("error").at("code"), "previous_response_not_found");
}

TEST(Responses, ItemsOfEarlierAnswersBecomeMessages) {
  ResponsesRequest out;
  std::vector<std::string> unknown;
  const json::object body = json::parse(R"({"input":[{"role":"developer","content":"d"},
      {"type":"message","role":"user","content":[{"type":"input_text","text":"2?"}]},{"type":"reasoning","id":"r","summary":[]},
      {"type":"message","role":"assistant","id":"m","content":[{"type":"output_text","text":"Let me see"}]},
      {"type":"function_call","call_id":"c1","name":"add","arguments":"{\"a\":2}"},
      {"type":"function_call","call_id":"c2","name":"add","arguments":"{}"},
      {"type":"function_call_output","call_id":"c1","output":"4"}],
      "text":{"format":{"type":"json_schema","name":"n","schema":{"type":"object"},"strict":true}},
      "tool_choice":{"type":"function","name":"add"},"reasoning":{"effort":"low"},"include":["message.output_text.logprobs"]})")
                                .as_object();
  EXPECT_FALSE(read_responses(body, ResponseStore(), out, unknown));
  EXPECT_EQ(out.chat.at("messages"), json::parse(R"([{"role":"system","content":"d"},
      {"role":"user","content":[{"type":"input_text","text":"2?"}]},
      {"role":"assistant","content":[{"type":"output_text","text":"Let me see"}],"tool_calls":[
         {"id":"c1","type":"function","function":{"name":"add","arguments":"{\"a\":2}"}},
         {"id":"c2","type":"function","function":{"name":"add","arguments":"{}"}}]},
      {"role":"tool","tool_call_id":"c1","content":"4"}])"));
  EXPECT_EQ(
      out.chat.at("response_format"),
      json::parse(
          R"({"type":"json_schema","json_schema":{"name":"n","schema":{"type":"object"},"strict":true}})"));
  EXPECT_EQ(out.chat.at("tool_choice"), json::parse(R"({"type":"function","function":{"name":"add"}})"));
  EXPECT_EQ(out.chat.at("reasoning_effort"), "low");
  EXPECT_EQ(out.chat.at("logprobs"), true);
}

TEST(Responses, LogprobsAreOfAllTokensOfTheText) {
  for (const bool stream : {false, true}) {
    ServiceRig rig;
    rig.send("POST", "/v1/responses",
             std::string(R"({"input":"Hi","top_logprobs":1,"stream":)") + (stream ? "true}" : "false}"));
    const Sampled top[] = {{'q', -0.25f}};
    for (const char c : std::string_view("\xc3\xa9!"))
      rig.source.asked[0].on_token({static_cast<unsigned char>(c), -1, top});
    rig.answer("");
    const json::value response = stream ? rig.events().back().at("response") : rig.body();
    const json::array logprobs = response.at("output").at(0).at("content").at(0).at("logprobs").as_array();
    ASSERT_EQ(logprobs.size(), 3u);
    EXPECT_EQ(logprobs[2], json::parse(R"({"token":"!","logprob":-1.0,"bytes":[33],
        "top_logprobs":[{"token":"q","logprob":-0.25,"bytes":[113]}]})"));
  }
}

TEST(Responses, WhatIsWrongIsA400AndNothingIsAsked) {
  ServiceRig rig(ToolDialect::kHermes);
  for (const char* body :
       {"{", "{}", R"({"input":5})", R"({"input":[]})", R"({"input":[5]})",
        R"({"input":[{"type":"item_reference","id":"x"}]})", R"({"input":[{"role":"user"}]})",
        R"({"input":[{"role":"root","content":"x"}]})", R"({"input":[{"type":"function_call","name":"x"}]})",
        R"({"input":[{"type":"function_call_output","output":"x"}]})",
        R"({"input":[{"role":"user","content":[{"type":"input_image"}]}]})",
        R"({"input":"x","tools":[{"type":"web_search"}]})", R"({"input":"x","text":{"format":5}})",
        R"({"input":"x","text":{"format":{"type":"xml"}}})", R"({"input":"x","background":true})",
        R"({"input":"x","truncation":"auto"})", R"({"input":"x","tool_choice":{"type":"function"}})",
        R"({"input":"x","max_output_tokens":0})", R"({"input":"x","reasoning":{"effort":5}})"}) {
    EXPECT_EQ(rig.send("POST", "/v1/responses", body).status, 400) << body;
    EXPECT_FALSE(rig.body().at("error").at("message").as_string().empty());
  }
  EXPECT_TRUE(rig.source.asked.empty());
  rig.send("POST", "/v1/responses", R"({"input":"x","stream":true})");
  rig.source.end(0, EndReason::kFailed, "broken");
  rig.exchange->run();
  EXPECT_EQ(rig.events().back().at("type"), "response.failed");
  EXPECT_EQ(rig.events().back().at("response").at("error").at("message"), "broken");
}

TEST(ResponseStore, TheOldestAreForgotten) {
  ResponseStore store(3, 100);
  const auto has = [&](const char* id) { return store.find(id).has_value(); };
  for (const char* id : {"a", "b", "c", "d"}) store.put(id, {"12345", id});
  EXPECT_TRUE(!has("a") && has("b") && has("d"));
  store.put("b", {"x", "new"});
  EXPECT_EQ(store.find("b")->response, "new");
  store.put("e", {std::string(60, 'x'), std::string(30, 'x')});
  EXPECT_TRUE(!has("c") && !has("d") && has("b") && has("e"));
  store.put("f", {std::string(200, 'x'), ""});  // larger than all that may be kept
  EXPECT_FALSE(has("f"));
  store.put("g", {"1", "2"});
  EXPECT_TRUE(has("g"));
}

}  // namespace
}  // namespace plow
