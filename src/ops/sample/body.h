// sample: a token for each sampled row, as ops/sample/sample.h defines it. Weights are floats, sums of
// weights doubles.
//
// The order of tokens by logit is needed only as far as the cuts and the draw reach, which is a few tokens
// when the model is sure: tokens are taken from a heap, and the heap holds only those within a bound of the
// largest logit, which grows when it runs empty.
#pragma once

#include "interp/vector_math.h"
#include "ops/row_wise_body.h"
#include "ops/sample/philox.h"

namespace plow::dev {

// Scratch of one row: the logits, and the heap (or, before it, how often each token was seen).
constexpr uint64_t sample_scratch_bytes(uint32_t vocab) {
  const uint64_t padded = (uint64_t{vocab} + 15) / 16 * 16;
  return padded * (sizeof(float) + sizeof(uint64_t));
}

// Copies a row's logits; what is not a number becomes minus infinity. Lanes after the last are minus infinity
// too.
template <class I>
PLOW_DEVICE void copy_logits(const float* logits, uint32_t vocab, float* to) {
  using Vec = typename I::Vec;
  const Vec lowest = I::set(-__builtin_inff());
  for_lanes(0, vocab, [&](uint32_t c, uint32_t n) {
    const Vec x = load_lanes<I>(logits + c, n);
    const Vec number = I::max(x, lowest);  // of a NaN and b, max gives b
    I::store(to + c, I::select(I::lanes_below(n), number, lowest));
  });
}

PLOW_DEVICE bool mask_allows(const uint32_t* mask, uint32_t token) {
  return ((mask[token / 32] >> (token % 32)) & 1) != 0;
}

PLOW_DEVICE void apply_mask(const uint32_t* mask, uint32_t vocab, float* logits) {
  for (uint32_t first = 0; first < vocab; first += 32) {
    if (mask[first / 32] == ~0u) continue;
    for (uint32_t t = first; t < vocab && t < first + 32; ++t) {
      if (!mask_allows(mask, t)) logits[t] = -__builtin_inff();
    }
  }
}

PLOW_DEVICE void apply_bias(const SamplingParams& params, float* logits) {
  for (uint32_t i = 0; i < params.n_bias; ++i) logits[params.bias[i].token] += params.bias[i].bias;
}

// How many ids may be picked.
PLOW_DEVICE uint32_t pickable_ids(const SamplingParams& params, uint32_t vocab) {
  return params.n_ids > 0 && params.n_ids < vocab ? params.n_ids : vocab;
}

template <class I>
PLOW_DEVICE float largest_of(const float* logits, uint32_t vocab) {
  typename I::Vec largest = I::set(-__builtin_inff());
  for (uint32_t c = 0; c < vocab; c += 16) largest = I::max(largest, I::load(logits + c));
  return I::reduce_max(largest);
}

// The sum of e^((l - largest) / temperature). Floats are added in runs of 64 Vecs, the runs in double.
template <class I>
PLOW_DEVICE double weight_sum(const float* logits, uint32_t vocab, float largest, float temperature) {
  using Vec = typename I::Vec;
  double total = 0;
  for (uint32_t first = 0; first < vocab; first += 1024) {
    Vec sum = I::zero();
    for (uint32_t c = first; c < vocab && c < first + 1024; c += 16) {
      sum = I::add(sum, exp<I>(I::div(I::sub(I::load(logits + c), I::set(largest)), I::set(temperature))));
    }
    total += static_cast<double>(I::reduce_add(sum));
  }
  return total;
}

// The first token with the largest logit.
template <class I>
PLOW_DEVICE uint32_t first_largest(const float* logits, uint32_t vocab, float largest) {
  for (uint32_t c = 0; c < vocab; c += 16) {
    const uint32_t below = I::mask_bits(I::less(I::load(logits + c), I::set(largest)));
    if (below != 0xffffu) return c + static_cast<uint32_t>(__builtin_ctz(~below));
  }
  return 0;
}

// Penalties for the tokens of `history`: `seen` is scratch, one word a token.
PLOW_DEVICE void penalise(const SamplingParams& params, const uint32_t* history, uint32_t n, uint32_t vocab,
                          uint32_t* seen, float* logits) {
  constexpr uint32_t kSeen = 0x80000000u;  // the rest counts how often it was in the answer
  __builtin_memset(seen, 0, size_t{vocab} * sizeof(uint32_t));
  for (uint32_t i = 0; i < n; ++i) {
    if (history[i] < vocab)
      seen[history[i]] = (seen[history[i]] + (i >= params.prompt_tokens ? 1 : 0)) | kSeen;
  }
  for (uint32_t i = 0; i < n; ++i) {
    const uint32_t token = history[i];
    if (token >= vocab || seen[token] == 0) continue;
    float& logit = logits[token];
    logit = logit > 0 ? logit / params.repetition_penalty : logit * params.repetition_penalty;
    const uint32_t count = seen[token] & ~kSeen;
    if (count > 0) logit -= params.frequency_penalty * static_cast<float>(count) + params.presence_penalty;
    seen[token] = 0;
  }
}

// Tokens in descending order of their logits, ties by ascending id, taken one by one.
struct TokenOrder {
  const float* logits;
  uint32_t vocab;
  float largest;
  float temperature;
  uint64_t* heap;  // largest first: the logit's order in the high word, ~token in the low
  uint32_t n_heap = 0;
  float bound;  // tokens with logits at least this have been in the heap
  float reach;  // bound = largest - reach * temperature
};

// Maps floats to words that are ordered as they are, and back.
PLOW_DEVICE uint32_t ordered_bits(float x) {
  uint32_t bits;
  __builtin_memcpy(&bits, &x, sizeof(bits));
  return (bits & 0x80000000u) != 0 ? ~bits : bits | 0x80000000u;
}

PLOW_DEVICE void sift_down(uint64_t* heap, uint32_t n, uint32_t i) {
  const uint64_t moved = heap[i];
  for (;;) {
    uint32_t child = 2 * i + 1;
    if (child >= n) break;
    if (child + 1 < n && heap[child + 1] > heap[child]) ++child;
    if (heap[child] <= moved) break;
    heap[i] = heap[child];
    i = child;
  }
  heap[i] = moved;
}

// Fills the empty heap with the tokens of the next reach: 8 temperatures (weights down to e^-8), then four
// times as far each time, then all.
template <class I>
PLOW_DEVICE void fill_heap(TokenOrder& order) {
  while (order.n_heap == 0 && order.bound > -__builtin_inff()) {
    const float before = order.bound;
    order.reach = order.reach == 0 ? 8 : 4 * order.reach;
    order.bound = order.reach > 200 ? -__builtin_inff() : order.largest - order.reach * order.temperature;
    for (uint32_t c = 0; c < order.vocab; c += 16) {
      const typename I::Vec x = I::load(order.logits + c);
      uint32_t taken =
          ~I::mask_bits(I::less(x, I::set(order.bound))) & I::mask_bits(I::less(x, I::set(before)));
      if (c + 16 > order.vocab) taken &= (1u << (order.vocab - c)) - 1;
      for (; (taken & 0xffffu) != 0; taken &= taken - 1) {
        const uint32_t token = c + static_cast<uint32_t>(__builtin_ctz(taken));
        order.heap[order.n_heap++] =
            (uint64_t{ordered_bits(order.logits[token])} << 32) | static_cast<uint32_t>(~token);
      }
    }
    for (uint32_t i = order.n_heap / 2; i-- > 0;) sift_down(order.heap, order.n_heap, i);
  }
}

// The next token. REQUIRES that fewer than `vocab` were taken.
template <class I>
PLOW_DEVICE uint32_t next_token(TokenOrder& order) {
  if (order.n_heap == 0) fill_heap<I>(order);
  const uint32_t token = ~static_cast<uint32_t>(order.heap[0]);
  order.heap[0] = order.heap[--order.n_heap];
  if (order.n_heap > 0) sift_down(order.heap, order.n_heap, 0);
  return token;
}

PLOW_DEVICE void restart(TokenOrder& order) {
  order.n_heap = 0;
  order.bound = __builtin_inff();
  order.reach = 0;
}

// The weight of one token, with the bits that weight_sum adds.
template <class I>
PLOW_DEVICE float weight_of(const TokenOrder& order, uint32_t token) {
  const typename I::Vec distance = I::sub(I::set(order.logits[token]), I::set(order.largest));
  float lanes[16];
  I::store(lanes, exp<I>(I::div(distance, I::set(order.temperature))));
  return lanes[0];
}

// What the cuts leave: the first `count` tokens of the order, whose weights sum to `sum`.
struct Kept {
  uint32_t count;
  double sum;
};

template <class I>
PLOW_DEVICE Kept kept_tokens(TokenOrder& order, const SamplingParams& params) {
  const uint32_t most = params.top_k > 0 ? min_u32(params.top_k, order.vocab) : order.vocab;
  const bool nucleus = params.top_p < 1;
  if (most == order.vocab && !nucleus && params.min_p <= 0) {
    return {most, weight_sum<I>(order.logits, order.vocab, order.largest, order.temperature)};
  }
  double most_weight = __builtin_inf();
  if (nucleus) {
    double all = 0;
    if (most == order.vocab) {
      all = weight_sum<I>(order.logits, order.vocab, order.largest, order.temperature);
    } else {
      for (uint32_t i = 0; i < most; ++i)
        all += static_cast<double>(weight_of<I>(order, next_token<I>(order)));
      restart(order);
    }
    most_weight = static_cast<double>(params.top_p) * all;
  }
  Kept kept{0, 0};
  while (kept.count < most && (kept.count == 0 || kept.sum < most_weight)) {
    const float weight = weight_of<I>(order, next_token<I>(order));
    if (kept.count > 0 && weight < params.min_p) break;
    kept.sum += static_cast<double>(weight);
    ++kept.count;
  }
  restart(order);
  return kept;
}

template <class I>
PLOW_DEVICE uint32_t draw_token(TokenOrder& order, const SamplingParams& params, uint32_t position) {
  const Kept kept = kept_tokens<I>(order, params);
  const double threshold = static_cast<double>(sample_uniform(params.seed, position)) * kept.sum;
  double sum = 0;
  uint32_t token = 0;
  for (uint32_t i = 0; i < kept.count; ++i) {
    const uint32_t next = next_token<I>(order);
    const float weight = weight_of<I>(order, next);
    // The sums are rounded differently and may never pass the threshold: no token without weight is taken.
    if (i > 0 && weight <= 0) break;
    token = next;
    sum += static_cast<double>(weight);
    if (sum > threshold) break;
  }
  return token;
}

PLOW_DEVICE bool has_penalties(const SamplingParams& params) {
  return params.repetition_penalty != 1 || params.presence_penalty != 0 || params.frequency_penalty != 0;
}

// Whether the token that is picked is not simply the likeliest, or drawn from the model's own distribution.
PLOW_DEVICE bool changes_logits(const SamplingParams& params, uint32_t vocab) {
  return params.mask != nullptr || params.n_bias > 0 || pickable_ids(params, vocab) < vocab ||
         has_penalties(params);
}

// The `n` likeliest tokens of logits[0 .. vocab), by insertion; a Vec without a larger one than the last kept
// is passed over.
template <class I>
PLOW_DEVICE void tell_top(const float* logits, uint32_t vocab, double log_total, uint32_t n, Sampled* top) {
  uint32_t kept = 0;
  for (uint32_t c = 0; c < vocab; c += 16) {
    if (kept == n && I::mask_bits(I::less(I::set(logits[top[n - 1].token]), I::load(logits + c))) == 0)
      continue;
    for (uint32_t t = c; t < vocab && t < c + 16; ++t) {
      uint32_t at = kept < n ? kept++ : n;
      for (; at > 0 && logits[top[at - 1].token] < logits[t]; --at) {
        if (at < n) top[at] = top[at - 1];
      }
      if (at < n) top[at].token = t;
    }
  }
  for (uint32_t i = 0; i < kept; ++i) {
    top[i].logprob = static_cast<float>(static_cast<double>(logits[top[i].token]) - log_total);
  }
}

// One row. `history` holds the `n` tokens of its sequence; `top` has room for min(n_top, vocab).
template <class I>
PLOW_DEVICE Sampled sample_row(const SamplingParams& params, const float* row, uint32_t vocab,
                               const uint32_t* history, uint32_t n, Sampled* top, unsigned char* scratch) {
  float* logits = reinterpret_cast<float*>(scratch);
  uint64_t* heap = reinterpret_cast<uint64_t*>(logits + (vocab + 15) / 16 * 16);
  copy_logits<I>(row, vocab, logits);
  const float raw_largest = largest_of<I>(logits, vocab);
  if (raw_largest == -__builtin_inff()) return {0, -__builtin_inff()};
  const double log_sum = I::log(weight_sum<I>(logits, vocab, raw_largest, 1));
  if (params.n_top > 0) {
    const double log_total = static_cast<double>(raw_largest) + log_sum;
    tell_top<I>(logits, vocab, log_total, min_u32(params.n_top, vocab), top);
  }
  float largest = raw_largest;
  if ((params.flags & kSampleGiven) == 0 && changes_logits(params, vocab)) {
    for (uint32_t t = pickable_ids(params, vocab); t < vocab; ++t) logits[t] = -__builtin_inff();
    if (params.mask != nullptr) apply_mask(params.mask, vocab, logits);
    apply_bias(params, logits);
    if (has_penalties(params)) penalise(params, history, n, vocab, reinterpret_cast<uint32_t*>(heap), logits);
    largest = largest_of<I>(logits, vocab);
    if (largest == -__builtin_inff()) return {0, largest};
  }
  uint32_t token;
  if ((params.flags & kSampleGiven) != 0) {
    token = params.given;
  } else if ((params.flags & kSampleGreedy) != 0) {
    token = first_largest<I>(logits, vocab, largest);
  } else {
    TokenOrder order{logits, vocab, largest, params.temperature, heap, 0, __builtin_inff(), 0};
    token = draw_token<I>(order, params, n);
  }
  const float logit = row[token] == row[token] ? row[token] : -__builtin_inff();
  const double logprob = static_cast<double>(logit) - static_cast<double>(raw_largest) - log_sum;
  return {token, static_cast<float>(logprob)};
}

// pick(parameters, logits, vocab, history, its length, place of its likeliest tokens) -> Sampled, for each
// sampled row of the row tile.
template <class I, class F>
PLOW_DEVICE void for_sampled_rows(const BodyContext& ctx, const Packet& packet, uint32_t row_tile,
                                  const F& pick) {
  const TensorEntry& logits = operand(ctx, packet, 0);
  const StepDescriptor& step = *ctx.step;
  const Range rows = packet_rows(ctx, packet, row_tile);
  for (uint32_t s = rows.begin; s < rows.end; ++s) {
    const uint32_t row = step.sample_rows[s];
    const uint32_t* history = step.history + size_t{step.row_slots[row]} * ctx.device->history_stride;
    const SamplingParams& params = step.sampling[s];
    Sampled* top = params.top + size_t{ctx.step_index} * params.n_top;
    const Sampled sampled =
        pick(params, arena_row(ctx, logits, s), logits.cols, history, step.positions[row] + 1, top);
    if (I::thread() == 0) step.sampled[size_t{ctx.step_index} * step.n_samples + s] = sampled;
  }
}

template <class I>
PLOW_DEVICE void sample_body(const BodyContext& ctx, const Packet& packet, uint32_t row_tile) {
  for_sampled_rows<I>(ctx, packet, row_tile,
                      [&](const SamplingParams& params, const float* logits, uint32_t vocab,
                          const uint32_t* history, uint32_t n, Sampled* top) {
                        return sample_row<I>(params, logits, vocab, history, n, top, ctx.scratch);
                      });
}

}  // namespace plow::dev
