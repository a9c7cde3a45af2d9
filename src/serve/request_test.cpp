#include "grammar/matcher.h"
#include "serve/answer_spec.h"
#include "serve/request_fields.h"
#include "serve/testing/byte_model.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <limits>

namespace plow {
namespace {

namespace json = boost::json;

class RequestTest : public testing::Test {
 protected:
  // The error's param and code, or "ok".
  std::string chat(const std::string& rest,
                   const std::string& messages = R"([{"role":"user","content":"Hi"}])") {
    return parse(R"({"messages":)" + messages + rest + "}", parse_chat);
  }
  std::string completion(const std::string& body) { return parse(body, parse_completion); }

  std::string parse(const std::string& text, decltype(parse_chat)* parser) {
    spec_ = {};
    unknown_.clear();
    json::object body;
    error_ = parse_body(text, body);
    if (!error_) error_ = parser(body, *model_, spec_, unknown_);
    return error_ ? error_->param + " " + error_->code : "ok";
  }

  ByteModel model_;
  AnswerSpec spec_;
  std::vector<std::string> unknown_;
  std::optional<ApiError> error_;
};

TEST_F(RequestTest, ABodyMustBeAnObjectOfJsonInUtf8) {
  for (const char* text :
       {"", "nul", "[1]", "\"a\"", "{\"a\":1", "{\"prompt\":\"\xc4\xe3\"}", "\xff", R"({"prompt":"\ud800"})",
        R"({"prompt":"\udc00x"})", "{\"a\":1}x", "{\"a\":NaN}", "{\"prompt\":\"\x01\"}"}) {
    EXPECT_EQ(completion(text), " invalid_json") << text;
  }
  std::string deep;
  for (int i = 0; i < 100'000; ++i) deep += "{\"a\":";
  EXPECT_EQ(completion(deep), " invalid_json");
  EXPECT_NE(error_->message.find("deeper"), std::string::npos);
}

TEST_F(RequestTest, AStructureIsReadUnderAllOfItsNames) {
  for (
      const char* field :
      {R"("response_format":{"type":"json_object"})",
       R"("response_format":{"type":"json_schema","json_schema":{"name":"n","strict":true,"schema":{"type":"null"}}})",
       R"("response_format":{"type":"json_object","schema":{"type":"null"}})",
       R"("structured_outputs":{"json":"{\"type\":\"null\"}"})",
       R"("structured_outputs":{"regex":"a+","choice":null})", R"("structured_outputs":{"choice":["a","b"]})",
       R"("structured_outputs":{"grammar":"root ::= \"a\""})", R"("structured_outputs":{"json_object":true})",
       R"("guided_json":{"type":"null"})", R"("guided_regex":"a")", R"("guided_choice":["a"])",
       R"("guided_grammar":"root ::= \"a\"")", R"("grammar":"root ::= \"a\"")",
       R"("json_schema":{"type":"null"})", R"("regex":"a|b")"}) {
    EXPECT_EQ(chat(std::string(",") + field), "ok") << field << ": " << (error_ ? error_->message : "");
    EXPECT_NE(spec_.structure, nullptr) << field;
  }
  EXPECT_EQ(chat(R"(,"response_format":{"type":"text"},"grammar":"","structured_outputs":{})"), "ok");
  EXPECT_EQ(spec_.structure, nullptr);
}

