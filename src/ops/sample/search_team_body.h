// Cuts and draw of sample for a team, whatever the logits are: by search.
//
// Every cut keeps a prefix of the order of tokens (descending logit, ties by ascending id), so a cut is a
// key: the last token's. Keys are found bit by bit from above: of all keys, the largest at which a count or a
// sum of weights of the tokens down to it is large enough. No sorting, and all threads work all the time; but
// each bit is a pass over the row.
#pragma once

#include "ops/sample/body.h"
#include "ops/sample/logits_team_body.h"

namespace plow::dev {

// A row on its way to a token.
struct TeamSample {
  const float* logits;
  float* weights;  // a float a token, in the worker's scratch
  uint32_t vocab;
  uint32_t id_bits;  // that hold any id
  unsigned char* shared;
};

// Tokens in their order: larger is earlier.
PLOW_DEVICE uint64_t logit_key(const TeamSample& row, float logit, uint32_t token) {
  const uint32_t mask = (1u << row.id_bits) - 1;
  return (uint64_t{ordered_bits(number(logit))} << row.id_bits) | (mask - token);
}
// The token with this key.
PLOW_DEVICE uint32_t token_of(const TeamSample& row, uint64_t key) {
  const uint32_t mask = (1u << row.id_bits) - 1;
  return mask - (static_cast<uint32_t>(key) & mask);
}

// Calls f(key, weight) for each of the thread's tokens.
template <class B, class F>
PLOW_DEVICE void each_key(const TeamSample& row, const F& f) {
  each_batch<B>(row.logits, row.vocab, [&](uint32_t first, const float(&x)[kBatch]) {
    float weights[kBatch];
    load_batch<B>(row.weights, row.vocab, first, 0, weights);
    PLOW_UNROLL
    for (uint32_t i = 0; i < kBatch; ++i) {
      const uint32_t token = batch_token<B>(first, i);
      if (token < row.vocab) f(logit_key(row, x[i], token), weights[i]);
    }
  });
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
  each_key<B>(row, [&](uint64_t own, float w) {
    if (own < key) return;
    weight += static_cast<double>(w);
    ++count;
  });
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
    each_key<B>(row, [&](uint64_t own, float w) {
      first = first > own ? first : own;
      if (w >= params.min_p && own < lowest) lowest = own;
    });
    first = reduce_team<B>(first, Largest{}, row.shared);
    lowest = ~reduce_team<B>(~lowest, Largest{}, row.shared);
    if (lowest > first) lowest = first;
    key = key > lowest ? key : lowest;
  }
  return key;
}

// The token drawn with `uniform`. REQUIRES the row's weights, which are `all` together.
template <class B>
PLOW_DEVICE uint32_t search_token(const TeamSample& row, const SamplingParams& params, float uniform,
                                  double all) {
  const uint64_t kept = kept_key<B>(row, params, all);
  const double sum = prefix_total<B>(row, kept).weight;
  const double threshold = static_cast<double>(uniform) * sum;
  uint64_t drawn = last_key<B>(row, [&](const PrefixTotal& total) { return total.weight > threshold; });
  if (drawn < kept) drawn = kept;  // rounding: the last that is left
  if (drawn != 0) return token_of(row, drawn);
  // Nothing was cut, and no sum exceeds the threshold: the first token.
  uint64_t first = 0;
  each_key<B>(row, [&](uint64_t own, float) { first = first > own ? first : own; });
  return token_of(row, reduce_team<B>(first, Largest{}, row.shared));
}

}  // namespace plow::dev
