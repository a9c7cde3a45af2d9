#include "grammar/json_schema.h"

#include "grammar/json_grammar.h"
#include "grammar/testing/texts.h"

#include <boost/json.hpp>
#include <gtest/gtest.h>

#include <string>

namespace plow {
namespace {

namespace json = boost::json;

Grammar grammar_of(std::string_view schema) {
  auto grammar = json_schema_grammar(json::parse(schema));
  EXPECT_TRUE(grammar.ok()) << schema << ": " << (grammar.ok() ? "" : grammar.error().message);
  return std::move(*grammar);
}

std::string error_of(std::string_view schema, bool strict = true) {
  const auto grammar = json_schema_grammar(json::parse(schema), {strict});
  if (!grammar.ok()) return grammar.error().message;
  const auto automaton = compile_grammar(*grammar);
  return automaton.ok() ? "" : automaton.error().message;
}

void expect(std::string_view schema, std::initializer_list<const char*> good,
            std::initializer_list<const char*> bad) {
  Matcher matcher(automaton_of(grammar_of(schema)));
  for (const char* text : good) EXPECT_TRUE(matches(matcher, text)) << schema << " and " << text;
  for (const char* text : bad) EXPECT_FALSE(matches(matcher, text)) << schema << " and " << text;
}

TEST(JsonSchema, ObjectsHaveTheirMembersInOrder) {
  expect(
      R"({"type":"object","properties":{"a":{"type":"integer"},"b":{"type":"string"},"c":{"type":"null"}},"required":["b"]})",
      {R"({"a":1,"b":"x","c":null})", R"({"b":""})", "{ \"a\": 12,\n  \"b\": \"\\n\\u00e9\"\n}",
       R"({"b":"x","c":null})"},
      {"{}", R"({"a":1})", R"({"b":"x","a":1})", R"({"b":"x","d":1})", R"({"b":"x",})",
       R"({"a":1.5,"b":"x"})", R"({"b":"x"} )"});
  expect(R"({"type":"object","properties":{"a":{"type":"integer"}}})", {"{}", "{ }", "{\"a\":1}"},
         {"{,}", "{\"a\":1,}"});
}

TEST(JsonSchema, AdditionalMembersAreNeverDeclaredOnes) {
  expect(
      R"({"type":"object","properties":{"ab":{"type":"integer"},"\u00e9":{}},"additionalProperties":{"type":"boolean"}})",
      {R"({"ab":1,"a":true,"abc":false})", R"({"":true})", R"({"b":true})", "{\"\xc3\xa8\":true}"},
      {R"({"ab":true})", R"({"a":1})", R"({"ab":1,"ab":true})", R"({"a\u0062":true})"});
  expect(R"({"type":"object","additionalProperties":{"type":"integer"},"minProperties":1,"maxProperties":2})",
         {R"({"x":1})", R"({"x":1,"y":2})"}, {"{}", R"({"x":1,"y":2,"z":3})", R"({"x":"1"})"});
  expect(R"({"type":"object","additionalProperties":false})", {"{}"}, {R"({"x":1})"});
  expect(R"({"type":"object","properties":{}})", {"{}"}, {R"({"x":1})"});
  expect(R"({"type":"object"})", {"{}", R"({"x":[1,{"y":null}]})"}, {"[]", "1"});
}

TEST(JsonSchema, ArraysHaveTheirItemsAndLengths) {
  expect(R"({"type":"array","items":{"type":"boolean"},"minItems":1,"maxItems":3})",
         {"[true]", "[true, false,\n true]"}, {"[]", "[true,true,true,true]", "[1]", "[true,]"});
  expect(R"({"type":"array","prefixItems":[{"type":"integer"},{"type":"null"}],"items":{"type":"string"}})",
         {"[]", "[1]", "[1,null]", R"([1,null,"a","b"])"}, {"[null]", "[1,null,2]", "[1,\"a\"]", "[1,]"});
  expect(R"({"type":"array","prefixItems":[{"type":"integer"}],"items":false,"minItems":1})",
         {"[1]", "[ 1 ]"}, {"[]", "[1,2]"});
  expect(R"({"type":"array","maxItems":0})", {"[]"}, {"[1]"});
  expect(R"({"type":"array","minItems":2,"items":{"const":1}})", {"[1,1]", "[1,1,1]"}, {"[1]", "[]"});
}

TEST(JsonSchema, StringsHaveLengthsPatternsAndFormats) {
  expect(R"({"type":"string","minLength":2,"maxLength":3})", {R"("ab")", "\"\xc3\xa9\\n\\u0041\""},
         {R"("a")", R"("abcd")", "\"a\nb\""});
  expect(R"({"type":"string","pattern":"^[a-c]+\"\\d$"})", {R"("ab\"1")"}, {R"("ab1")", R"("ab\"12")"});
  expect(R"({"type":"string","pattern":"b+"})", {R"("abbc")", R"("b")"}, {R"("ac")", R"("")"});
  expect(R"({"type":"string","pattern":"^(yes|no)$"})", {R"("yes")"}, {R"("yesno")", R"("maybe")"});
  expect(R"({"type":"string","format":"date"})", {R"("2024-02-28")", R"("1999-12-31")"},
         {R"("2024-02-30")", R"("2024-13-01")", R"("24-1-1")"});
  expect(R"({"type":"string","format":"ipv4"})", {R"("127.0.0.1")"}, {R"("256.0.0.1")", R"("1.2.3")"});
}

TEST(JsonSchema, NumbersHaveBounds) {
  expect(R"({"type":"integer","minimum":-3,"exclusiveMaximum":12})", {"-3", "0", "11"},
         {"-4", "12", "1.0", "-0"});
  expect(R"({"type":"number","minimum":0.5,"maximum":2})", {"0.5", "1", "2", "2.0", "1.999999"},
         {"0.4", "2.1", "3"});
  expect(R"({"type":"number"})", {"0", "-1.5e+10", "3E2"}, {"01", "1.", "+1", "1e999", ".5"});
}

TEST(JsonSchema, CombinationsAndReferences) {
  expect(R"({"anyOf":[{"type":"integer"},{"type":"string","maxLength":1}]})", {"1", R"("a")"},
         {R"("ab")", "null"});
  expect(R"({"enum":["a",1,null,{"b":[1.5]}]})", {R"("a")", "1", "null", R"({"b":[1.5]})"}, {R"("b")", "2"});
  expect(R"({"type":"string","enum":["a",1]})", {R"("a")"}, {"1"});
  expect(R"({"type":["string","null"]})", {R"("a")", "null"}, {"1"});
  expect(
      R"({"oneOf":[{"type":"object","properties":{"k":{"const":"a"},"x":{"type":"integer"}},"required":["k","x"]},
                      {"type":"object","properties":{"k":{"const":"b"}},"required":["k"]}]})",
      {R"({"k":"a","x":1})", R"({"k":"b"})"}, {R"({"k":"a"})", R"({"k":"c"})"});
  expect(
      R"({"allOf":[{"type":"object","properties":{"a":{"type":"integer"}},"required":["a"]},{"properties":{"b":{"type":"null"}}}]})",
      {R"({"a":1})", R"({"a":1,"b":null})"}, {"{}", R"({"b":null})"});
  expect(R"({"$ref":"#/$defs/node","$defs":{"node":{"type":"object","properties":{"v":{"type":"integer"},
             "next":{"anyOf":[{"$ref":"#/$defs/node"},{"type":"null"}]}},"required":["v","next"]}}})",
         {R"({"v":1,"next":null})", R"({"v":1,"next":{"v":2,"next":null}})"}, {R"({"v":1,"next":{}})"});
  expect("true", {"1", "[{}]"}, {""});
}

