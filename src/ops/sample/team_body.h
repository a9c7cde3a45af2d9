// sample, for a team: a token for each sampled row, as ops/sample/sample.h defines it. Weights are floats,
// sums of weights doubles, added in an order that does not depend on timing.
//
// Greedy without mask and penalties is one pass over the logits. A draw weighs them in a second pass, which
// also counts the tokens within a few temperatures of the largest logit: where that prefix of the order holds
// the answer, as it does when the model is somewhat sure, it is brought into the team's memory and the order
// is made there, of those few. Else the answer is searched for in the whole row (search_team_body.h).
#pragma once

#include "ops/sample/search_team_body.h"

namespace plow::dev {

// Scratch of one row: logits as mask and penalties leave them; weights, or how often each token was seen.
constexpr uint64_t sample_team_scratch_bytes(uint32_t vocab) {
  const uint64_t padded = (uint64_t{vocab} + 3) / 4 * 4;
  return padded * 2 * sizeof(float);
}

// So that minus infinity is beyond every reach.
constexpr float kLowestNumber = -0x1.fffffep127f;

// Most tokens whose order is made in the team's memory, by comparing each with all.
constexpr uint32_t kMostCandidates = 1024;

// In the team's memory, after what reductions use.
struct Candidates {
  uint64_t keys[kMostCandidates];
  double before[kMostCandidates];  // weights of the earlier ones
  float weights[kMostCandidates];
  uint32_t ranks[kMostCandidates];  // how many are earlier; before that, how many each thread has
};
constexpr uint32_t sample_team_bytes() { return kReduceBytes + static_cast<uint32_t>(sizeof(Candidates)); }

// Prefixes of the order that a draw looks at.
constexpr uint32_t kReaches = 3;

// The tokens with logits of at least `bound`; the others weigh no more than `beyond`.
struct Reach {
  float bound, beyond;
  uint32_t own;  // of this thread's
  uint32_t count;
  double weight;
};
struct Weights {
  double all;
  Reach reach[kReaches];
};

// The weight e^((l - largest) / temperature) of a logit that is a number.
template <class B>
PLOW_DEVICE float token_weight(float logit, float largest, float temperature) {
  return exp<B>(B::div(B::sub(logit, largest), temperature));
}

template <class B>
PLOW_DEVICE Weights weigh(const TeamSample& row, float largest, float temperature) {
  static constexpr float kReach[kReaches] = {1.5f, 4, 12};  // temperatures
  constexpr float kRounding = 1 + 0x1p-20f;                 // of exp(), which is within 2^-22 of the value
  Weights weights{};
  PLOW_UNROLL
  for (uint32_t r = 0; r < kReaches; ++r) {
    Reach& reach = weights.reach[r];
    reach.bound = B::max(B::sub(largest, B::mul(kReach[r], temperature)), kLowestNumber);
    reach.beyond = B::mul(token_weight<B>(reach.bound, largest, temperature), kRounding);
  }
  each_batch<B>(row.logits, row.vocab, [&](uint32_t, const float(&x)[kBatch]) {
    float all = 0, within[kReaches] = {};
    PLOW_UNROLL
    for (uint32_t i = 0; i < kBatch; ++i) {
      const float logit = number(x[i]), weight = token_weight<B>(logit, largest, temperature);
      all = B::add(all, weight);
      PLOW_UNROLL
      for (uint32_t r = 0; r < kReaches; ++r) {
        if (logit < weights.reach[r].bound) continue;
        within[r] = B::add(within[r], weight);
        ++weights.reach[r].own;
      }
    }
    weights.all += static_cast<double>(all);
    PLOW_UNROLL
    for (uint32_t r = 0; r < kReaches; ++r) weights.reach[r].weight += static_cast<double>(within[r]);
  });
  weights.all = reduce_team<B>(weights.all, Sum{}, row.shared);
  PLOW_UNROLL
  for (uint32_t r = 0; r < kReaches; ++r) {
    Reach& reach = weights.reach[r];
    reach.weight = reduce_team<B>(reach.weight, Sum{}, row.shared);
    reach.count = reduce_team<B>(reach.own, Sum{}, row.shared);
  }
  return weights;
}

// Whether what the cuts leave, or at least the token that is drawn, is within the reach.
PLOW_DEVICE bool holds_answer(const SamplingParams& params, uint32_t vocab, const Reach& reach, double all,
                              float uniform) {
  if (reach.count > kMostCandidates) return false;
  if (reach.weight >= all) return true;  // the others weigh nothing
  if (params.top_k > 0 && params.top_k < vocab) return reach.count >= params.top_k;
  if (params.top_p < 1 && reach.weight >= static_cast<double>(params.top_p) * all) return true;
  if (params.min_p > reach.beyond) return true;
  return params.top_p >= 1 && params.min_p <= 0 && reach.weight > static_cast<double>(uniform) * all;
}

// Brings the tokens of the reach into the team's memory, thread by thread, each thread's by id.
template <class B>
PLOW_DEVICE void gather_candidates(const TeamSample& row, const Reach& reach, float largest,
                                   float temperature, Candidates& candidates) {
  static_assert(kMostCandidates % 4 == 0);
  candidates.ranks[B::thread()] = reach.own;
  if (B::thread() < 4 && reach.count + B::thread() < kMostCandidates) {  // up to a multiple of four
    candidates.keys[reach.count + B::thread()] = 0;
    candidates.weights[reach.count + B::thread()] = 0;
  }
  B::settle();
  uint32_t at = 0;
  PLOW_UNROLL_BY(1)
  for (uint32_t t = 0; t < B::thread(); t += 4) {
    const QuadOf<uint32_t> own = load_four(candidates.ranks + t, 4);
    PLOW_UNROLL
    for (uint32_t i = 0; i < 4; ++i) at += t + i < B::thread() ? own.value[i] : 0;
  }
  each_batch<B>(row.logits, row.vocab, [&](uint32_t first, const float(&x)[kBatch]) {
    PLOW_UNROLL
    for (uint32_t i = 0; i < kBatch; ++i) {
      if (!(x[i] >= reach.bound)) continue;  // as one that is not a number
      candidates.keys[at] = logit_key(row, x[i], batch_token<B>(first, i));
      candidates.weights[at] = token_weight<B>(x[i], largest, temperature);
      ++at;
    }
  });
  B::settle();
}

// How many candidates are earlier than each, and what those weigh together; of four sums side by side, each
// in the candidates' order, so that of two tokens the later one's is never smaller.
template <class B>
PLOW_DEVICE void rank_candidates(uint32_t n, Candidates& candidates) {
  PLOW_UNROLL_BY(1)
  for (uint32_t i = B::thread(); i < n; i += B::n_threads()) {
    const uint64_t key = candidates.keys[i];
    double before[4] = {};
    uint32_t rank = 0;
    PLOW_UNROLL_BY(1)
    for (uint32_t j = 0; j < n; j += 4) {
      PLOW_UNROLL
      for (uint32_t k = 0; k < 4; ++k) {
        if (candidates.keys[j + k] <= key) continue;
        before[k] += static_cast<double>(candidates.weights[j + k]);
        ++rank;
      }
    }
    candidates.before[i] = (before[0] + before[1]) + (before[2] + before[3]);
    candidates.ranks[i] = rank;
  }
}

// The token drawn with `uniform` among the n candidates; all tokens weigh `all`.
template <class B>
PLOW_DEVICE uint32_t drawn_candidate(const TeamSample& row, const SamplingParams& params, float uniform,
                                     double all, uint32_t n, const Candidates& candidates) {
  // The thread's own candidates, with what they and the earlier ones weigh.
  const auto each = [&](const auto& f) {
    PLOW_UNROLL_BY(1)
    for (uint32_t i = B::thread(); i < n; i += B::n_threads())
      f(i, candidates.before[i] + static_cast<double>(candidates.weights[i]));
  };
  const uint32_t top_k = params.top_k > 0 && params.top_k < row.vocab ? params.top_k : row.vocab;
  const auto weight_where = [&](const auto& kept) {
    double weight = 0;
    each([&](uint32_t i, double down_to) {
      if (kept(i) && down_to > weight) weight = down_to;
    });
    return reduce_team<B>(weight, Largest{}, row.shared);
  };
  double most = __builtin_inf();
  if (params.top_p < 1) {
    const double of =
        top_k < row.vocab ? weight_where([&](uint32_t i) { return candidates.ranks[i] < top_k; }) : all;
    most = static_cast<double>(params.top_p) * of;
  }
  const auto is_kept = [&](uint32_t i) {
    return candidates.ranks[i] == 0 || (candidates.ranks[i] < top_k && candidates.before[i] < most &&
                                        candidates.weights[i] >= params.min_p);
  };
  const bool cut = top_k < row.vocab || params.top_p < 1 || params.min_p > 0;
  const double threshold = static_cast<double>(uniform) * (cut ? weight_where(is_kept) : all);
  uint64_t drawn = 0, last = ~uint64_t{0};
  each([&](uint32_t i, double down_to) {
    if (!is_kept(i)) return;
    const uint64_t key = candidates.keys[i];
    if (down_to > threshold && key > drawn) drawn = key;
    if (key < last) last = key;
  });
  drawn = reduce_team<B>(drawn, Largest{}, row.shared);
  last = ~reduce_team<B>(~last, Largest{}, row.shared);
  return token_of(row, drawn != 0 ? drawn : last);  // rounding: the last that is left
}

template <class B>
PLOW_DEVICE uint32_t team_draw(const TeamSample& row, const SamplingParams& params, uint32_t position,
                               float largest) {
  const float uniform = sample_uniform(params.seed, position);
  const Weights weights = weigh<B>(row, largest, params.temperature);
  PLOW_UNROLL
  for (uint32_t r = 0; r < kReaches; ++r) {
    const Reach& reach = weights.reach[r];
    if (!holds_answer(params, row.vocab, reach, weights.all, uniform)) continue;
    Candidates& candidates = *reinterpret_cast<Candidates*>(row.shared + kReduceBytes);
    gather_candidates<B>(row, reach, largest, params.temperature, candidates);
    rank_candidates<B>(reach.count, candidates);
    return drawn_candidate<B>(row, params, uniform, weights.all, reach.count, candidates);
  }
  B::settle();
  each_batch<B>(row.logits, row.vocab, [&](uint32_t first, const float(&x)[kBatch]) {
    float weight[kBatch];
    PLOW_UNROLL
    for (uint32_t i = 0; i < kBatch; ++i)
      weight[i] = token_weight<B>(number(x[i]), largest, params.temperature);
    store_batch<B>(row.weights, row.vocab, first, weight);
  });
  B::settle();
  return search_token<B>(row, params, uniform, weights.all);
}

// The logits of the tokens that may be picked, as numbers; minus infinity for the others.
template <class B>
PLOW_DEVICE void copy_allowed(const float* from, const SamplingParams& params, uint32_t vocab, float* to) {
  const uint32_t ids = pickable_ids(params, vocab);
  each_batch<B>(from, vocab, [&](uint32_t first, const float(&x)[kBatch]) {
    float allowed[kBatch];
    PLOW_UNROLL
    for (uint32_t i = 0; i < kBatch; ++i) {
      const uint32_t token = batch_token<B>(first, i);
      const bool allows = token < ids && (params.mask == nullptr || mask_allows(params.mask, token));
      allowed[i] = allows ? number(x[i]) : -__builtin_inff();
    }
    store_batch<B>(to, vocab, first, allowed);
  });
}

// The n likeliest tokens, one after the other: each is the first in the order behind the one before.
template <class B>
PLOW_DEVICE_CALL void team_tell_top(const TeamSample& row, double log_total, uint32_t n, Sampled* top) {
  uint64_t before = ~uint64_t{0};
  PLOW_UNROLL_BY(1)
  for (uint32_t i = 0; i < n; ++i) {
    uint64_t best = 0;
    each_batch<B>(row.logits, row.vocab, [&](uint32_t first, const float(&x)[kBatch]) {
      PLOW_UNROLL
      for (uint32_t j = 0; j < kBatch; ++j) {
        const uint32_t token = batch_token<B>(first, j);
        const uint64_t own = token < row.vocab ? logit_key(row, x[j], token) : 0;
        if (own < before && own > best) best = own;
      }
    });
    before = reduce_team<B>(best, Largest{}, row.shared);
    const uint32_t token = token_of(row, before);
    if (B::thread() == 0)
      top[i] = {token, static_cast<float>(static_cast<double>(number(row.logits[token])) - log_total)};
  }
}

// Penalties as in penalise(), by the whole team. `seen` is a word a token.
template <class B>
PLOW_DEVICE void team_penalise(const SamplingParams& params, const uint32_t* history, uint32_t n,
                               uint32_t vocab, uint32_t* seen, float* logits) {
  constexpr uint32_t kSeen = 0x80000000u;  // the rest counts how often it was in the answer
  PLOW_UNROLL_BY(1)
  for (uint32_t four = B::thread(); 4 * four < vocab; four += B::n_threads())
    store_four(seen + 4 * four, QuadOf<uint32_t>{}, 4);
  B::settle();
  PLOW_UNROLL_BY(1)
  for (uint32_t i = B::thread(); i < n; i += B::n_threads()) {
    if (history[i] >= vocab) continue;
    B::or_relaxed(&seen[history[i]], kSeen);
    if (i >= params.prompt_tokens) B::add_relaxed(&seen[history[i]], 1);
  }
  B::settle();
  const auto penalised = [&](float logit, uint32_t times) {
    logit = logit > 0 ? B::div(logit, params.repetition_penalty) : B::mul(logit, params.repetition_penalty);
    const uint32_t count = times & ~kSeen;
    if (count == 0) return logit;
    return B::sub(
        logit, B::add(B::mul(params.frequency_penalty, static_cast<float>(count)), params.presence_penalty));
  };
  constexpr uint32_t kAtOnce = 8;
  each_piece<B, kAtOnce>(
      1, ceil_div(vocab, 4), [&](uint32_t, uint32_t four) { return load_four(seen + 4 * four, 4); },
      [&](uint32_t, uint32_t four, const QuadOf<uint32_t>& times) {
        PLOW_UNROLL
        for (uint32_t i = 0; i < 4; ++i) {
          if (times.value[i] == 0) continue;
          float& logit = logits[4 * four + i];
          logit = penalised(logit, times.value[i]);
        }
      });
  B::settle();
}

// Step 0 of sample.h, and the penalties: to `own`.
template <class B>
PLOW_DEVICE void team_change_logits(const TeamSample& row, const float* from, const SamplingParams& params,
                                    const uint32_t* history, uint32_t n, float* own) {
  copy_allowed<B>(from, params, row.vocab, own);
  B::settle();
  PLOW_UNROLL_BY(1)
  for (uint32_t i = B::thread(); i < params.n_bias; i += B::n_threads()) {
    float& logit = own[params.bias[i].token];
    logit = B::add(logit, params.bias[i].bias);
  }
  B::settle();
  if (has_penalties(params))
    team_penalise<B>(params, history, n, row.vocab, reinterpret_cast<uint32_t*>(row.weights), own);
}

template <class B>
PLOW_DEVICE Sampled team_sample_row(const SamplingParams& params, const float* from, uint32_t vocab,
                                    const uint32_t* history, uint32_t n, Sampled* top, unsigned char* scratch,
                                    unsigned char* shared) {
  const LogitStats raw = logit_stats<B>(from, vocab, shared);
  if (raw.largest == -__builtin_inff()) return {0, raw.largest};
  float* own = reinterpret_cast<float*>(scratch);
  TeamSample row{from, own + ceil_div(vocab, 4) * 4, vocab, 1, shared};
  while ((vocab - 1) >> row.id_bits != 0) ++row.id_bits;
  const double log_total = static_cast<double>(raw.largest) + B::log(raw.sum);
  if (params.n_top > 0) team_tell_top<B>(row, log_total, min_u32(params.n_top, vocab), top);
  const bool given = (params.flags & kSampleGiven) != 0, greedy = (params.flags & kSampleGreedy) != 0;
  LogitStats stats = raw;
  if (!given && changes_logits(params, vocab)) {
    team_change_logits<B>(row, from, params, history, n, own);
    row.logits = own;
    stats = logit_stats<B>(own, vocab, shared);
    if (stats.largest == -__builtin_inff()) return {0, stats.largest};
  }
  const uint32_t token = given    ? params.given
                         : greedy ? first_token<B>(row.logits, vocab, stats, shared)
                                  : team_draw<B>(row, params, n, stats.largest);
  const double logprob =
      static_cast<double>(number(from[token])) - static_cast<double>(raw.largest) - B::log(raw.sum);
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
