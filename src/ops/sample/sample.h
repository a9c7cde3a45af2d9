// What the operator `sample` computes, exactly. Device bodies do the same in float.
//
// For one row of logits l[0 .. V), the sequence's tokens h[0 .. n) (n = position of the row + 1: the row's
// own token is the last) and SamplingParams (abi/step.h). A logit that is not a number counts as minus
// infinity.
//
//  0. What is not allowed: the logits of the tokens from n_ids on (off when 0), and of those that the mask
//     leaves out, where there is one, become minus infinity. Then the biases are added, where there are any.
//  1. Penalties. For each token t that occurs in h:
//       l[t] = l[t] > 0 ? l[t] / repetition_penalty : l[t] * repetition_penalty;
//     then, with c the number of times that t occurs in h[prompt_tokens .. n), if c > 0:
//       l[t] -= frequency_penalty * c + presence_penalty.
//  2. Order: by l descending, ties by id ascending. Let t[0], t[1], ... be the tokens in this order, and
//       w[i] = exp((l[t[i]] - l[t[0]]) / temperature).
//  3. Greedy (kSampleGreedy): the token is t[0].
//  4. Cuts, each keeping a prefix of the order of at least one token:
//       top_k (off when 0): the first top_k;
//       top_p (off when at least 1): with W the sum of the w kept so far, the tokens i for which
//         w[0] + ... + w[i - 1] < top_p * W (so the one that crosses top_p stays);
//       min_p (off when 0): the tokens with w[i] >= min_p.
//  5. Draw: u = sample_uniform(seed, n) (philox.h; n is the new token's position), K the sum of the w kept;
//  the token is the first
//     t[i] with w[0] + ... + w[i] > u * K.
//
// With kSampleGiven the token is `given`, whatever the steps would pick.
//
// The log-probability is that of the token under softmax of the logits as they came, before step 0; so are
// those of the n_top likeliest tokens, in the order of step 2 before step 0. If no
// logit is above minus infinity, before step 0 or after step 1, the token is 0 and its log-probability minus
// infinity: nothing could be picked.
#pragma once

#include "abi/step.h"

#include <cstdint>
#include <span>
#include <vector>

namespace plow {

struct SampleResult {
  uint32_t token = 0;
  double logprob = 0;
};

// REQUIRES logits not empty, tokens of `history` below logits.size(), temperature > 0 unless greedy, no logit
// plus infinity.
SampleResult sample_reference(std::span<const double> logits, std::span<const uint32_t> history,
                              const SamplingParams& params);

// The `n` likeliest tokens. REQUIRES n at most logits.size().
std::vector<SampleResult> top_reference(std::span<const double> logits, uint32_t n);

}  // namespace plow