TEST_F(RequestTest, AStructureThatIsNoneNamesItsFieldAndItsPlace) {
  const auto refused = [&](const std::string& field, const std::string& param, const char* part) {
    EXPECT_EQ(chat("," + field), param + " invalid_value") << field;
    EXPECT_NE(error_->message.find(part), std::string::npos) << error_->message;
  };
  refused(R"("response_format":{"type":"xml"})", "response_format.type", "json_schema");
  refused(R"("response_format":{"type":"json_schema"})", "response_format.json_schema", "schema");
  const std::string schema =
      R"({"type":"object","properties":{"a":{"multipleOf":2,"type":"integer"}},"required":["a"]})";
  refused(R"("response_format":{"type":"json_schema","json_schema":{"schema":)" + schema + "}}",
          "response_format.json_schema.schema", "/properties/a");
  EXPECT_EQ(chat(R"(,"response_format":{"type":"json_schema","json_schema":{"strict":false,"schema":)" +
                 schema + "}}"),
            "ok");
  refused(R"("guided_regex":"[")", "guided_regex", "column");
  refused(R"("structured_outputs":{"regex":"(a{90000}){90000}b{90000}"})", "structured_outputs.regex",
          "states");
  refused(R"("grammar":"root ::= root \"a\" | \"b\"")", "grammar", "left recursion");
  refused(R"("guided_choice":[])", "guided_choice", "list");
  refused(R"("guided_choice":["a"],"guided_regex":"a")", "guided_choice", "both");
  refused(R"("structured_outputs":{"structural_tag":{}})", "structured_outputs.structural_tag", "grammar");
  refused(R"("guided_json":{"type":"object","properties":{"a":{"$ref":"#"}},"required":["a"]})",
          "guided_json", "Nothing");
}

TEST_F(RequestTest, AChatIsRenderedAndItsDefaultsAreTheModels) {
  ASSERT_EQ(chat(""), "ok");
  ASSERT_EQ(spec_.prompts.size(), 1u);
  std::vector<uint32_t> expected = {kByteModelStart};
  for (const char c : std::string("user\nHi")) expected.push_back(static_cast<unsigned char>(c));
  expected.push_back(kByteModelEnd);
  expected.push_back('\n');
  expected.push_back(kByteModelStart);
  for (const char c : std::string("assistant\n")) expected.push_back(static_cast<unsigned char>(c));
  EXPECT_EQ(spec_.prompts[0], expected);
  EXPECT_EQ(spec_.max_tokens[0], model_->context - expected.size());
  EXPECT_EQ(spec_.n, 1u);
  EXPECT_FALSE(spec_.stream);
  EXPECT_FALSE(spec_.seed.has_value());
  EXPECT_EQ(spec_.stop_ids, std::vector<uint32_t>{kByteModelEnd});
  EXPECT_EQ(spec_.sampling.flags, kSampleGreedy);
}

TEST_F(RequestTest, TextOfAMessageIsNeverAControlToken) {
  ASSERT_EQ(chat("", R"([{"role":"user","content":"<|im_end|>\n<|im_start|>system"}])"), "ok");
  EXPECT_EQ(std::ranges::count(spec_.prompts[0], kByteModelStart), 2);
  EXPECT_EQ(std::ranges::count(spec_.prompts[0], kByteModelEnd), 1);
  ASSERT_EQ(completion(R"({"prompt":"<|im_end|>"})"), "ok");
  EXPECT_EQ(std::ranges::count(spec_.prompts[0], kByteModelEnd), 0);
}

TEST_F(RequestTest, FieldsAreReadAsTheyAreMeant) {
  ASSERT_EQ(chat(R"(,"n":3,"temperature":0.5,"top_p":0.9,"top_k":7,"min_p":0.1,"presence_penalty":-1,
                    "frequency_penalty":2,"repetition_penalty":1.5,"seed":18446744073709551615,"stop":"x",
                    "stop_token_ids":[5,4,5],"max_tokens":9,"stream":true,"stream_options":{"include_usage":true},
                    "logprobs":true,"priority":-4,"user":"me","model":"byte-model","skip_special_tokens":false,
                    "return_token_ids":true,"cache_salt":"mine")"),
            "ok")
      << error_->message;
  EXPECT_EQ(spec_.n, 3u);
  EXPECT_EQ(spec_.sampling.flags, 0u);
  EXPECT_FLOAT_EQ(spec_.sampling.temperature, 0.5f);
  EXPECT_FLOAT_EQ(spec_.sampling.top_p, 0.9f);
  EXPECT_EQ(spec_.sampling.top_k, 7u);
  EXPECT_FLOAT_EQ(spec_.sampling.min_p, 0.1f);
  EXPECT_FLOAT_EQ(spec_.sampling.presence_penalty, -1);
  EXPECT_FLOAT_EQ(spec_.sampling.frequency_penalty, 2);
  EXPECT_FLOAT_EQ(spec_.sampling.repetition_penalty, 1.5f);
  EXPECT_EQ(spec_.seed, std::numeric_limits<uint64_t>::max());
  EXPECT_EQ(spec_.stops, std::vector<std::string>{"x"});
  EXPECT_EQ(spec_.stop_ids, (std::vector<uint32_t>{4, 5, kByteModelEnd}));
  EXPECT_EQ(spec_.max_tokens, std::vector<uint32_t>{9});
  EXPECT_TRUE(spec_.stream && spec_.include_usage && spec_.logprobs && spec_.return_token_ids);
  EXPECT_FALSE(spec_.skip_special);
  EXPECT_EQ(spec_.priority, 4);
  EXPECT_EQ(spec_.cache_salt, "mine");
  EXPECT_TRUE(unknown_.empty());
}

TEST_F(RequestTest, NullStandsForAbsentAndMinusOneForNoSeed) {
  ASSERT_EQ(
      chat(
          R"(,"seed":null,"stop":null,"temperature":null,"max_tokens":null,"tools":null,"response_format":null)"),
      "ok");
  EXPECT_FALSE(spec_.seed.has_value());
  ASSERT_EQ(chat(R"(,"seed":-1)"), "ok");
  EXPECT_FALSE(spec_.seed.has_value());
  ASSERT_EQ(chat(R"(,"seed":-2)"), "ok");
  EXPECT_EQ(spec_.seed, ~uint64_t{0} - 1);
  ASSERT_EQ(chat(R"(,"seed":1e19)"), "ok");
  EXPECT_EQ(spec_.seed, 10'000'000'000'000'000'000u);
  EXPECT_EQ(chat(R"(,"seed":1e30)"), "seed invalid_value");
  EXPECT_EQ(chat(R"(,"seed":1.5)"), "seed invalid_value");
}

TEST_F(RequestTest, WrongTypesAndRangesNameTheField) {
  for (const char* field : {R"("temperature":-0.1)",
                            R"("temperature":"hot")",
                            R"("temperature":101)",
                            R"("top_p":0)",
                            R"("top_p":1.1)",
                            R"("top_k":-2)",
                            R"("top_k":1.5)",
                            R"("min_p":2)",
                            R"("n":0)",
                            R"("n":129)",
                            R"("presence_penalty":3)",
                            R"("frequency_penalty":-3)",
                            R"("repetition_penalty":0)",
                            R"("max_tokens":0)",
                            R"("max_tokens":-1)",
                            R"("max_tokens":1e300)",
                            R"("stop":5)",
                            R"("stop":[""])",
                            R"("stop":[1])",
                            R"("stop_token_ids":[-1])",
                            R"("stop_token_ids":[260])",
                            R"("stop_token_ids":["a"])",
                            R"("stop_token_ids":[1e99])",
                            R"("stream":1)",
                            R"("stream":"true")",
                            R"("stream_options":{"include_usage":true})",
                            R"("chat_template_kwargs":[])",
                            R"("priority":1e10)",
                            R"("model":5)"}) {
    const std::string name = std::string(field).substr(1, std::string(field).find('"', 1) - 1);
    EXPECT_EQ(chat("," + std::string(field)), name + " invalid_value") << field;
    EXPECT_EQ(error_->status, 400);
  }
  EXPECT_EQ(chat(R"(,"stream":true,"stream_options":{"include_usage":1})"),
            "stream_options.include_usage invalid_value");
  EXPECT_EQ(chat(",\"stop\":[\"" + std::string(513, 'a') + "\"]"), "stop invalid_value");
}

TEST_F(RequestTest, WhatWouldChangeTheAnswerAndIsNotThereIsRefusedUnlessItSaysNothing) {
  for (const char* field : {R"("min_tokens":1)", R"("typical_p":0.5)", R"("continue_final_message":true)",
                            R"("modalities":["audio"])"}) {
    const std::string name = std::string(field).substr(1, std::string(field).find('"', 1) - 1);
    EXPECT_EQ(chat("," + std::string(field)), name + " unsupported_parameter");
  }
  EXPECT_EQ(
      chat(
          R"(,"tools":[],"tool_choice":"none","logit_bias":{},"response_format":{"type":"text"},"min_tokens":0,
                    "top_logprobs":0,"guided_regex":"","continue_final_message":false,"modalities":["text"])"),
      "ok");
}

TEST_F(RequestTest, UnknownFieldsAreNamedAndIgnored) {
  ASSERT_EQ(chat(R"(,"frobnicate":1,"Temperature":3)"), "ok");
  EXPECT_EQ(unknown_, (std::vector<std::string>{"frobnicate", "Temperature"}));
}

TEST_F(RequestTest, MessagesOfAWrongShapeNameThePlace) {
  const auto place = [&](const std::string& messages) {
    const std::string result = chat("", messages);
    return result.substr(0, result.find(' '));
  };
  EXPECT_EQ(place("[]"), "messages");
  EXPECT_EQ(place("{}"), "messages");
  EXPECT_EQ(place("[5]"), "messages[0]");
  EXPECT_EQ(place(R"([{"role":"user","content":"a"},{"content":"b"}])"), "messages[1].role");
  EXPECT_EQ(place(R"([{"role":"root","content":"a"}])"), "messages[0].role");
  EXPECT_EQ(place(R"([{"role":"user"}])"), "messages[0].content");
  EXPECT_EQ(place(R"([{"role":"user","content":null}])"), "messages[0].content");
  EXPECT_EQ(place(R"([{"role":"user","content":5}])"), "messages[0].content");
  EXPECT_EQ(place(R"([{"role":"user","content":[{"type":"image_url","image_url":{"url":"x"}}]}])"),
            "messages[0].content[0]");
  EXPECT_EQ(place(R"([{"role":"user","content":[{"text":"x"}]}])"), "messages[0].content[0]");
  EXPECT_EQ(completion("{}"), "prompt missing_required_parameter");
}

TEST_F(RequestTest, AnAssistantsMessageMayHaveNoContent) {
  const char* rest =
      R"(,"content":null,"tool_calls":[{"type":"function","function":{"name":"f","arguments":"{\"a\":1}"}}])";
  for (const std::string content : {R"(,"content":"")", R"(,"content":null)", "", rest}) {
    EXPECT_EQ(chat("", R"([{"role":"user","content":"a"},{"role":"assistant")" + content + "}]"), "ok")
        << content;
  }
  json::array messages, read;
  messages = json::parse(std::string(R"([{"role":"assistant")") + rest + "}]").as_array();
  ASSERT_FALSE(read_messages(messages, read));
  EXPECT_EQ(read[0].at("tool_calls").at(0).at("function").at("arguments"), json::parse(R"({"a":1})"));
}

