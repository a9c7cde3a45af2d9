#include "serve/channel_parser.h"

#include "serve/testing/service_rig.h"

#include <gtest/gtest.h>

namespace plow {
namespace {

namespace json = boost::json;

struct Parts {
  std::string thought, text;
  std::vector<std::pair<std::string, std::string>> calls;  // name, arguments
  bool operator==(const Parts&) const = default;
};

void add(const std::vector<ToolEvent>& events, Parts& parts) {
  for (const ToolEvent& event : events) {
    switch (event.kind) {
      case ToolEvent::Kind::kText:
        parts.text += event.text;
        break;
      case ToolEvent::Kind::kThought:
        parts.thought += event.text;
        break;
      case ToolEvent::Kind::kCall:
        parts.calls.emplace_back(event.text, "");
        break;
      case ToolEvent::Kind::kArguments:
        parts.calls.back().second += event.text;
        break;
    }
  }
}

// Whole, and the same in pieces of any size.
Parts parse(ToolDialect dialect, std::string_view text) {
  Parts whole;
  for (size_t size = text.size() + 1; size > 0; size = size > 7 ? 7 : size - 1) {
    ChannelParser parser(dialect);
    Parts parts;
    for (size_t i = 0; i < text.size(); i += size) add(parser.push(text.substr(i, size)), parts);
    add(parser.finish(), parts);
    if (size > text.size()) whole = parts;
    EXPECT_EQ(parts, whole) << "pieces of " << size;
  }
  return whole;
}

TEST(Harmony, ChannelsAreThoughtsAndText) {
  EXPECT_EQ(parse(ToolDialect::kHarmony,
                  "<|channel|>analysis<|message|>I < "
                  "think<|end|><|start|>assistant<|channel|>final<|message|>So <b>"),
            (Parts{"I < think", "So <b>", {}}));
  EXPECT_EQ(parse(ToolDialect::kHarmony, "<|channel|>final<|message|>Only<|return|>"),
            (Parts{"", "Only", {}}));
  EXPECT_EQ(parse(ToolDialect::kHarmony, "<|channel|>commentary<|message|>First I<|end|>"),
            (Parts{"", "First I", {}}));
  // Cut inside of the thoughts, of a header; without any header.
  EXPECT_EQ(parse(ToolDialect::kHarmony, "<|channel|>analysis<|message|>I th"), (Parts{"I th", "", {}}));
  EXPECT_EQ(parse(ToolDialect::kHarmony, "<|channel|>analysis<|message|>a<|end|><|start|>assistant<|chan"),
            (Parts{"a", "", {}}));
  EXPECT_EQ(parse(ToolDialect::kHarmony, "{\"a\": 1}"), (Parts{"", "{\"a\": 1}", {}}));
}

TEST(Harmony, CallsAreThoseToFunctionsWhereverTheHeaderNamesThem) {
  const std::vector<std::pair<std::string, std::string>> call = {{"get_weather", "{\"city\":\"<|\"}"}};
  for (const char* header : {"<|channel|>commentary to=functions.get_weather <|constrain|>json<|message|>",
                             " to=functions.get_weather<|channel|>commentary json<|message|>",
                             "<|channel|>commentary to=functions.get_weather<|message|>"}) {
    EXPECT_EQ(parse(ToolDialect::kHarmony, std::string(header) + "{\"city\":\"<|\"}<|call|>"),
              (Parts{"", "", call}))
        << header;
  }
  EXPECT_EQ(
      parse(ToolDialect::kHarmony,
            "<|channel|>analysis<|message|>hm<|end|><|start|>assistant to=functions.f<|channel|>commentary "
            "json<|message|>{\"a\":1}<|call|><|start|>assistant<|channel|>commentary "
            "to=functions.g<|message|>"),
      (Parts{"hm", "", {{"f", "{\"a\":1}"}, {"g", "{}"}}}));
}

TEST(Gemma, MarkedPartsAreThoughtsTextAndCalls) {
  EXPECT_EQ(parse(ToolDialect::kGemma, "<|channel>thought\nI <think\n<channel|>So < b"),
            (Parts{"I <think\n", "So < b", {}}));
  EXPECT_EQ(parse(ToolDialect::kGemma,
                  "<|tool_call>call:get{city:<|\"|>Paris, "
                  "\"FR\"}<|\"|>,n:2}<tool_call|><|tool_call>call:now{}<tool_call|>"),
            (Parts{"", "", {{"get", R"({"city":"Paris, \"FR\"}","n":2})"}, {"now", "{}"}}}));
  EXPECT_EQ(parse(ToolDialect::kGemma, "a<|tool_call>call:get{city"), (Parts{"", "a", {}}));  // cut
  EXPECT_EQ(parse(ToolDialect::kGemma, "<|tool_call>nonsense<tool_call|>"), (Parts{"", "nonsense", {}}));
}

TEST(Gemma, ArgumentsBecomeJson) {
  EXPECT_EQ(
      json_of_gemma(R"({a:1,b:-2.5e3,c:true,d:null,e:[1,<|"|>x<|"|>,{f:[]}],<|"|>g h<|"|>:{},i:bare word})"),
      R"({"a":1,"b":-2.5e3,"c":true,"d":null,"e":[1,"x",{"f":[]}],"g h":{},"i":"bare word"})");
  EXPECT_EQ(json_of_gemma("{a:<|\"|>line\nbreak \"quoted\" \\<|\"|>}"),
            "{\"a\":\"line\\nbreak \\\"quoted\\\" \\\\\"}");
  for (const char* wrong : {"", "{", "{a}", "{a:}", "{a:1", "{a:1,}", "{a:<|\"|>x}", "{a:1}}", "[1,2"})
    EXPECT_EQ(json_of_gemma(wrong), std::nullopt) << wrong;
  EXPECT_EQ(json_of_gemma(std::string(1000, '[')), std::nullopt);
}

TEST(Channels, DialectsAreKnownByTheirTemplates) {
  EXPECT_EQ(tool_dialect_of("{{ '<|channel|>final<|message|>' }} tools"), ToolDialect::kHarmony);
  EXPECT_EQ(tool_dialect_of("{{ '<|tool_call>call:' + name }}"), ToolDialect::kGemma);
}

TEST(Channels, AnAnswerIsSplitAlsoInAStream) {
  for (const bool stream : {false, true}) {
    ServiceRig rig(ToolDialect::kHarmony);
    rig.send("POST", "/v1/chat/completions",
             std::string(R"({"messages":[{"role":"user","content":"x"}],"stream":)") +
                 (stream ? "true}" : "false}"));
    rig.answer("<|channel|>analysis<|message|>hm<|end|><|start|>assistant<|channel|>final<|message|>yes");
    const std::string body = rig.exchange->response.body;
    EXPECT_EQ(body.find("<|"), std::string::npos) << body;
    if (stream) continue;
    const json::value answer = rig.body();
    EXPECT_EQ(answer.at("choices").at(0).at("message").at("content"), "yes");
    EXPECT_EQ(answer.at("choices").at(0).at("message").at("reasoning_content"), "hm");
    EXPECT_EQ(answer.at("usage").at("completion_tokens_details").at("reasoning_tokens"),
              9);  // with the mark that ends them, of 7 bytes
  }
}

TEST(Channels, HarmonysOneToolCanBeAskedForAndGemmasCannot) {
  const std::string tools =
      R"("messages":[{"role":"user","content":"x"}],"tools":[{"type":"function","function":{"name":"add",
         "parameters":{"type":"object","properties":{"a":{"type":"integer"}},"required":["a"]}}}])";
  ServiceRig harmony(ToolDialect::kHarmony);
  harmony.send("POST", "/v1/chat/completions", "{" + tools + R"(,"tool_choice":"required"})");
  EXPECT_TRUE(harmony.prompt().ends_with(
      "assistant\n<|channel|>commentary to=functions.add <|constrain|>json<|message|>"));
  EXPECT_NE(harmony.source.asked.back().rule, nullptr);
  harmony.answer("{\"a\": 5}");
  const json::value message = harmony.body().at("choices").at(0).at("message");
  EXPECT_EQ(message.at("tool_calls").at(0).at("function"),
            json::parse(R"({"name":"add","arguments":"{\"a\": 5}"})"));
  EXPECT_EQ(harmony.body().at("choices").at(0).at("finish_reason"), "tool_calls");

  harmony.send("POST", "/v1/chat/completions",
               R"({"messages":[{"role":"user","content":"x"}],"response_format":{"type":"json_object"}})");
  EXPECT_TRUE(harmony.prompt().ends_with("<|channel|>final<|message|>"));
  harmony.answer("{}");
  EXPECT_EQ(harmony.body().at("choices").at(0).at("message").at("content"), "{}");

  ServiceRig gemma(ToolDialect::kGemma);
  EXPECT_EQ(gemma.send("POST", "/v1/chat/completions", "{" + tools + R"(,"tool_choice":"required"})").status,
            400);
  gemma.send("POST", "/v1/chat/completions", "{" + tools + "}");
  gemma.answer("<|channel>thought\nhm<channel|>ok<|tool_call>call:add{a:5}<tool_call|>");
  EXPECT_EQ(
      gemma.body().at("choices").at(0).at("message").at("tool_calls").at(0).at("function").at("arguments"),
      R"({"a":5})");
  EXPECT_EQ(gemma.body().at("choices").at(0).at("message").at("content"), "ok");
}

}  // namespace
}  // namespace plow
