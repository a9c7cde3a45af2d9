#include "ops/sample/sample.h"

#include "ops/sample/philox.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <vector>

namespace plow {
namespace {

SamplingParams plain() {
  SamplingParams params{};
  params.temperature = 1;
  params.top_p = 1;
  params.repetition_penalty = 1;
  return params;
}

// Logits whose softmax is exactly these probabilities.
std::vector<double> logits_of(const std::vector<double>& probabilities) {
  std::vector<double> out;
  for (double p : probabilities) out.push_back(std::log(p));
  return out;
}

// The share of each token over 20,000 positions. A deviation of 0.018 is 5 standard deviations of a share of
// 0.5.
constexpr int kDraws = 20000;
constexpr double kFiveSigma = 0.018;
std::vector<double> shares(const std::vector<double>& logits, const SamplingParams& params) {
  std::vector<double> count(logits.size(), 0);
  for (int n = 1; n <= kDraws; ++n)
    count[sample_reference(logits, std::vector<uint32_t>(static_cast<size_t>(n % 97 + 1), 0),
                           [&] {
                             SamplingParams p = params;
                             p.seed = static_cast<uint64_t>(n);
                             return p;
                           }())
              .token] += 1.0 / kDraws;
  return count;
}

void expect_shares(const std::vector<double>& logits, const SamplingParams& params,
                   const std::vector<double>& expected) {
  const std::vector<double> found = shares(logits, params);
  for (size_t i = 0; i < expected.size(); ++i) {
    EXPECT_NEAR(found[i], expected[i], kFiveSigma) << i;
    if (expected[i] == 0) {
      EXPECT_EQ(found[i], 0) << i;
    }
  }
}

TEST(Sample, BiasesComeBeforeTheDrawAndLogprobsStayTheModels) {
  const std::vector<double> logits = logits_of({0.5, 0.25, 0.15, 0.1});
  const TokenBias third_and_last[] = {{2, std::log(4.0f)}, {3, -100}};
  SamplingParams params = plain();
  params.bias = third_and_last;
  params.n_bias = 2;
  expect_shares(logits, params, {0.5 / 1.35, 0.25 / 1.35, 0.6 / 1.35, 0});
  params.flags = kSampleGreedy;
  const SampleResult greedy = sample_reference(logits, std::vector<uint32_t>{0}, params);
  EXPECT_EQ(greedy.token, 2u);
  EXPECT_NEAR(greedy.logprob, std::log(0.15), 1e-7);
  params.n_ids = 2;
  EXPECT_EQ(sample_reference(logits, std::vector<uint32_t>{0}, params).token, 0u);
  params.flags = kSampleGiven;
  params.given = 3;
  EXPECT_NEAR(sample_reference(logits, std::vector<uint32_t>{0}, params).logprob, std::log(0.1), 1e-7);
  const auto top = top_reference(logits, 2);
  EXPECT_EQ(top[0].token, 0u);
  EXPECT_EQ(top[1].token, 1u);
  EXPECT_NEAR(top[1].logprob, std::log(0.25), 1e-7);
}

// Known answers of the authors' library Random123 (tests/kat_vectors, philox 4x32 10).
TEST(Sample, AMaskLeavesOutTokensAndTheLogprobStaysTheModels) {
  const std::vector<double> logits = logits_of({0.5, 0.3, 0.2});
  const uint32_t second_and_third = 0b110, none = 0;
  SamplingParams params = plain();
  params.mask = &second_and_third;
  const auto share = shares(logits, params);
  EXPECT_EQ(share[0], 0);
  EXPECT_NEAR(share[1], 0.6, kFiveSigma);
  params.flags = kSampleGreedy;
  const SampleResult greedy = sample_reference(logits, std::vector<uint32_t>{0}, params);
  EXPECT_EQ(greedy.token, 1u);
  EXPECT_NEAR(greedy.logprob, std::log(0.3), 1e-12);
  params.mask = &none;
  EXPECT_EQ(sample_reference(logits, std::vector<uint32_t>{0}, params).logprob, -INFINITY);
}

TEST(Philox, GivesThePublishedKnownAnswers) {
  struct Known {
    PhiloxBlock counter;
    uint32_t key[2];
    PhiloxBlock answer;
  };
  const Known cases[] = {
      {{{0, 0, 0, 0}}, {0, 0}, {{0x6627e8d5, 0xe169c58d, 0xbc57ac4c, 0x9b00dbd8}}},
      {{{0xffffffff, 0xffffffff, 0xffffffff, 0xffffffff}},
       {0xffffffff, 0xffffffff},
       {{0x408f276d, 0x41c83b0e, 0xa20bc7c6, 0x6d5451fd}}},
      {{{0x243f6a88, 0x85a308d3, 0x13198a2e, 0x03707344}},
       {0xa4093822, 0x299f31d0},
       {{0xd16cfe09, 0x94fdcceb, 0x5001e420, 0x24126ea1}}},
  };
  for (const Known& known : cases) {
    const PhiloxBlock block = philox4x32_10(known.counter, known.key[0], known.key[1]);
    for (int i = 0; i < 4; ++i) EXPECT_EQ(block.word[i], known.answer.word[i]);
  }
}

TEST(Philox, TheUniformNumberIsTheUpper24BitsOfTheFirstWord) {
  EXPECT_EQ(sample_uniform(0, 0), static_cast<float>(0x6627e8) / 16777216.0f);
  // Seed and counter as in the third known answer would need all four words; the key's order shows here.
  EXPECT_EQ(
      sample_uniform(0x299f31d0a4093822u, 7),
      static_cast<float>(philox4x32_10({{7, 0, 0, 0}}, 0xa4093822, 0x299f31d0).word[0] >> 8) / 16777216.0f);
  for (uint32_t position = 0; position < 10000; ++position) EXPECT_LT(sample_uniform(42, position), 1.0f);
}

TEST(Sample, GreedyTakesTheLargestLogitAndTiesGoToTheSmallestId) {
  SamplingParams params = plain();
  params.flags = kSampleGreedy;
  EXPECT_EQ(sample_reference(std::vector<double>{1, 3, 2, 3}, std::vector<uint32_t>{0}, params).token, 1u);
  EXPECT_EQ(sample_reference(std::vector<double>{NAN, -5, -6}, std::vector<uint32_t>{0}, params).token, 1u);
}

TEST(Sample, TheLogProbabilityIsThatOfTheLogitsBeforePenaltiesAndTemperature) {
  SamplingParams params = plain();
  params.flags = kSampleGreedy;
  params.repetition_penalty = 100;
  params.temperature = 0.1f;
  const SampleResult result = sample_reference(logits_of({0.5, 0.3, 0.2}), std::vector<uint32_t>{0}, params);
  EXPECT_EQ(result.token, 1u);  // log 0.5 is negative, and times 100 far below
  EXPECT_NEAR(result.logprob, std::log(0.3), 1e-15);
}

TEST(Sample, DrawsFollowTheDistribution) {
  expect_shares(logits_of({0.1, 0.5, 0.15, 0.25}), plain(), {0.1, 0.5, 0.15, 0.25});
}

TEST(Sample, TemperatureTwoGivesSquareRootsOfTheProbabilities) {
  SamplingParams params = plain();
  params.temperature = 2;
  expect_shares(logits_of({0.64, 0.32, 0.04}), params, {0.8 / 1.5657, 0.5657 / 1.5657, 0.2 / 1.5657});
}

TEST(Sample, TopKKeepsTheMostProbableAndTiesKeepTheSmallestIds) {
  SamplingParams params = plain();
  params.top_k = 2;
  expect_shares(logits_of({0.2, 0.2, 0.4, 0.2}), params, {1.0 / 3, 0, 2.0 / 3, 0});
}

TEST(Sample, TopPKeepsTheTokenThatCrossesIt) {
  SamplingParams params = plain();
  params.top_p = 0.6f;
  expect_shares(logits_of({0.1, 0.5, 0.15, 0.25}), params, {0, 2.0 / 3, 0, 1.0 / 3});
  params.top_p = 0.0f;
  expect_shares(logits_of({0.1, 0.5, 0.15, 0.25}), params, {0, 1, 0, 0});
}

size_t kept_tokens(const SamplingParams& params) {  // of probabilities 0.5, 0.25, 0.15, 0.1
  const std::vector<double> found = shares(logits_of({0.1, 0.5, 0.15, 0.25}), params);
  return found.size() - static_cast<size_t>(std::ranges::count(found, 0.0));
}

TEST(Sample, TopPCutsWhereTheSumReachesIt) {
  const std::vector<std::pair<float, size_t>> cases = {{0.49f, 1}, {0.51f, 2}, {0.74f, 2}, {0.76f, 3},
                                                       {0.89f, 3}, {0.91f, 4}, {1.0f, 4}};
  for (const auto& [top_p, kept] : cases) {
    SamplingParams params = plain();
    params.top_p = top_p;
    EXPECT_EQ(kept_tokens(params), kept) << top_p;
  }
}

TEST(Sample, MinPCutsWhereTheProbabilityFallsBelowIt) {
  const std::vector<std::pair<float, size_t>> cases = {{0.19f, 4}, {0.21f, 3}, {0.29f, 3}, {0.31f, 2},
                                                       {0.49f, 2}, {0.51f, 1}, {1.0f, 1}};
  for (const auto& [min_p, kept] : cases) {
    SamplingParams params = plain();
    params.min_p = min_p;
    EXPECT_EQ(kept_tokens(params), kept) << min_p;
  }
}

TEST(Sample, TopPMeasuresWhatTopKLeft) {
  SamplingParams params = plain();
  params.top_k = 3;
  params.top_p = 0.8f;  // of 0.9: 0.5 + 0.25 = 0.75 reaches 0.72
  expect_shares(logits_of({0.1, 0.5, 0.15, 0.25}), params, {0, 2.0 / 3, 0, 1.0 / 3});
}

TEST(Sample, MinPIsRelativeToTheMostProbable) {
  SamplingParams params = plain();
  params.min_p = 0.4f;  // of 0.5: 0.2
  expect_shares(logits_of({0.1, 0.5, 0.15, 0.25}), params, {0, 2.0 / 3, 0, 1.0 / 3});
}

TEST(Sample, PenaltiesCountPromptAndAnswerAsTheirDefinitionsSay) {
  SamplingParams params = plain();
  params.flags = kSampleGreedy;
  params.prompt_tokens = 2;
  const std::vector<uint32_t> history = {0, 1, 2, 2,
                                         3};  // 0 and 1 in the prompt, 2 twice and 3 once in the answer
  const auto token = [&](std::vector<double> logits) {
    return sample_reference(logits, history, params).token;
  };
  params.repetition_penalty = 2;
  EXPECT_EQ(token({9, 8, 7, 6, 4.6}), 4u);       // 4.5 4 3.5 3 4.6
  EXPECT_EQ(token({-1, -2, -3, -4, -1.9}), 4u);  // -2 -4 -6 -8 -1.9
  params.repetition_penalty = 1;
  params.presence_penalty = 1;
  EXPECT_EQ(token({1, 1.1, 2, 2.05, 0}), 1u);  // 1 1.1 1 1.05
  params.presence_penalty = 0;
  params.frequency_penalty = 1;
  EXPECT_EQ(token({1, 1.1, 3, 2.05, 0}), 1u);  // 1 1.1 1 1.05
}

TEST(Sample, TheDrawDependsOnSeedAndPositionOnly) {
  SamplingParams params = plain();
  params.seed = 0x123456789abcdefull;
  const std::vector<double> logits(64, 0.0);  // the token is the draw's upper 6 bits
  for (uint32_t n = 1; n < 200; ++n) {
    const uint32_t token = sample_reference(logits, std::vector<uint32_t>(n, 5), params).token;
    EXPECT_EQ(token, static_cast<uint32_t>(sample_uniform(params.seed, n) * 64));
    EXPECT_EQ(token, sample_reference(logits, std::vector<uint32_t>(n, 9), params).token);
  }
}

TEST(Sample, WithoutAFiniteLogitTheTokenIsZero) {
  SamplingParams params = plain();
  const std::vector<double> logits(3, -INFINITY);
  EXPECT_EQ(sample_reference(logits, std::vector<uint32_t>{1}, params).token, 0u);
  EXPECT_EQ(sample_reference(logits, std::vector<uint32_t>{1}, params).logprob, -INFINITY);
  params.flags = kSampleGreedy;
  EXPECT_EQ(sample_reference(logits, std::vector<uint32_t>{1}, params).token, 0u);
}

}  // namespace
}  // namespace plow