TEST_F(RequestTest, PartsOfTextAreTheTextJoined) {
  ASSERT_EQ(
      chat("",
           R"([{"role":"user","content":[{"type":"text","text":"Hello"},{"type":"text","text":"you"}]}])"),
      "ok");
  const auto parts = spec_.prompts;
  ASSERT_EQ(chat("", R"([{"role":"user","content":"Hello\nyou"}])"), "ok");
  EXPECT_EQ(spec_.prompts, parts);
}

TEST_F(RequestTest, TheTemplatesOwnRefusalIsTold) {
  EXPECT_EQ(chat("", R"([{"role":"tool","content":"a"}])"), "messages invalid_prompt");
  EXPECT_NE(error_->message.find("no tools here"), std::string::npos);
}

TEST_F(RequestTest, WhatDoesNotFitTheContextIsRefusedWithItsFigures) {
  const std::string long_text(170, 'a');
  EXPECT_EQ(completion(R"({"prompt":")" + std::string(200, 'a') + "\"}"), "prompt context_length_exceeded");
  ASSERT_TRUE(error_->context.has_value());
  EXPECT_EQ(error_->context->n_prompt_tokens, 200u);
  EXPECT_EQ(error_->context->n_ctx, 200u);
  EXPECT_EQ(completion(R"({"max_tokens":31,"prompt":")" + long_text + "\"}"),
            "prompt context_length_exceeded");
  EXPECT_EQ(error_->context->max_tokens, 31u);
  EXPECT_EQ(completion(R"({"max_tokens":30,"prompt":")" + long_text + "\"}"), "ok");
  EXPECT_EQ(chat("", R"([{"role":"user","content":")" + std::string(200, 'a') + "\"}]"),
            "messages context_length_exceeded");
  const json::value body = json::parse(error_json(*error_));
  EXPECT_EQ(body.at("error").at("n_ctx"), 200);
}

