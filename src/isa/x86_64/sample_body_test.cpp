// sample against its definition (src/ops/sample/sample.h), written here once more in double with a plain
// sort.
#include "isa/x86_64/sampled_rows.h"
#include "ops/sample/philox.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <numeric>

namespace plow {
namespace {

struct Expected {
  uint32_t token;
  double logprob;
  std::vector<uint32_t> top;  // all tokens, the likeliest first
};

Expected expected_sample(const std::vector<float>& row, const std::vector<uint32_t>& history,
                         const SamplingParams& params) {
  std::vector<double> raw(row.begin(), row.end());
  for (double& l : raw) l = std::isnan(l) ? -INFINITY : l;
  std::vector<double> l = raw;
  for (size_t t = 0; params.mask != nullptr && t < l.size(); ++t) {
    if ((params.mask[t / 32] & (1u << (t % 32))) == 0) l[t] = -INFINITY;
  }
  for (size_t t = params.n_ids; params.n_ids > 0 && t < l.size(); ++t) l[t] = -INFINITY;
  for (uint32_t i = 0; i < params.n_bias; ++i)
    l[params.bias[i].token] += static_cast<double>(params.bias[i].bias);
  std::map<uint32_t, uint32_t> counts;
  for (size_t i = 0; i < history.size(); ++i) counts[history[i]] += i >= params.prompt_tokens;
  for (const auto& [token, count] : counts) {
    l[token] = l[token] > 0 ? l[token] / static_cast<double>(params.repetition_penalty)
                            : l[token] * static_cast<double>(params.repetition_penalty);
    if (count > 0)
      l[token] -= static_cast<double>(params.frequency_penalty) * count +
                  static_cast<double>(params.presence_penalty);
  }
  std::vector<uint32_t> order(l.size());
  std::iota(order.begin(), order.end(), 0u);
  std::stable_sort(order.begin(), order.end(), [&](uint32_t a, uint32_t b) { return l[a] > l[b]; });
  uint32_t token = order[0];
  if ((params.flags & kSampleGreedy) == 0 && l[token] > -INFINITY) {
    std::vector<double> w;
    for (uint32_t t : order)
      w.push_back(std::exp((l[t] - l[order[0]]) / static_cast<double>(params.temperature)));
    size_t kept = params.top_k > 0 ? std::min<size_t>(params.top_k, w.size()) : w.size();
    const auto total = [&] { return std::accumulate(w.begin(), w.begin() + static_cast<long>(kept), 0.0); };
    if (params.top_p < 1) {
      const double most = static_cast<double>(params.top_p) * total();
      double before = 0;
      size_t n = 0;
      while (n < kept && (n == 0 || before < most)) before += w[n++];
      kept = n;
    }
    size_t n = 1;
    while (n < kept && w[n] >= static_cast<double>(params.min_p)) ++n;
    kept = n;
    const double threshold =
        static_cast<double>(sample_uniform(params.seed, static_cast<uint32_t>(history.size()))) * total();
    double sum = 0;
    for (size_t i = 0; i < kept; ++i) {
      token = order[i];
      sum += w[i];
      if (sum > threshold) break;
    }
  }
  std::vector<uint32_t> top(l.size());
  std::iota(top.begin(), top.end(), 0u);
  std::stable_sort(top.begin(), top.end(), [&](uint32_t a, uint32_t b) { return raw[a] > raw[b]; });
  const bool given = (params.flags & kSampleGiven) != 0;
  if (given) token = params.given;
  const double most = *std::max_element(raw.begin(), raw.end());
  if (most == -INFINITY || (!given && l[order[0]] == -INFINITY)) return {0, -INFINITY, top};
  double sum = 0;
  for (double x : raw) sum += std::exp(x - most);
  return {token, raw[token] - most - std::log(sum), top};
}

SamplingParams neutral() {
  SamplingParams params{};
  params.temperature = 1;
  params.top_p = 1;
  params.repetition_penalty = 1;
  return params;
}

BodyRig run_rows(const SampledRows& rows, IsaLevel level) {
  const auto n = static_cast<uint32_t>(rows.logits.size());
  BodyRig rig(n, n, 3);
  rig.packet.body = static_cast<uint16_t>(Op::kSample);
  rig.packet.row_kind = static_cast<uint8_t>(Rows::kSamples);
  rig.packet.operand[0] = rig.add_arena(n, rows.vocab, set_sampled_rows(rig, rows));
  rig.packet.operand[1] = rig.add_step(StepColumn::kSampled);
  rig.cover_columns(1, 1);
  EXPECT_EQ(unsupported_reason(rig.packet, rig.tensors.data()), "");
  rig.run(level);
  return rig;
}

void check(const SampledRows& rows) {
  for (IsaLevel level : available_isa_levels()) {
    const BodyRig rig = run_rows(rows, level);
    for (size_t i = 0; i < rows.logits.size(); ++i) {
      const Expected expected = expected_sample(rows.logits[i], rows.history[i], rows.params[i]);
      ASSERT_EQ(rig.sampled[i].token, expected.token) << "row " << i;
      if (std::isinf(expected.logprob)) {
        EXPECT_EQ(static_cast<double>(rig.sampled[i].logprob), expected.logprob);
      } else {
        EXPECT_NEAR(static_cast<double>(rig.sampled[i].logprob), expected.logprob,
                    1e-5 + 1e-6 * std::abs(expected.logprob));
      }
    }
  }
}

TEST(SampleBody, GreedyTakesTheFirstLargest) {
  SamplingParams params = neutral();
  params.flags = kSampleGreedy;
  for (uint32_t vocab : {1u, 5u, 16u, 1000u}) check(random_rows(20, vocab, 5, params));
  SampledRows ties = random_rows(1, 40, 5, params);
  ties.logits[0][33] = ties.logits[0][21] = ties.logits[0][22] = 9;
  check(ties);
  EXPECT_EQ(run_rows(ties, IsaLevel::kAvx2).sampled[0].token, 21u);
}

TEST(SampleBody, DrawsFromTheWholeDistribution) {
  for (float temperature : {0.01f, 0.7f, 1.0f, 30.0f}) {
    SamplingParams params = neutral();
    params.temperature = temperature;
    for (uint32_t vocab : {1u, 17u, 1003u}) check(random_rows(60, vocab, 12, params));
  }
}

TEST(SampleBody, CutsByTopKTopPAndMinP) {
  for (uint32_t top_k : {0u, 1u, 5u, 40u, 5000u}) {
    for (float top_p : {0.1f, 0.9f, 1.0f}) {
      for (float min_p : {0.0f, 0.05f, 1.0f}) {
        SamplingParams params = neutral();
        params.top_k = top_k;
        params.top_p = top_p;
        params.min_p = min_p;
        SCOPED_TRACE("top_k " + std::to_string(top_k) + " top_p " + std::to_string(top_p) + " min_p " +
                     std::to_string(min_p));
        check(random_rows(40, 503, 6, params));
      }
    }
  }
}

TEST(SampleBody, PenaltiesLookAtPromptAndAnswer) {
  SamplingParams params = neutral();
  params.repetition_penalty = 1.3f;
  params.presence_penalty = 0.6f;
  params.frequency_penalty = 0.4f;
  check(random_rows(60, 101, 3, params));
  params.flags = kSampleGreedy;
  check(random_rows(60, 101, 3, params));
}

TEST(SampleBody, OnlyTokensOfTheMaskAreTaken) {
  for (const bool greedy : {true, false}) {
    for (const double share : {0.02, 0.5, 0.98}) {
      SamplingParams params = neutral();
      params.flags = greedy ? kSampleGreedy : 0u;
      params.temperature = 2;
      params.top_k = share == 0.5 ? 20 : 0;
      params.min_p = share == 0.98 ? 0.1f : 0.0f;
      params.frequency_penalty = share == 0.02 ? 0.5f : 0.0f;
      SampledRows rows = random_rows(40, 503, 6, params);
      std::vector<std::vector<uint32_t>> masks;
      for (size_t i = 0; i < rows.params.size(); ++i) {
        masks.emplace_back(16, 0);
        const auto draws = random_values(503, 900 + static_cast<uint32_t>(i), 1);
        for (uint32_t t = 0; t < 503; ++t) {
          if (draws[t] < 2 * share - 1) masks[i][t / 32] |= 1u << (t % 32);
        }
        if (i == 0) std::ranges::fill(masks[i], 0u);  // nothing may be picked
        rows.params[i].mask = masks[i].data();
      }
      check(rows);
    }
  }
}

TEST(SampleBody, BiasesMoveTokensAndIdsOfNoTokenAreNeverTaken) {
  for (const bool greedy : {true, false}) {
    SamplingParams params = neutral();
    params.flags = greedy ? kSampleGreedy : 0u;
    SampledRows rows = random_rows(40, 203, 6, params);
    const std::vector<TokenBias> biases = {{0, 100}, {3, 4.5f}, {17, -100}, {150, 5}, {202, 100}};
    for (size_t i = 0; i < rows.params.size(); ++i) {
      SamplingParams& row = rows.params[i];
      row.n_ids = i % 3 == 0 ? 0 : i % 3 == 1 ? 151 : 1000;  // none, some, more than there are
      row.bias = biases.data() + i % 2;
      row.n_bias = static_cast<uint32_t>(i % 5);
      row.frequency_penalty = i % 7 == 0 ? 0.5f : 0;
      rows.logits[i][190] = 50;  // the likeliest of all, where it may be taken
    }
    check(rows);
  }
}

TEST(SampleBody, AGivenTokenIsOnlyScored) {
  SamplingParams params = neutral();
  params.flags = kSampleGiven;
  SampledRows rows = random_rows(30, 77, 6, params);
  for (size_t i = 0; i < rows.params.size(); ++i) {
    rows.params[i].given = static_cast<uint32_t>(i * 3 % 77);
    rows.params[i].n_ids = 5;
    rows.params[i].repetition_penalty = 2;
  }
  rows.logits[4][12] = -INFINITY;
  rows.logits[5][15] = NAN;
  check(rows);
}

TEST(SampleBody, TheLikeliestTokensAreTold) {
  SamplingParams params = neutral();
  for (const uint32_t vocab : {1u, 15u, 16u, 500u}) {
    SampledRows rows = random_rows(24, vocab, 3, params);
    std::vector<std::vector<Sampled>> top(rows.params.size(), std::vector<Sampled>(kMaxTop));
    const TokenBias bias{0, 50};
    for (size_t i = 0; i < rows.params.size(); ++i) {
      rows.params[i].n_top = static_cast<uint32_t>(i % (kMaxTop + 1));
      rows.params[i].top = top[i].data();
      rows.params[i].bias = &bias;
      rows.params[i].n_bias = 1;
      for (uint32_t t = 0; i % 2 == 0 && t < vocab; ++t)
        rows.logits[i][t] = std::round(rows.logits[i][t]);  // ties
    }
    for (IsaLevel level : available_isa_levels()) {
      for (auto& row : top) std::ranges::fill(row, Sampled{~0u, 1});
      (void)run_rows(rows, level);
      for (size_t i = 0; i < rows.params.size(); ++i) {
        const Expected expected = expected_sample(rows.logits[i], rows.history[i], rows.params[i]);
        double sum = 0;
        for (float l : rows.logits[i]) sum += std::exp(static_cast<double>(l));
        const size_t told = std::min(rows.params[i].n_top, vocab);
        for (size_t t = 0; t < told; ++t) {
          ASSERT_EQ(top[i][t].token, expected.top[t]) << "row " << i << " place " << t;
          EXPECT_NEAR(static_cast<double>(top[i][t].logprob),
                      static_cast<double>(rows.logits[i][expected.top[t]]) - std::log(sum), 1e-4);
        }
        for (size_t t = told; t < kMaxTop; ++t) EXPECT_EQ(top[i][t].token, ~0u);
      }
    }
  }
}

TEST(SampleBody, LogitsThatAreNotNumbersAreNeverTaken) {
  SamplingParams params = neutral();
  SampledRows rows = random_rows(4, 50, 3, params);
  for (uint32_t c = 0; c < 50; ++c) {
    if (c % 3 != 0) rows.logits[0][c] = NAN;
    if (c != 7) rows.logits[1][c] = -INFINITY;
    rows.logits[2][c] = NAN;
    rows.logits[3][c] = -INFINITY;
  }
  check(rows);
  for (SamplingParams& p : rows.params) p.flags = kSampleGreedy;
  check(rows);
}

TEST(SampleBody, FrequenciesOfDrawsAreTheProbabilities) {
  const std::vector<float> logits = {std::log(0.5f), std::log(0.25f), std::log(0.125f), std::log(0.125f)};
  SampledRows rows{4, {}, {}, {}};
  constexpr uint32_t kDraws = 4000;
  for (uint32_t i = 0; i < kDraws; ++i) {
    rows.logits.push_back(logits);
    rows.history.push_back({0});
    rows.params.push_back(neutral());
    rows.params.back().seed = i;
  }
  const BodyRig rig = run_rows(rows, IsaLevel::kAvx2);
  double seen[4] = {};
  for (const Sampled& s : rig.sampled) seen[s.token] += 1.0 / kDraws;
  for (int t = 0; t < 4; ++t) {
    const double p = std::exp(static_cast<double>(logits[static_cast<size_t>(t)]));
    EXPECT_NEAR(seen[t], p, 5 * std::sqrt(p * (1 - p) / kDraws)) << t;  // five standard deviations
  }
}

}  // namespace
}  // namespace plow
