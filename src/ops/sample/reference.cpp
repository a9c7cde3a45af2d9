#include "ops/sample/philox.h"
#include "ops/sample/sample.h"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <unordered_map>
#include <vector>

namespace plow {
namespace {

void penalise(std::vector<double>& logits, std::span<const uint32_t> history, const SamplingParams& params) {
  std::unordered_map<uint32_t, uint32_t> in_answer;  // by token of the history; 0: in the prompt only
  for (size_t i = 0; i < history.size(); ++i) in_answer[history[i]] += i >= params.prompt_tokens ? 1 : 0;
  for (const auto& [token, count] : in_answer) {
    double& logit = logits[token];
    logit = logit > 0 ? logit / params.repetition_penalty : logit * params.repetition_penalty;
    if (count > 0) logit -= double{params.frequency_penalty} * count + double{params.presence_penalty};
  }
}

// Step 4: how many tokens of the order stay, given their weights.
size_t kept_tokens(const std::vector<double>& weights, const SamplingParams& params) {
  size_t kept = weights.size();
  if (params.top_k > 0) kept = std::min<size_t>(kept, params.top_k);
  if (params.top_p < 1) {
    const double most =
        params.top_p *
        std::accumulate(weights.begin(), weights.begin() + static_cast<std::ptrdiff_t>(kept), 0.0);
    double before = weights[0];
    size_t nucleus = 1;
    for (; nucleus < kept && before < most; ++nucleus) before += weights[nucleus];
    kept = nucleus;
  }
  while (kept > 1 && weights[kept - 1] < params.min_p) --kept;
  return kept;
}

size_t draw(const std::vector<double>& weights, size_t kept, double uniform) {
  const double threshold =
      uniform * std::accumulate(weights.begin(), weights.begin() + static_cast<std::ptrdiff_t>(kept), 0.0);
  double sum = 0;
  for (size_t i = 0; i < kept; ++i) {
    sum += weights[i];
    if (sum > threshold) return i;
  }
  return 0;  // no weight is above 0
}

double log_probability(const std::vector<double>& logits, uint32_t token) {
  const double most = *std::max_element(logits.begin(), logits.end());
  if (most == -INFINITY) return -INFINITY;
  double total = 0;
  for (double logit : logits) total += std::exp(logit - most);
  return logits[token] - most - std::log(total);
}

std::vector<double> numbers(std::span<const double> logits) {
  std::vector<double> numbers(logits.begin(), logits.end());
  for (double& logit : numbers) {
    if (std::isnan(logit)) logit = -INFINITY;
  }
  return numbers;
}

// The tokens by descending logit, ties by ascending id.
std::vector<uint32_t> order_of(const std::vector<double>& logits) {
  std::vector<uint32_t> order(logits.size());
  std::iota(order.begin(), order.end(), 0u);
  std::stable_sort(order.begin(), order.end(), [&](uint32_t a, uint32_t b) { return logits[a] > logits[b]; });
  return order;
}

// Step 0.
void allow_and_bias(std::vector<double>& logits, const SamplingParams& params) {
  for (size_t t = 0; t < logits.size(); ++t) {
    const bool beyond = params.n_ids > 0 && t >= params.n_ids;
    const bool left_out = params.mask != nullptr && (params.mask[t / 32] >> (t % 32) & 1) == 0;
    if (beyond || left_out) logits[t] = -INFINITY;
  }
  for (uint32_t i = 0; i < params.n_bias; ++i) logits[params.bias[i].token] += double{params.bias[i].bias};
}

uint32_t pick(const std::vector<double>& logits, uint32_t position, const SamplingParams& params) {
  if (params.flags & kSampleGreedy) {
    return static_cast<uint32_t>(std::max_element(logits.begin(), logits.end()) - logits.begin());
  }
  const std::vector<uint32_t> order = order_of(logits);
  const double most = logits[order[0]];
  if (most == -INFINITY) return 0;
  std::vector<double> weights(order.size());
  for (size_t i = 0; i < order.size(); ++i)
    weights[i] = std::exp((logits[order[i]] - most) / params.temperature);
  return order[draw(weights, kept_tokens(weights, params), sample_uniform(params.seed, position))];
}

}  // namespace

SampleResult sample_reference(std::span<const double> logits, std::span<const uint32_t> history,
                              const SamplingParams& params) {
  const std::vector<double> raw = numbers(logits);
  std::vector<double> penalised = raw;
  allow_and_bias(penalised, params);
  penalise(penalised, history, params);
  const bool given = (params.flags & kSampleGiven) != 0;
  if (std::ranges::max(given ? raw : penalised) == -INFINITY) return {0, -INFINITY};
  const uint32_t token =
      given ? params.given : pick(penalised, static_cast<uint32_t>(history.size()), params);
  return {token, log_probability(raw, token)};
}

std::vector<SampleResult> top_reference(std::span<const double> logits, uint32_t n) {
  const std::vector<double> raw = numbers(logits);
  const std::vector<uint32_t> order = order_of(raw);
  std::vector<SampleResult> top;
  for (uint32_t i = 0; i < n; ++i) top.push_back({order[i], log_probability(raw, order[i])});
  return top;
}

}  // namespace plow