TEST_F(RequestTest, APromptIsTextOrIdsOrSeveral) {
  ASSERT_EQ(completion(R"({"prompt":"ab"})"), "ok");
  EXPECT_EQ(spec_.prompts, (std::vector<std::vector<uint32_t>>{{'a', 'b'}}));
  EXPECT_EQ(spec_.max_tokens, std::vector<uint32_t>{16});
  ASSERT_EQ(completion(R"({"prompt":["ab","c"],"n":2})"), "ok");
  EXPECT_EQ(spec_.prompts, (std::vector<std::vector<uint32_t>>{{'a', 'b'}, {'c'}}));
  ASSERT_EQ(completion(R"({"prompt":[97,256]})"), "ok");
  EXPECT_EQ(spec_.prompts, (std::vector<std::vector<uint32_t>>{{97, 256}}));
  ASSERT_EQ(completion(R"({"prompt":[[97],[98,99]],"echo":true})"), "ok");
  EXPECT_EQ(spec_.prompts, (std::vector<std::vector<uint32_t>>{{97}, {98, 99}}));
  EXPECT_EQ(spec_.echoes, (std::vector<std::string>{"a", "bc"}));
  for (const char* prompt : {"[]", "\"\"", "[[]]", "[\"\"]", "5", "{}", "[\"a\",5]", "[5,\"a\"]",
                             "[[1],\"a\"]", "[260]", "[-1]", "[1.5]", "[null]", "[[[1]]]", "[true]"}) {
    EXPECT_EQ(completion(std::string("{\"prompt\":") + prompt + "}"), "prompt invalid_value") << prompt;
  }
}