TEST(JsonSchema, WhatIsNotSupportedIsNamedWithItsPath) {
  const auto in = [](const std::string& text, std::initializer_list<const char*> parts) {
    for (const char* part : parts) EXPECT_NE(text.find(part), std::string::npos) << text << " lacks " << part;
  };
  in(error_of(R"({"type":"object","properties":{"n":{"type":"integer","multipleOf":3}}})"),
     {"/properties/n", "multipleOf", "strict"});
  EXPECT_EQ(error_of(R"({"type":"object","properties":{"n":{"type":"integer","multipleOf":3}}})", false), "");
  in(error_of(R"({"type":"array","items":{"type":"thing"}})"), {"/items", "thing"});
  in(error_of(R"({"oneOf":[{"type":"integer"},{"type":"number"}]})"), {"oneOf", "both 0 and 1"});
  in(error_of(R"({"type":"string","pattern":"["})"), {"pattern", "column"});
  in(error_of(R"({"$ref":"#/nowhere"})"), {"#/nowhere", "nowhere"});
  in(error_of(R"({"$ref":"http://example.org/x"})"), {"out of the schema"});
  in(error_of(R"({"not":{}})"), {"not"});
  in(error_of(R"({"type":"object","properties":{"a":{"$ref":"#"}},"required":["a"]})"), {"Nothing matches"});
  in(error_of(R"({"type":"string","minLength":3,"maxLength":2})"), {"minLength is above maxLength"});
  in(error_of(R"({"type":"string","maxLength":4000000})"), {"states"});
  in(error_of("3"), {"a schema is an object"});
  in(error_of("false"), {"Nothing matches"});
}

TEST(JsonSchema, AChainOfReferencesCostsNoStack) {
  json::object definitions;
  for (int i = 0; i < 5'000; ++i)
    definitions["d" + std::to_string(i)] = {{"$ref", "#/$defs/d" + std::to_string(i + 1)}};
  definitions["d5000"] = {{"type", "null"}};
  const auto grammar = json_schema_grammar(json::object{{"$ref", "#/$defs/d0"}, {"$defs", definitions}});
  ASSERT_TRUE(grammar.ok());
  EXPECT_TRUE(matches(*grammar, "null"));
}

// No run of blanks is longer than a line end with its indentation.
TEST(JsonSchema, BlanksAreBounded) {
  Matcher matcher(automaton_of(json_object_grammar()));
  Matcher::State state = matcher.step(matcher.start(), '{');
  state = matcher.step(state, '\n');
  int blanks = 1;
  for (; state != Matcher::kDead; ++blanks) state = matcher.step(state, ' ');
  EXPECT_LE(blanks, 22);
  EXPECT_EQ(matcher.step(matcher.start(), ' '), Matcher::kDead);
}

TEST(JsonSchema, RandomTextsOfAnyObjectAreJson) {
  Matcher matcher(automaton_of(json_object_grammar()));
  std::mt19937 random(1);
  int made = 0;
  for (int i = 0; i < 200; ++i) {
    const auto text = random_text(matcher, random, 300);
    if (!text) continue;
    ++made;
    boost::system::error_code error;
    const json::value value = json::parse(*text, error);
    EXPECT_FALSE(error) << *text;
    EXPECT_TRUE(value.is_object());
  }
  EXPECT_GT(made, 100);
}

TEST(Choice, IsOneOfTheTexts) {
  const std::vector<std::string> texts = {"yes", "no", "yes!"};
  const Grammar grammar = choice_grammar(texts);
  for (const std::string& text : texts) EXPECT_TRUE(matches(grammar, text));
  EXPECT_FALSE(matches(grammar, "ye"));
  EXPECT_FALSE(matches(grammar, "yesno"));
}

}  // namespace
}  // namespace plow
