#include "plowrt/sampling_options.h"

#include "plowrt/model.h"

#include <gtest/gtest.h>

namespace plow {
namespace {

SamplingParams recommended(std::string_view generation_json) {
  auto defaults = parse_generation_json(generation_json);
  EXPECT_TRUE(defaults.ok()) << defaults.error().message;
  return defaults->sampling;
}

TEST(GenerationJson, GreedyUnlessTheCheckpointAsksForSampling) {
  EXPECT_EQ(recommended("{}").flags, uint32_t{kSampleGreedy});
  EXPECT_EQ(recommended(R"({"temperature": 0.7, "top_p": 0.8})").flags, uint32_t{kSampleGreedy});
  const SamplingParams p = recommended(
      R"({"do_sample": true, "temperature": 0.7, "top_p": 0.8, "top_k": 20, "repetition_penalty": 1.1})");
  EXPECT_EQ(p.flags, 0u);
  EXPECT_FLOAT_EQ(p.temperature, 0.7f);
  EXPECT_FLOAT_EQ(p.top_p, 0.8f);
  EXPECT_EQ(p.top_k, 20u);
  EXPECT_FLOAT_EQ(p.repetition_penalty, 1.1f);
}

TEST(GenerationJson, HoldsTheTokensThatEndAnAnswer) {
  EXPECT_EQ(parse_generation_json(R"({"eos_token_ids": [2, 7]})")->stop_ids, (std::vector<uint32_t>{2, 7}));
}

TEST(GenerationJson, RefusesWhatPlowcDoesNotWrite) {
  for (const char* text : {"", "[]", "{", R"({"eos_token_ids": ["a"]})", R"({"eos_token_ids": [-1]})",
                           R"({"eos_token_ids": [4294967296]})"}) {
    EXPECT_FALSE(parse_generation_json(text).ok()) << text;
  }
}

TEST(Sampling, WhatIsGivenWinsOverWhatIsRecommended) {
  const SamplingParams base = recommended(R"({"do_sample": true, "temperature": 0.7, "top_k": 20})");
  SamplingOptions options;
  ASSERT_TRUE(set_sampling(options, "temperature", "0").ok());
  ASSERT_TRUE(set_sampling(options, "top-k", "5").ok());
  ASSERT_TRUE(set_sampling(options, "seed", "18446744073709551615").ok());
  const SamplingParams p = apply_sampling(base, options);
  EXPECT_EQ(p.flags, uint32_t{kSampleGreedy});
  EXPECT_GT(p.temperature, 0);  // the interpreter divides by it
  EXPECT_EQ(p.top_k, 5u);
  EXPECT_EQ(p.seed, 18446744073709551615u);
  ASSERT_TRUE(set_sampling(options, "temperature", "1.5").ok());
  EXPECT_EQ(apply_sampling(base, options).flags, 0u);
  EXPECT_FLOAT_EQ(apply_sampling(base, options).temperature, 1.5f);
}

TEST(Sampling, EveryRunHasAnotherSeedUnlessOneIsGiven) {
  const SamplingParams base = recommended("{}");
  EXPECT_NE(apply_sampling(base, {}).seed, apply_sampling(base, {}).seed);
}

TEST(Sampling, RefusesWhatIsOutOfRangeOrNoNumber) {
  SamplingOptions options;
  for (const auto& [name, value] :
       std::initializer_list<std::pair<const char*, const char*>>{{"temperature", "-1"},
                                                                  {"temperature", "nan"},
                                                                  {"temperature", "1x"},
                                                                  {"temperature", ""},
                                                                  {"top-p", "0"},
                                                                  {"top-p", "1.01"},
                                                                  {"top-k", "2.5"},
                                                                  {"min-p", "2"},
                                                                  {"repetition-penalty", "0"},
                                                                  {"presence-penalty", "3"},
                                                                  {"seed", "1.5"},
                                                                  {"seed", "-1"}}) {
    EXPECT_FALSE(set_sampling(options, name, value).ok()) << name << " " << value;
  }
  EXPECT_FALSE(set_sampling(options, "top_k", "5").ok());
}

}  // namespace
}  // namespace plow