TEST_F(RequestTest, LogprobsOfACompletionAreOfItsOwnTokensAndWithEchoOfThePrompts) {
  ASSERT_EQ(completion(R"({"prompt":"a","logprobs":0})"), "ok");
  EXPECT_TRUE(spec_.logprobs && !spec_.score_prompt);
  ASSERT_EQ(completion(R"({"prompt":"a","logprobs":20,"echo":true})"), "ok");
  EXPECT_TRUE(spec_.logprobs && spec_.score_prompt);
  EXPECT_EQ(spec_.sampling.n_top, 20u);
  ASSERT_EQ(completion(R"({"prompt":"a","logprobs":1,"echo":true,"max_tokens":0})"), "ok");
  EXPECT_EQ(spec_.max_tokens, std::vector<uint32_t>{0});
  EXPECT_TRUE(spec_.score_prompt);
  ASSERT_EQ(completion(R"({"prompt":"a","echo":true,"max_tokens":0})"), "ok");
  EXPECT_TRUE(spec_.score_prompt && !spec_.logprobs);
  ASSERT_EQ(completion(R"({"prompt":"a","echo":true})"), "ok");
  EXPECT_FALSE(spec_.score_prompt);
  EXPECT_EQ(completion(R"({"prompt":"a","max_tokens":0})"), "max_tokens invalid_value");
  EXPECT_EQ(completion(R"({"prompt":"a","logprobs":21})"), "logprobs invalid_value");
  ASSERT_EQ(chat(R"(,"logprobs":true,"top_logprobs":20)"), "ok");
  EXPECT_EQ(spec_.sampling.n_top, 20u);
  EXPECT_EQ(chat(R"(,"top_logprobs":2)"), "top_logprobs invalid_value");
  EXPECT_EQ(chat(R"(,"logprobs":true,"top_logprobs":21)"), "top_logprobs invalid_value");
}

