#include "serve/messages_api.h"

#include "serve/testing/service_rig.h"

#include <gtest/gtest.h>

namespace plow {
namespace {

namespace json = boost::json;

std::string request(const std::string& more = {},
                    const std::string& messages = R"([{"role":"user","content":"Hi"}])") {
  return R"({"model":"byte-model","max_tokens":40,"messages":)" + messages + more + "}";
}

const char* const kTools =
    R"(,"tools":[{"name":"add","description":"Adds","input_schema":{"type":"object","properties":{"a":{"type":"integer"}},
       "required":["a"]}}])";
const char* const kCall = "Sure.\n<tool_call>\n{\"name\": \"add\", \"arguments\": {\"a\": 5}}\n</tool_call>";

TEST(Messages, AnAnswerIsAMessageOfBlocks) {
  ServiceRig rig;
  rig.send("POST", "/v1/messages",
           request(R"(,"system":[{"type":"text","text":"Be brief"}],"temperature":0)"));
  EXPECT_EQ(
      rig.prompt(),
      "<|im_start|>system\nBe brief<|im_end|>\n<|im_start|>user\nHi<|im_end|>\n<|im_start|>assistant\n");
  rig.answer("Hello");
  EXPECT_EQ(rig.body(), json::parse(R"({"id":"msg_1","type":"message","role":"assistant","model":"byte-model",
      "content":[{"type":"text","text":"Hello"}],"stop_reason":"end_turn","stop_sequence":null,
      "usage":{"input_tokens":39,"output_tokens":5}})"));
}

TEST(Messages, AStreamBeginsAndEndsItsBlocks) {
  ServiceRig rig(ToolDialect::kHermes, true);
  rig.send("POST", "/v1/messages", request(std::string(R"(,"stream":true)") + kTools));
  rig.answer(std::string("<think>hm</think>") + kCall);
  std::string types, thinking, text, arguments;
  int64_t open = -1, next = 0;
  for (const json::object& event : rig.events()) {
    const std::string_view type = event.at("type").as_string();
    if (type == "content_block_start") {
      EXPECT_EQ(open, -1);
      open = event.at("index").as_int64();
      EXPECT_EQ(open, next++);
      types += std::string_view(event.at("content_block").at("type").as_string());
      types += ' ';
    } else if (type == "content_block_delta") {
      EXPECT_EQ(event.at("index"), open);
      const json::object& delta = event.at("delta").as_object();
      if (const auto* piece = delta.if_contains("thinking")) thinking += std::string_view(piece->as_string());
      if (const auto* piece = delta.if_contains("text")) text += std::string_view(piece->as_string());
      if (const auto* piece = delta.if_contains("partial_json"))
        arguments += std::string_view(piece->as_string());
    } else if (type == "content_block_stop") {
      EXPECT_EQ(event.at("index"), open);
      open = -1;
    }
  }
  EXPECT_EQ(types, "thinking text tool_use ");
  EXPECT_EQ(thinking, "hm");
  EXPECT_EQ(text, "Sure.");
  EXPECT_EQ(json::parse(arguments), json::parse(R"({"a":5})"));
  const auto events = rig.events();
  EXPECT_EQ(events.front().at("type"), "message_start");
  EXPECT_EQ(events[events.size() - 2].at("delta").at("stop_reason"), "tool_use");
  EXPECT_EQ(events.back().at("type"), "message_stop");
}

TEST(Messages, ReasonsOfAnEndHaveAnthropicsNames) {
  ServiceRig rig(ToolDialect::kHermes);
  rig.send("POST", "/v1/messages", request(R"(,"stop_sequences":["END"])"));
  rig.answer("one END two");
  EXPECT_EQ(rig.body().at("stop_reason"), "stop_sequence");
  EXPECT_EQ(rig.body().at("stop_sequence"), "END");
  rig.send("POST", "/v1/messages", request());
  rig.answer("one", EndReason::kMaxTokens);
  EXPECT_EQ(rig.body().at("stop_reason"), "max_tokens");
  rig.send("POST", "/v1/messages",
           request(std::string(kTools) + R"(,"tool_choice":{"type":"tool","name":"add"})"));
  rig.answer("<tool_call>\n{\"name\": \"add\", \"arguments\": {\"a\": 5}}\n</tool_call>");
  EXPECT_EQ(rig.body().at("stop_reason"), "tool_use");
  EXPECT_EQ(rig.body().at("content").at(0).at("input"), json::parse(R"({"a":5})"));
  EXPECT_EQ(rig.body().at("content").at(0).at("name"), "add");
}

