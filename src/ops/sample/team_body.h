// sample, for a team: a token for each sampled row, as ops/sample/sample.h defines it. Weights are floats,
// sums of weights doubles, added in an order that does not depend on timing.
//
// Every cut keeps a prefix of the order of tokens (descending logit, ties by ascending id), so a cut is a
// key: the last token's. Keys are found bit by bit from above: of all keys, the largest at which a count or a
// sum of weights of the tokens down to it is large enough. No sorting, and all threads work all the time.
#pragma once

#include "interp/team.h"
#include "interp/vector_math.h"
#include "ops/sample/body.h"

namespace plow::dev {

// A row on its way to a token. `logits` and `weights` lie in the worker's scratch.
struct TeamSample {
  float* logits;
  float* weights;
  uint32_t vocab;
  uint32_t id_bits;  // that hold any id
  unsigned char* shared;
};

// Tokens in their order: larger is earlier.
PLOW_DEVICE uint64_t token_key(const TeamSample& row, uint32_t token) {
  const uint32_t mask = (1u << row.id_bits) - 1;
  return (uint64_t{ordered_bits(row.logits[token])} << row.id_bits) | (mask - token);
}

// What the tokens with keys of at least `key` have together.
struct PrefixTotal {
  double weight;
  uint32_t count;
};
template <class B>
PLOW_DEVICE PrefixTotal prefix_total(const TeamSample& row, uint64_t key) {
  double weight = 0;
  uint32_t count = 0;
  for (uint32_t c = B::thread(); c < row.vocab; c += B::n_threads()) {
    if (token_key(row, c) < key) continue;
    weight += static_cast<double>(row.weights[c]);
    ++count;
  }
  return {reduce_team<B>(weight, Sum{}, row.shared), reduce_team<B>(count, Sum{}, row.shared)};
}

// The largest key at which enough(total of the prefix that ends there) holds; 0 when there is none.
template <class B, class F>
PLOW_DEVICE uint64_t last_key(const TeamSample& row, const F& enough) {
  uint64_t key = 0;
  for (uint32_t bit = 32 + row.id_bits; bit-- > 0;) {
    const uint64_t tried = key | (uint64_t{1} << bit);
    if (enough(prefix_total<B>(row, tried))) key = tried;
  }
  return key;
}

template <class B>
PLOW_DEVICE float team_largest(const TeamSample& row) {
  float largest = -__builtin_inff();
  for (uint32_t c = B::thread(); c < row.vocab; c += B::n_threads()) largest = B::max(largest, row.logits[c]);
  return reduce_team<B>(largest, Largest{}, row.shared);
}

// Weights e^((l - largest) / temperature), and their sum.
template <class B>
PLOW_DEVICE double fill_weights(const TeamSample& row, float largest, float temperature) {
  double sum = 0;
  for (uint32_t c = B::thread(); c < row.vocab; c += B::n_threads()) {
    row.weights[c] = exp<B>(B::div(B::sub(row.logits[c], largest), temperature));
    sum += static_cast<double>(row.weights[c]);
  }
  return reduce_team<B>(sum, Sum{}, row.shared);  // settles, so all see all weights
}

// The key of the last token that the cuts leave.
template <class B>
PLOW_DEVICE uint64_t kept_key(const TeamSample& row, const SamplingParams& params, double all) {
  uint64_t key = 0;
  if (params.top_k > 0 && params.top_k < row.vocab) {
    key = last_key<B>(row, [&](const PrefixTotal& total) { return total.count >= params.top_k; });
    if (params.top_p < 1) all = prefix_total<B>(row, key).weight;
  }
  if (params.top_p < 1) {
    const double most = static_cast<double>(params.top_p) * all;
    const uint64_t nucleus =
        last_key<B>(row, [&](const PrefixTotal& total) { return total.count > 0 && total.weight >= most; });
    key = key > nucleus ? key : nucleus;
  }
  if (params.min_p > 0) {
    // The smallest key whose weight is enough; the likeliest token stays in any case.
    uint64_t lowest = ~uint64_t{0}, first = 0;
    for (uint32_t c = B::thread(); c < row.vocab; c += B::n_threads()) {
      const uint64_t own = token_key(row, c);
      first = first > own ? first : own;
      if (row.weights[c] >= params.min_p && own < lowest) lowest = own;
    }
    first = reduce_team<B>(first, Largest{}, row.shared);
    lowest = ~reduce_team<B>(~lowest, Largest{}, row.shared);
    if (lowest > first) lowest = first;
    key = key > lowest ? key : lowest;
  }
  return key;
}

// The token with this key.
PLOW_DEVICE uint32_t token_of(const TeamSample& row, uint64_t key) {
  const uint32_t mask = (1u << row.id_bits) - 1;
  return mask - (static_cast<uint32_t>(key) & mask);
}

template <class B>
PLOW_DEVICE uint64_t first_key(const TeamSample& row) {
  uint64_t first = 0;
  for (uint32_t c = B::thread(); c < row.vocab; c += B::n_threads()) {
    const uint64_t own = token_key(row, c);
    first = first > own ? first : own;
  }
  return reduce_team<B>(first, Largest{}, row.shared);
}

template <class B>
PLOW_DEVICE uint32_t team_draw(const TeamSample& row, const SamplingParams& params, uint32_t position,
                               double all) {
  const uint64_t kept = kept_key<B>(row, params, all);
  const double sum = prefix_total<B>(row, kept).weight;
  const double threshold = static_cast<double>(sample_uniform(params.seed, position)) * sum;
  uint64_t drawn = last_key<B>(row, [&](const PrefixTotal& total) { return total.weight > threshold; });
  if (drawn < kept) drawn = kept;  // rounding: the last that is left
  // `kept` is 0 where nothing was cut, and `drawn` then 0 only when no sum exceeds the threshold.
  return drawn == 0 ? token_of(row, first_key<B>(row)) : token_of(row, drawn);
}

// Penalties as in penalise(), by the whole team. `seen` is a word a token.
template <class B>
PLOW_DEVICE void team_penalise(const SamplingParams& params, const uint32_t* history, uint32_t n,
                               uint32_t vocab, uint32_t* seen, float* logits) {
  for (uint32_t c = B::thread(); c < vocab; c += B::n_threads()) seen[c] = 0;
  B::settle();
  constexpr uint32_t kSeen = 0x80000000u;  // the rest counts how often it was in the answer
  for (uint32_t i = B::thread(); i < n; i += B::n_threads()) {
    if (history[i] >= vocab) continue;
    B::or_relaxed(&seen[history[i]], kSeen);
    if (i >= params.prompt_tokens) B::add_relaxed(&seen[history[i]], 1);
  }
  B::settle();
  for (uint32_t c = B::thread(); c < vocab; c += B::n_threads()) {
    if (seen[c] == 0) continue;
    float logit = logits[c];
    logit = logit > 0 ? B::div(logit, params.repetition_penalty) : B::mul(logit, params.repetition_penalty);
    const uint32_t count = seen[c] & ~kSeen;
    if (count > 0)
      logit = B::sub(logit, B::add(B::mul(params.frequency_penalty, static_cast<float>(count)),
                                   params.presence_penalty));
    logits[c] = logit;
  }
  B::settle();
}

// Greedy without penalties: nothing is written on the way. `row.logits` is not used.
template <class B>
PLOW_DEVICE Sampled team_greedy(const float* from, uint32_t vocab, unsigned char* shared) {
  constexpr uint32_t kAtOnce = 8;  // loads on their way
  // Larger is better: the logit's order, then the smaller id. A NaN is as minus infinity.
  uint64_t best = 0;
  for (uint32_t first = B::thread(); first < vocab; first += kAtOnce * B::n_threads()) {
    float x[kAtOnce];
    PLOW_UNROLL
    for (uint32_t i = 0; i < kAtOnce; ++i)
      x[i] = first + i * B::n_threads() < vocab ? from[first + i * B::n_threads()] : -__builtin_inff();
    PLOW_UNROLL
    for (uint32_t i = 0; i < kAtOnce; ++i) {
      const uint32_t c = first + i * B::n_threads();
      const float number = x[i] == x[i] ? x[i] : -__builtin_inff();
      const uint64_t key = (uint64_t{ordered_bits(number)} << 32) | ~c;
      if (c < vocab && key > best) best = key;
    }
  }
  best = reduce_team<B>(best, Largest{}, shared);
  const uint32_t token = ~static_cast<uint32_t>(best);
  const float largest = from[token] == from[token] ? from[token] : -__builtin_inff();
  if (largest == -__builtin_inff()) return {0, largest};
  double sum = 0;
  for (uint32_t first = B::thread(); first < vocab; first += kAtOnce * B::n_threads()) {
    float weight = 0;
    PLOW_UNROLL
    for (uint32_t i = 0; i < kAtOnce; ++i) {
      const uint32_t c = first + i * B::n_threads();
      const float x = c < vocab ? from[c] : -__builtin_inff();
      weight = B::add(weight, x == x ? exp<B>(B::sub(x, largest)) : 0.0f);
    }
    sum += static_cast<double>(weight);
  }
  sum = reduce_team<B>(sum, Sum{}, shared);
  return {token, static_cast<float>(-B::log(sum))};
}

// The n likeliest tokens, one after the other: each is the first in the order behind the one before.
template <class B>
PLOW_DEVICE void team_tell_top(const TeamSample& row, double log_total, uint32_t n, Sampled* top) {
  uint64_t before = ~uint64_t{0};
  for (uint32_t i = 0; i < n; ++i) {
    uint64_t best = 0;
    for (uint32_t c = B::thread(); c < row.vocab; c += B::n_threads()) {
      const uint64_t own = token_key(row, c);
      if (own < before && own > best) best = own;
    }
    before = reduce_team<B>(best, Largest{}, row.shared);
    const uint32_t token = token_of(row, before);
    if (B::thread() == 0)
      top[i] = {token, static_cast<float>(static_cast<double>(row.logits[token]) - log_total)};
  }
}

// Step 0 of sample.h, and the penalties.
template <class B>
PLOW_DEVICE void team_change_logits(const TeamSample& row, const SamplingParams& params,
                                    const uint32_t* history, uint32_t n) {
  const uint32_t ids = pickable_ids(params, row.vocab);
  B::settle();
  for (uint32_t c = B::thread(); c < row.vocab; c += B::n_threads()) {
    if (c >= ids || (params.mask != nullptr && !mask_allows(params.mask, c)))
      row.logits[c] = -__builtin_inff();
  }
  B::settle();
  for (uint32_t i = B::thread(); i < params.n_bias; i += B::n_threads()) {
    float& logit = row.logits[params.bias[i].token];
    logit = B::add(logit, params.bias[i].bias);
  }
  B::settle();
  if (has_penalties(params))
    team_penalise<B>(params, history, n, row.vocab, reinterpret_cast<uint32_t*>(row.weights), row.logits);
}

template <class B>
PLOW_DEVICE Sampled team_sample_row(const SamplingParams& params, const float* from, uint32_t vocab,
                                    const uint32_t* history, uint32_t n, Sampled* top, unsigned char* scratch,
                                    unsigned char* shared) {
  if (params.flags == kSampleGreedy && params.n_top == 0 && params.n_bias == 0 && params.mask == nullptr &&
      !has_penalties(params)) {
    const Sampled likeliest = team_greedy<B>(from, vocab, shared);
    if (likeliest.token < pickable_ids(params, vocab)) return likeliest;
  }
  float* logits = reinterpret_cast<float*>(scratch);
  TeamSample row{logits, logits + vocab, vocab, 1, shared};
  while ((vocab - 1) >> row.id_bits != 0) ++row.id_bits;
  for (uint32_t c = B::thread(); c < vocab; c += B::n_threads()) {
    const float x = from[c];
    logits[c] = x == x ? x : -__builtin_inff();
  }
  B::settle();
  const float raw_largest = team_largest<B>(row);
  if (raw_largest == -__builtin_inff()) return {0, -__builtin_inff()};
  const double log_sum = B::log(fill_weights<B>(row, raw_largest, 1));
  if (params.n_top > 0) {
    const double log_total = static_cast<double>(raw_largest) + log_sum;
    team_tell_top<B>(row, log_total, params.n_top < vocab ? params.n_top : vocab, top);
  }
  const bool given = (params.flags & kSampleGiven) != 0;
  float largest = raw_largest;
  if (!given && changes_logits(params, vocab)) {
    team_change_logits<B>(row, params, history, n);
    largest = team_largest<B>(row);
  }
  if (largest == -__builtin_inff()) return {0, largest};
  uint32_t token;
  if (given) {
    token = params.given;
  } else if ((params.flags & kSampleGreedy) != 0) {
    token = token_of(row, first_key<B>(row));
  } else {
    B::settle();
    token = team_draw<B>(row, params, n, fill_weights<B>(row, largest, params.temperature));
  }
  const float logit = from[token] == from[token] ? from[token] : -__builtin_inff();
  const double logprob = static_cast<double>(logit) - static_cast<double>(raw_largest) - log_sum;
  B::settle();
  return {token, static_cast<float>(logprob)};
}

template <class B>
PLOW_DEVICE_BODY void sample_team_body(const BodyContext& ctx, const Packet& packet, uint32_t row_tile) {
  for_sampled_rows<B>(ctx, packet, row_tile,
                      [&](const SamplingParams& params, const float* logits, uint32_t vocab,
                          const uint32_t* history, uint32_t n, Sampled* top) {
                        return team_sample_row<B>(params, logits, vocab, history, n, top, ctx.scratch,
                                                  ctx.shared);
                      });
}

}  // namespace plow::dev