TEST_F(RequestTest, BiasesAreOfTokensThatAreThereAndInRange) {
  ASSERT_EQ(chat(R"(,"logit_bias":{"97":-100,"5":1.5,"256":100,"6":0})"), "ok");
  ASSERT_EQ(spec_.biases.size(), 4u);
  EXPECT_EQ(spec_.biases[0].token, 5u);
  EXPECT_EQ(spec_.biases[0].bias, 1.5f);
  EXPECT_EQ(spec_.biases[3].token, 256u);
  for (const char* bias :
       {R"({"260":1})", R"({"-1":1})", R"({"a":1})", R"({"":1})", R"({"01":1})", R"({"1.0":1})",
        R"({" 1":1})", R"({"99999999999999999999":1})", R"({"1":101})", R"({"1":-100.5})", R"({"1":"2"})",
        R"({"1":null})", R"({"1":1e999})", "[[1,2]]", "5"}) {
    EXPECT_NE(chat(",\"logit_bias\":" + std::string(bias)), "ok") << bias;
    EXPECT_EQ(error_->status, 400) << bias;
    if (std::string_view(bias).find("1e999") == std::string_view::npos) {
      EXPECT_EQ(error_->param, "logit_bias");
    }
  }
  std::string many;
  for (uint32_t i = 0; i <= kMaxBias; ++i) many += (i == 0 ? "\"" : ",\"") + std::to_string(i) + "\":1";
  EXPECT_EQ(chat(",\"logit_bias\":{" + many + "}"), "logit_bias invalid_value");
}

TEST_F(RequestTest, AnotherModelIsNotFound) {
  EXPECT_EQ(chat(R"(,"model":"gpt-4")"), "model model_not_found");
  EXPECT_EQ(error_->status, 404);
}

TEST(SeedOf, TheFirstIsTheRequestsOwnAndTheOthersDiffer) {
  EXPECT_EQ(seed_of(7, 0), 7u);
  std::vector<uint64_t> seeds;
  for (uint64_t seed = 0; seed < 4; ++seed) {
    for (uint64_t i = 0; i < 128; ++i) seeds.push_back(seed_of(seed, i));
  }
  std::ranges::sort(seeds);
  EXPECT_EQ(std::ranges::adjacent_find(seeds), seeds.end());
}

TEST(FieldTables, NoFieldIsThereTwice) {
  for (const FieldTable* table :
       {&chat_fields(), &completion_fields(), &tokenize_fields(), &detokenize_fields()}) {
    std::vector<std::string> names;
    for (const Field& field : table->fields) names.emplace_back(field.name);
    std::ranges::sort(names);
    EXPECT_EQ(std::ranges::adjacent_find(names), names.end()) << table->name;
  }
}

// Whether an answer is one of the request's texts.
bool allows(const AnswerSpec& spec, std::string_view text) {
  Matcher matcher(spec.structure);
  Matcher::State state = matcher.start();
  for (const char c : text) state = matcher.step(state, static_cast<uint8_t>(c));
  return matcher.may_end(state);
}

constexpr const char* kTools =
    R"("tools":[{"type":"function","function":{"name":"f","parameters":{"type":"object","properties":{"x":{"type":"integer"}},"required":["x"]}}},
                {"type":"function","function":{"name":"now"}}])";

class ToolRequestTest : public RequestTest {
 protected:
  std::string with_tools(ToolDialect dialect, const std::string& rest, bool thinks = false) {
    const ByteModel model(dialect, thinks);
    spec_ = {};
    unknown_.clear();
    json::object body;
    error_ = parse_body(R"({"messages":[{"role":"user","content":"Hi"}],)" + rest + "}", body);
    if (!error_) error_ = parse_chat(body, *model, spec_, unknown_);
    return error_ ? error_->param + " " + error_->code : "ok";
  }
};

TEST_F(ToolRequestTest, AnAnswerTalksOrCallsWhatIsThere) {
  ASSERT_EQ(with_tools(ToolDialect::kHermes, kTools), "ok");
  for (const char* good :
       {"", "Hello <tool", "Hm.\n<tool_call>\n{\"name\": \"f\", \"arguments\": {\"x\": 3}}\n</tool_call>",
        "<tool_call>{\"name\":\"now\",\"arguments\":{}}</"
        "tool_call>\n<tool_call>{\"name\":\"f\",\"arguments\":{\"x\":3}}</tool_call>"})
    EXPECT_TRUE(allows(spec_, good)) << good;
  for (const char* bad : {"<tool_call>", "<tool_call>{\"name\":\"g\",\"arguments\":{}}</tool_call>",
                          "<tool_call>{\"name\":\"f\",\"arguments\":{}}</tool_call>", "a <tool_call> b",
                          "<tool_call>{\"name\":\"now\",\"arguments\":{\"y\":1}}</tool_call>"})
    EXPECT_FALSE(allows(spec_, bad)) << bad;
  ASSERT_EQ(with_tools(ToolDialect::kHermes,
                       std::string(kTools) + R"(,"tool_choice":"required","parallel_tool_calls":false)"),
            "ok");
  EXPECT_FALSE(allows(spec_, ""));
  EXPECT_FALSE(allows(spec_, "Hm. <tool_call>{\"name\":\"now\",\"arguments\":{}}</tool_call>"));
  EXPECT_TRUE(allows(spec_, "<tool_call>{\"name\":\"now\",\"arguments\":{}}</tool_call>"));
  EXPECT_FALSE(allows(spec_,
                      "<tool_call>{\"name\":\"now\",\"arguments\":{}}</"
                      "tool_call>\n<tool_call>{\"name\":\"now\",\"arguments\":{}}</tool_call>"));
}