TEST(Messages, CallsAndTheirResultsBecomeThoseOfAChat) {
  json::object chat;
  std::vector<std::string> unknown;
  const json::object body =
      json::parse(request(R"(,"tool_choice":{"type":"any","disable_parallel_tool_use":true},
      "thinking":{"type":"disabled"},"novel":1)",
                          R"([{"role":"user","content":[{"type":"text","text":"2?"}]},
      {"role":"assistant","content":[{"type":"thinking","thinking":"hm","signature":""},{"type":"text","text":"Let me see"},
         {"type":"tool_use","id":"t1","name":"add","input":{"a":2}},{"type":"tool_use","id":"t2","name":"add","input":{}}]},
      {"role":"user","content":[{"type":"tool_result","tool_use_id":"t1","content":"4"},
         {"type":"tool_result","tool_use_id":"t2","content":[{"type":"text","text":"x"},{"type":"text","text":"y"}]},
         {"type":"text","text":"So?"}]}])"))
          .as_object();
  EXPECT_FALSE(chat_of_messages(body, false, chat, unknown));
  EXPECT_EQ(unknown, std::vector<std::string>{"novel"});
  EXPECT_EQ(chat.at("messages"), json::parse(R"([{"role":"user","content":"2?"},
      {"role":"assistant","content":"Let me see","reasoning_content":"hm","tool_calls":[
        {"id":"t1","type":"function","function":{"name":"add","arguments":"{\"a\":2}"}},
        {"id":"t2","type":"function","function":{"name":"add","arguments":"{}"}}]},
      {"role":"tool","tool_call_id":"t1","content":"4"},{"role":"tool","tool_call_id":"t2","content":"x\ny"},
      {"role":"user","content":"So?"}])"));
  EXPECT_EQ(chat.at("tool_choice"), "required");
  EXPECT_EQ(chat.at("parallel_tool_calls"), false);
  EXPECT_EQ(chat.at("chat_template_kwargs"), json::parse(R"({"enable_thinking":false})"));
}

TEST(Messages, WhatIsWrongIsAnErrorInAnthropicsShape) {
  ServiceRig rig(ToolDialect::kHermes);
  for (
      const std::string& body :
      {std::string("{"),
       std::string(R"({"max_tokens":1})"),
       std::string(R"({"messages":[{"role":"user","content":"x"}]})"),
       request(R"(,"system":5)"),
       request(R"(,"system":[{"type":"image"}])"),
       request("", "[]"),
       request("", "[5]"),
       request("", R"([{"role":"system","content":"x"}])"),
       request("", R"([{"role":"user"}])"),
       request("", R"([{"role":"user","content":[5]}])"),
       request("", R"([{"role":"user","content":[{"type":"text"}]}])"),
       request("", R"([{"role":"user","content":[{"type":"image","source":{}}]}])"),
       request("", R"([{"role":"user","content":[{"type":"tool_result","content":"x"}]}])"),
       request(
           "",
           R"([{"role":"assistant","content":[{"type":"tool_use","id":"a","name":"b"}]},{"role":"user","content":"x"}])"),
       request("", R"([{"role":"user","content":"x"},{"role":"assistant","content":"y"}])"),
       request(R"(,"tools":[5])"),
       request(R"(,"tools":[{"type":"web_search","name":"x"}])"),
       request(R"(,"tools":[{}])"),
       request(std::string(kTools) + R"(,"tool_choice":{"type":"tool"})"),
       request(R"(,"tool_choice":{"type":"any"})"),
       request(R"(,"thinking":{"type":"maybe"})"),
       request(R"(,"mcp_servers":[1])"),
       request(R"(,"max_tokens":0)")}) {
    EXPECT_EQ(rig.send("POST", "/v1/messages", body).status, 400) << body;
    EXPECT_EQ(rig.body().at("type"), "error");
    EXPECT_EQ(rig.body().at("error").at("type"), "invalid_request_error") << body;
    EXPECT_FALSE(rig.body().at("error").at("message").as_string().empty());
  }
  EXPECT_TRUE(rig.source.asked.empty());
  rig.send("POST", "/v1/messages",
           R"({"model":"other","max_tokens":4,"messages":[{"role":"user","content":"x"}]})");
  EXPECT_EQ(rig.body().at("error").at("type"), "not_found_error");
  rig.send("POST", "/v1/messages", request(R"(,"stream":true)"));
  rig.source.end(0, EndReason::kFailed, "broken");
  rig.exchange->run();
  EXPECT_EQ(rig.events().back(),
            json::parse(R"({"type":"error","error":{"type":"api_error","message":"broken"}})"));
}

TEST(Messages, TokensAreCountedAsAPromptHasThem) {
  ServiceRig rig;
  const std::string conversation = R"({"messages":[{"role":"user","content":"Hi"}],"system":"Be brief"})";
  rig.send("POST", "/v1/messages/count_tokens", conversation);
  EXPECT_EQ(rig.body(), json::parse(R"({"input_tokens":39})"));
  rig.send("POST", "/v1/messages/count_tokens",
           R"({"messages":[{"role":"user","content":")" + std::string(1000, 'x') + "\"}]}");
  EXPECT_EQ(rig.body(), json::parse(R"({"input_tokens":1019})"));  // beyond the context of 200
  EXPECT_EQ(rig.send("POST", "/v1/messages/count_tokens", "{}").status, 400);
}

TEST(Messages, TheKeyMayComeInTheHeaderOfAnthropicsClients) {
  ServiceRig rig(ToolDialect::kNone, false, "secret");
  EXPECT_EQ(rig.send("POST", "/v1/messages", request()).status, 401);
  EXPECT_EQ(rig.body().at("error").at("type"), "authentication_error");
  EXPECT_EQ(rig.send("POST", "/v1/messages", request(), {{"X-Api-Key", "secre"}}).status, 401);
  rig.send("POST", "/v1/messages", request(), {{"X-Api-Key", "secret"}});
  EXPECT_EQ(rig.answer("ok").status, 200);
}

}  // namespace
}  // namespace plow
