#include "serve/structure.h"

#include "grammar/json_schema.h"
#include "grammar/regex.h"
#include "serve/testing/byte_model.h"

#include <boost/json.hpp>
#include <gtest/gtest.h>

#include <random>
#include <string>
#include <vector>

namespace plow {
namespace {

namespace json = boost::json;

// The byte model's tokens and some of several bytes, among them ones that end a string and go on.
std::vector<std::string> tokens() {
  std::vector<std::string> all;
  for (unsigned byte = 0; byte < 256; ++byte) all.emplace_back(1, static_cast<char>(byte));
  all.resize(kByteModelVocab);  // control tokens have no bytes
  for (const char* text :
       {"{\"", "\":", "\": ", "\",", "\", \"", "\"}", "tr", "ue", "false", "name", "12", "}}", "],"})
    all.emplace_back(text);
  return all;
}

class StructureRuleTest : public testing::Test {
 protected:
  // Picks among what is allowed until the rule is complete or a stop token is picked; empty when neither
  // comes.
  std::string random_answer(const std::string& schema, uint32_t seed) {
    auto grammar = json_schema_grammar(json::parse(schema));
    EXPECT_TRUE(grammar.ok());
    StructureRule rule(std::make_shared<const Automaton>(*compile_grammar(*grammar)), trie_,
                       static_cast<uint32_t>(tokens_.size()), {kByteModelEnd});
    std::mt19937 random(seed);
    std::string text;
    for (int i = 0; i < 4000; ++i) {
      const auto mask = rule.allowed();
      EXPECT_TRUE(mask.ok());
      std::vector<uint32_t> allowed;
      for (uint32_t t = 0; t < tokens_.size(); ++t) {
        if (((*mask)[t / 32] >> (t % 32) & 1) != 0) allowed.push_back(t);
      }
      const uint32_t token = allowed[random() % allowed.size()];
      if (token == kByteModelEnd) return text;
      text += tokens_[token];
      if (rule.accept(token)) return text;
    }
    return {};
  }

  const std::vector<std::string> tokens_ = tokens();
  const TokenTrie trie_{static_cast<uint32_t>(tokens_.size()), [this](uint32_t t) { return tokens_[t]; }};
};

TEST_F(StructureRuleTest, WhateverIsPickedIsWhatTheSchemaSays) {
  const std::string schema = R"({"type":"object","properties":{"name":{"type":"string","maxLength":8},
      "on":{"type":"boolean"},"n":{"type":"array","items":{"type":"integer","minimum":0,"maximum":120},"maxItems":4}},
      "required":["name","on"]})";
  int whole = 0;
  for (uint32_t seed = 0; seed < 100; ++seed) {
    const std::string text = random_answer(schema, seed);
    if (text.empty()) continue;
    ++whole;
    boost::system::error_code error;
    const json::value value = json::parse(text, error);
    ASSERT_FALSE(error) << text;
    EXPECT_TRUE(value.at("name").is_string() && value.at("on").is_bool()) << text;
    if (!value.as_object().contains("n")) continue;
    for (const json::value& n : value.at("n").as_array()) EXPECT_LE(n.to_number<int>(), 120) << text;
  }
  EXPECT_EQ(whole, 100);
}

TEST_F(StructureRuleTest, AStopTokenIsAllowedOnlyWhereTheStructureMayEnd) {
  auto grammar = parse_regex("ab?");
  ASSERT_TRUE(grammar.ok());
  StructureRule rule(std::make_shared<const Automaton>(*compile_grammar(*grammar)), trie_,
                     static_cast<uint32_t>(tokens_.size()), {kByteModelEnd});
  const auto may_stop = [&] {
    return ((*rule.allowed())[kByteModelEnd / 32] >> (kByteModelEnd % 32) & 1) != 0;
  };
  EXPECT_FALSE(may_stop());
  EXPECT_FALSE(rule.accept('a'));
  EXPECT_TRUE(may_stop());
  EXPECT_TRUE(rule.accept('b')) << "nothing may follow";
}

TEST_F(StructureRuleTest, AVocabularyWithoutAFittingTokenIsAnError) {
  const TokenTrie letters(1, [](uint32_t) { return "a"; });
  auto grammar = parse_regex("b");
  StructureRule rule(std::make_shared<const Automaton>(*compile_grammar(*grammar)), letters, 1, {});
  EXPECT_FALSE(rule.allowed().ok());
}

}  // namespace
}  // namespace plow