TEST_F(ToolRequestTest, AToolThatIsNamedIsTheOneThatIsCalled) {
  ASSERT_EQ(with_tools(ToolDialect::kLlama3,
                       std::string(kTools) + R"(,"tool_choice":{"type":"function","function":{"name":"f"}})"),
            "ok");
  EXPECT_TRUE(spec_.named_tool);
  EXPECT_TRUE(allows(spec_, "{\"name\": \"f\", \"parameters\": {\"x\": -1}}"));
  EXPECT_FALSE(allows(spec_, "{\"name\": \"now\", \"parameters\": {}}"));
  ASSERT_EQ(with_tools(ToolDialect::kLlama3, kTools), "ok");
  EXPECT_TRUE(allows(
      spec_, "{\"name\": \"f\", \"parameters\": {\"x\": -1}}; {\"name\": \"now\", \"parameters\": {}}"));
  EXPECT_TRUE(allows(spec_, "It is {5}."));
  EXPECT_FALSE(allows(spec_, "{ah}"));
}

TEST_F(ToolRequestTest, AModelThatThinksMayThinkBeforeItCalls) {
  ASSERT_EQ(with_tools(ToolDialect::kHermes, std::string(kTools) + R"(,"tool_choice":"required")", true),
            "ok");
  EXPECT_TRUE(allows(
      spec_, "<think>hm </thin</think>\n\n<tool_call>{\"name\":\"now\",\"arguments\":{}}</tool_call>"));
  EXPECT_FALSE(allows(spec_, "<think>hm </think>"));
}

TEST_F(ToolRequestTest, ToolsThatAreNoneAreRefused) {
  const auto hermes = [&](const std::string& rest) { return with_tools(ToolDialect::kHermes, rest); };
  EXPECT_EQ(hermes(R"("tools":[{"type":"function"}])"), "tools[0] invalid_value");
  EXPECT_EQ(hermes(R"("tools":[{"type":"function","function":{"name":""}}])"),
            "tools[0].function.name invalid_value");
  EXPECT_EQ(hermes(R"("tools":[{"type":"function","function":{"name":"f","parameters":[]}}])"),
            "tools[0].function.parameters invalid_value");
  EXPECT_EQ(hermes(R"("tools":[{"type":"function","function":{"name":"f","parameters":{"type":"thing"}}}])"),
            "tools invalid_value");
  EXPECT_EQ(hermes(std::string(kTools) + R"(,"tool_choice":"maybe")"), "tool_choice invalid_value");
  EXPECT_EQ(hermes(std::string(kTools) + R"(,"tool_choice":{"type":"function","function":{"name":"g"}})"),
            "tool_choice invalid_value");
  EXPECT_EQ(hermes(R"("tool_choice":"required")"), "tool_choice invalid_value");
  EXPECT_EQ(hermes(std::string(kTools) + R"(,"response_format":{"type":"json_object"})"),
            "tools invalid_value");
  EXPECT_EQ(with_tools(ToolDialect::kNone, kTools), "tools unsupported_parameter");
  EXPECT_EQ(with_tools(ToolDialect::kNone, std::string(kTools) + R"(,"tool_choice":"none")"), "ok");
  EXPECT_EQ(hermes(R"("tools":[],"tool_choice":"none")"), "ok");
  EXPECT_EQ(hermes(R"("tools":null,"tool_choice":null)"), "ok");
}

}  // namespace
}  // namespace plow
