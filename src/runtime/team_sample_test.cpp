// sample for teams against its definition in double (ops/sample/sample.h): every mode, on rows whose answer
// is among a few likely tokens and on rows where all are alike.
#include "isa/x86_64/sampled_rows.h"
#include "ops/sample/sample.h"
#include "ops/sample/team_body.h"
#include "runtime/testing/team_rig.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>

namespace plow {
namespace {

constexpr float kInfinity = std::numeric_limits<float>::infinity();

SamplingParams neutral(bool greedy = false) {
  SamplingParams params{};
  params.flags = greedy ? kSampleGreedy : 0u;
  params.temperature = params.top_p = params.repetition_penalty = 1;
  return params;
}

template <class Team>
class TeamSampleOn : public testing::Test {
 protected:
  static std::vector<Sampled> sampled(const SampledRows& rows) {
    const auto n = static_cast<uint32_t>(rows.logits.size());
    TeamRig<Team> rig(n, n, 3);
    const uint16_t logits = rig.add_rows(n, rows.vocab, set_sampled_rows(rig, rows));
    rig.call(Op::kSample, {logits, rig.add_step(StepColumn::kSampled)}, {}, {1}, Rows::kSamples);
    return rig.sampled;
  }

  static void check(const SampledRows& rows) {
    const std::vector<Sampled> found = sampled(rows);
    for (size_t i = 0; i < rows.logits.size(); ++i) {
      const std::vector<double> logits(rows.logits[i].begin(), rows.logits[i].end());
      const SampleResult expected = sample_reference(logits, rows.history[i], rows.params[i]);
      ASSERT_EQ(found[i].token, expected.token) << "row " << i;
      if (std::isinf(expected.logprob)) {
        EXPECT_EQ(static_cast<double>(found[i].logprob), expected.logprob);
      } else {
        // Of float logits around 10: a rounding of the result, and 8 ulps of the sum.
        EXPECT_NEAR(static_cast<double>(found[i].logprob), expected.logprob,
                    1e-6 + 0x1p-23 * std::abs(expected.logprob));
      }
    }
  }
};
using Teams = testing::Types<emulated::EmulatedTeam<32>, emulated::EmulatedTeam<64>>;
TYPED_TEST_SUITE(TeamSampleOn, Teams);

TYPED_TEST(TeamSampleOn, GreedyTakesTheFirstLargestInOnePass) {
  for (const uint32_t vocab : {1u, 3u, 16u, 61u, 2048u, 5003u})
    TestFixture::check(random_rows(4, vocab, 5, neutral(true)));
  SampledRows ties = random_rows(3, 5003, 5, neutral(true));
  for (const uint32_t at : {4999u, 1u, 4097u, 4098u, 2u}) ties.logits[0][at] = 9;
  ties.logits[1].assign(5003, -2.0f);
  ties.logits[1][40] = ties.logits[1][17] = 0.0f;
  ties.logits[1][12] = -0.0f;  // equal to 0, and earlier
  ties.logits[2].assign(5003, -kInfinity);
  ties.logits[2][5002] = -80.0f;
  TestFixture::check(ties);
  const auto found = TestFixture::sampled(ties);
  EXPECT_EQ(found[0].token, 1u);
  EXPECT_EQ(found[1].token, 12u);
  EXPECT_EQ(found[2].token, 5002u);
  EXPECT_EQ(found[2].logprob, 0.0f);
}

TYPED_TEST(TeamSampleOn, WhatIsNotANumberIsNeverPicked) {
  for (const bool greedy : {true, false}) {
    SampledRows rows = random_rows(3, 301, 5, neutral(greedy));
    for (uint32_t t = 0; t < 301; t += 2) rows.logits[0][t] = std::numeric_limits<float>::quiet_NaN();
    for (float& logit : rows.logits[1]) logit = std::numeric_limits<float>::quiet_NaN();
    for (float& logit : rows.logits[2]) logit = -kInfinity;
    TestFixture::check(rows);
    EXPECT_EQ(TestFixture::sampled(rows)[1].token, 0u);
  }
}

TYPED_TEST(TeamSampleOn, DrawsFromTheWholeDistribution) {
  for (const float temperature : {0.01f, 0.7f, 1.0f, 30.0f}) {
    SamplingParams params = neutral();
    params.temperature = temperature;
    for (const uint32_t vocab : {1u, 17u, 1003u}) TestFixture::check(random_rows(6, vocab, 12, params));
    TestFixture::check(random_rows(2, 5003, 1, params));  // by search
  }
}

TYPED_TEST(TeamSampleOn, CutsByTopKTopPAndMinP) {
  for (const uint32_t top_k : {0u, 1u, 40u, 1500u, 5000u}) {
    for (const float top_p : {0.0f, 0.6f, 1.0f}) {
      for (const float min_p : {0.0f, 0.05f, 1.0f}) {
        SamplingParams params = neutral();
        params.top_k = top_k;
        params.top_p = top_p;
        params.min_p = min_p;
        SCOPED_TRACE("top_k " + std::to_string(top_k) + " top_p " + std::to_string(top_p) + " min_p " +
                     std::to_string(min_p));
        TestFixture::check(random_rows(2, 503, 6, params));
        // Flat: the answer is not among a few likely tokens.
        if (top_k % 1500 == 0 && min_p < 0.1f) TestFixture::check(random_rows(1, 2003, 1, params));
      }
    }
  }
}

TYPED_TEST(TeamSampleOn, PenaltiesLookAtPromptAndAnswer) {
  for (const bool greedy : {true, false}) {
    SamplingParams params = neutral(greedy);
    params.repetition_penalty = 1.3f;
    params.presence_penalty = 0.6f;
    params.frequency_penalty = 0.4f;
    TestFixture::check(random_rows(10, 101, 3, params));
    TestFixture::check(random_rows(2, 2003, 3, params));
  }
}

// Also where a cut asks for more tokens than the mask leaves.
TYPED_TEST(TeamSampleOn, OnlyTokensOfTheMaskAreTaken) {
  for (const bool greedy : {true, false}) {
    for (const uint32_t every : {1u, 3u, 97u, 4000u}) {
      SamplingParams params = neutral(greedy);
      params.temperature = 2;
      params.top_k = every == 97 ? 200 : 0;
      params.top_p = every == 3 ? 0.7f : 1.0f;
      params.frequency_penalty = every == 1 ? 0.5f : 0.0f;
      SampledRows rows = random_rows(4, 2003, 6, params);
      std::vector<uint32_t> mask((2003 + 31) / 32, 0);
      for (uint32_t t = every / 2; t < 2003; t += every) mask[t / 32] |= 1u << t % 32;
      for (SamplingParams& row : rows.params) row.mask = mask.data();
      TestFixture::check(rows);
    }
  }
}

TEST(TeamSample, TheShortExponentialIsAsGoodAsItSays) {
  using Team = emulated::EmulatedTeam<32>;
  for (int i = 0; i <= 860'000; ++i) {
    const float x = -1e-4f * static_cast<float>(i);
    const double expected = std::exp(static_cast<double>(x)),
                 found = static_cast<double>(dev::exp_below_zero<Team>(x));
    ASSERT_NEAR(found, expected, (x > -30 ? 4 : 8) * 0x1p-24 * expected) << x;
  }
  EXPECT_LT(dev::exp_below_zero<Team>(-kInfinity), 1e-37f);
  EXPECT_LT(dev::exp_below_zero<Team>(std::numeric_limits<float>::quiet_NaN()), 1e-37f);
}

}  // namespace
}  // namespace plow
