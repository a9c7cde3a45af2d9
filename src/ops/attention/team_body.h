// attention, for a team, over Layout::kKvRows: softmax(q k^T) v, causal, optionally in a window, with the
// query heads of a KV head sharing the pass over K and V, four at a time.
//
// Positions are taken in units of 64 that are aligned to multiples of 64; unit u belongs to wave u mod
// n_waves, which keeps a running maximum, sum and output (online softmax, Milakov and Gimelshein 2018); the
// waves' results are merged in the order of the waves. So a query's bits depend on its position and window
// only.
#pragma once

#include "interp/team.h"
#include "interp/vector_math.h"
#include "ops/soft_cap/body.h"

namespace plow::dev {

constexpr uint32_t kTeamUnit = 64;    // positions
constexpr uint32_t kTeamQueries = 4;  // heads that share a pass
constexpr uint32_t kLaneColumns = 8;  // of V and of the output, that a lane holds
constexpr uint32_t kScoreLanes = 4;   // that share the score of a position
static_assert(kScoreLanes == kTeamQueries, "each of them writes one head's score");

// The team's memory: queries, then a wave's weights, then its results.
constexpr uint32_t attention_team_bytes(uint32_t head_dim, uint32_t lanes, uint32_t waves) {
  const uint32_t passes = (head_dim + kLaneColumns * lanes - 1) / (kLaneColumns * lanes);
  const uint32_t floats = kTeamQueries * head_dim + waves * kTeamQueries * kTeamUnit +
                          waves * kTeamQueries * 2 + waves * passes * kTeamQueries * kLaneColumns * lanes;
  return floats * static_cast<uint32_t>(sizeof(float));
}

struct TeamAttention {
  const BodyContext* ctx;
  const TensorEntry* cache;
  uint32_t slot, kv_head, head_dim;
  Range positions;  // that the query attends to
  float scale, softcap;
  uint32_t n_queries;  // 1 .. kTeamQueries
  float* q;            // [kTeamQueries][head_dim]
  float* weights;      // of this wave: [kTeamQueries][kTeamUnit]
};

// Where K of the KV head begins in the block of `position`; V follows it.
template <class T>
PLOW_DEVICE const T* team_head_block(const TeamAttention& pass, uint32_t position) {
  const unsigned char* block = kv_block(*pass.ctx, *pass.cache, pass.slot, position);
  return reinterpret_cast<const T*>(block) + size_t{2} * pass.kv_head * pass.head_dim * kTeamUnit;
}

// Columns [column, column + 8) of a row of the cache; those from head_dim on are 0.
template <class T>
PLOW_DEVICE void load_columns(const T* row, uint32_t column, uint32_t head_dim, float (&out)[kLaneColumns]) {
  if (head_dim % kLaneColumns == 0) {
    struct alignas(16) Eight {
      T value[16 / sizeof(T)];
    };
    const auto* from = reinterpret_cast<const Eight*>(row + column);
    PLOW_UNROLL
    for (uint32_t part = 0; part < kLaneColumns * sizeof(T) / 16; ++part) {
      const Eight unit = from[part];
      PLOW_UNROLL
      for (uint32_t i = 0; i < 16 / sizeof(T); ++i)
        out[part * (16 / sizeof(T)) + i] = to_float(unit.value[i]);
    }
  } else {
    PLOW_UNROLL
    for (uint32_t i = 0; i < kLaneColumns; ++i)
      out[i] = column + i < head_dim ? to_float(row[column + i]) : 0.0f;
  }
}

// The scores of a unit, before scale, into the wave's weights.
template <class B, class T>
PLOW_DEVICE void score_unit(const TeamAttention& pass, uint32_t base, const T* keys) {
  const uint32_t part = lane<B>() % kScoreLanes;
  PLOW_UNROLL_BY(2)
  for (uint32_t first = 0; first < kTeamUnit; first += B::kLanes / kScoreLanes) {
    const uint32_t in_unit = first + lane<B>() / kScoreLanes, position = base + in_unit;
    float score[kTeamQueries] = {};
    if (position >= pass.positions.begin && position < pass.positions.end) {
      const T* row = keys + size_t{in_unit} * pass.head_dim;
      PLOW_UNROLL_BY(4)
      for (uint32_t c = part * kLaneColumns; c < pass.head_dim; c += kScoreLanes * kLaneColumns) {
        float k[kLaneColumns];
        load_columns(row, c, pass.head_dim, k);
        PLOW_UNROLL
        for (uint32_t g = 0; g < kTeamQueries; ++g) {
          const float* q = pass.q + g * pass.head_dim + c;
          PLOW_UNROLL
          for (uint32_t i = 0; i < kLaneColumns; ++i) {
            if (c + i < pass.head_dim) score[g] = B::fma(q[i], k[i], score[g]);
          }
        }
      }
    }
    PLOW_UNROLL
    for (uint32_t g = 0; g < kTeamQueries; ++g) {
      score[g] = reduce_lanes<B>(score[g], kScoreLanes, Sum{});
      if (g == part) pass.weights[g * kTeamUnit + in_unit] = score[g];
    }
  }
  B::settle_wave();
}

// Scores become weights; `maximum` and `sum` are brought up to date. Returns the factor by which what was
// added before must be multiplied.
template <class B>
PLOW_DEVICE float softmax_query(const TeamAttention& pass, uint32_t base, float* weights, float& maximum,
                                float& sum) {
  float score[kTeamUnit / B::kLanes], largest = -__builtin_inff();
  PLOW_UNROLL
  for (uint32_t i = 0; i * B::kLanes < kTeamUnit; ++i) {
    const uint32_t in_unit = i * B::kLanes + lane<B>(), position = base + in_unit;
    float x = B::mul(weights[in_unit], pass.scale);
    if (pass.softcap > 0) x = soft_capped<B>(x, pass.softcap);
    const bool seen = position >= pass.positions.begin && position < pass.positions.end;
    score[i] = seen ? x : -__builtin_inff();
    largest = B::max(largest, score[i]);
  }
  largest = B::max(maximum, reduce_lanes<B>(largest, B::kLanes, Largest{}));
  float total = 0;
  PLOW_UNROLL
  for (uint32_t i = 0; i * B::kLanes < kTeamUnit; ++i) {
    const float weight = exp<B>(B::sub(score[i], largest));
    weights[i * B::kLanes + lane<B>()] = weight;
    total = B::add(total, weight);
  }
  const float factor = exp<B>(B::sub(maximum, largest));  // 0 the first time
  sum = B::fma(sum, factor, reduce_lanes<B>(total, B::kLanes, Sum{}));
  maximum = largest;
  return factor;
}

// How the lanes of a wave share the columns of V: `per_row` lanes a row, `rows` rows at once.
struct ValueLanes {
  uint32_t per_row, rows, row, column;
  bool active;
};
template <class B>
PLOW_DEVICE ValueLanes value_lanes(uint32_t head_dim) {
  const uint32_t per_row = min_u32(ceil_div(head_dim, kLaneColumns), B::kLanes), rows = B::kLanes / per_row;
  return {per_row, rows, lane<B>() / per_row, lane<B>() % per_row * kLaneColumns, lane<B>() < per_row * rows};
}

// One wave's part of a query group: its units, then its results in `out` [kPasses][lanes][kTeamQueries][8]
// and `statistics` [kTeamQueries][2].
template <class B, class T, uint32_t kPasses>
PLOW_DEVICE void attend_wave(const TeamAttention& pass, float* out, float* statistics) {
  float maximum[kTeamQueries], sum[kTeamQueries], acc[kPasses][kTeamQueries][kLaneColumns] = {};
  PLOW_UNROLL
  for (uint32_t g = 0; g < kTeamQueries; ++g) maximum[g] = -__builtin_inff(), sum[g] = 0;
  const ValueLanes lanes = value_lanes<B>(pass.head_dim);
  const uint32_t first = pass.positions.begin / kTeamUnit, end = ceil_div(pass.positions.end, kTeamUnit);
  const uint32_t waves = n_waves<B>();
  for (uint32_t unit = first + (wave<B>() + waves - first % waves) % waves; unit < end; unit += waves) {
    const uint32_t base = unit * kTeamUnit;
    const T* keys = team_head_block<T>(pass, base);
    const T* values = keys + size_t{pass.head_dim} * kTeamUnit;
    score_unit<B>(pass, base, keys);
    PLOW_UNROLL
    for (uint32_t g = 0; g < kTeamQueries; ++g) {
      const float factor = softmax_query<B>(pass, base, pass.weights + g * kTeamUnit, maximum[g], sum[g]);
      PLOW_UNROLL
      for (uint32_t p = 0; p < kPasses; ++p) {
        PLOW_UNROLL
        for (uint32_t i = 0; i < kLaneColumns; ++i) acc[p][g][i] = B::mul(acc[p][g][i], factor);
      }
    }
    B::settle_wave();
    const uint32_t begin = max_u32(pass.positions.begin, base) - base;
    const uint32_t last = min_u32(pass.positions.end - base, kTeamUnit);
    if (lanes.active) {
      PLOW_UNROLL_BY(4)
      for (uint32_t t = begin + (lanes.row + lanes.rows - begin % lanes.rows) % lanes.rows; t < last;
           t += lanes.rows) {
        PLOW_UNROLL
        for (uint32_t p = 0; p < kPasses; ++p) {
          const uint32_t column = lanes.column + p * kLaneColumns * B::kLanes;
          if (kPasses > 1 && column >= pass.head_dim) continue;
          float v[kLaneColumns];
          load_columns(values + size_t{t} * pass.head_dim, column, pass.head_dim, v);
          PLOW_UNROLL
          for (uint32_t g = 0; g < kTeamQueries; ++g) {
            const float weight = pass.weights[g * kTeamUnit + t];
            PLOW_UNROLL
            for (uint32_t i = 0; i < kLaneColumns; ++i) acc[p][g][i] = B::fma(weight, v[i], acc[p][g][i]);
          }
        }
      }
    }
    B::settle_wave();
  }
  PLOW_UNROLL
  for (uint32_t g = 0; g < kTeamQueries; ++g) {
    if (lane<B>() == g) {
      statistics[2 * g] = maximum[g];
      statistics[2 * g + 1] = sum[g];
    }
    PLOW_UNROLL
    for (uint32_t p = 0; p < kPasses; ++p) {
      PLOW_UNROLL
      for (uint32_t i = 0; i < kLaneColumns; ++i)
        out[((p * B::kLanes + lane<B>()) * kTeamQueries + g) * kLaneColumns + i] = acc[p][g][i];
    }
  }
}

// Column `c` of query `g` of all waves.
template <class B>
PLOW_DEVICE float merged(const TeamAttention& pass, const float* out, const float* statistics,
                         uint32_t wave_floats, uint32_t g, uint32_t c) {
  const ValueLanes lanes = value_lanes<B>(pass.head_dim);
  float largest = -__builtin_inff();
  for (uint32_t w = 0; w < n_waves<B>(); ++w)
    largest = B::max(largest, statistics[(w * kTeamQueries + g) * 2]);
  const uint32_t per_pass = kLaneColumns * B::kLanes, p = c / per_pass, in_pass = c % per_pass;
  float sum = 0, value = 0;
  for (uint32_t w = 0; w < n_waves<B>(); ++w) {
    const float* of_wave = statistics + (w * kTeamQueries + g) * 2;
    if (of_wave[0] == -__builtin_inff()) continue;  // it had no unit
    const float factor = exp<B>(B::sub(of_wave[0], largest));
    float part = 0;
    for (uint32_t row = 0; row < lanes.rows; ++row) {
      const uint32_t l = p * B::kLanes + row * lanes.per_row + in_pass / kLaneColumns;
      part = B::add(part, out[w * wave_floats + (l * kTeamQueries + g) * kLaneColumns + c % kLaneColumns]);
    }
    sum = B::fma(of_wave[1], factor, sum);
    value = B::fma(part, factor, value);
  }
  return B::div(value, sum);
}

// Query heads [first, first + pass.n_queries) of one row: q and out point to the first.
template <class B, class T, uint32_t kPasses>
PLOW_DEVICE void attend_queries(TeamAttention& pass, const float* q, float* out) {
  const uint32_t d = pass.head_dim, wave_floats = kPasses * B::kLanes * kTeamQueries * kLaneColumns;
  float* results = pass.q + kTeamQueries * d;
  float* statistics = results + n_waves<B>() * kTeamQueries * kTeamUnit;
  float* outputs = statistics + n_waves<B>() * kTeamQueries * 2;
  pass.weights = results + wave<B>() * kTeamQueries * kTeamUnit;
  for (uint32_t i = B::thread(); i < kTeamQueries * d; i += B::n_threads())
    pass.q[i] = i < pass.n_queries * d ? q[i] : 0.0f;
  B::settle();
  attend_wave<B, T, kPasses>(pass, outputs + wave<B>() * wave_floats,
                             statistics + wave<B>() * kTeamQueries * 2);
  B::settle();
  for (uint32_t i = B::thread(); i < pass.n_queries * d; i += B::n_threads())
    out[i] = merged<B>(pass, outputs, statistics, wave_floats, i / d, i % d);
  B::settle();
}

template <class B, class T>
PLOW_DEVICE void attention_of(const BodyContext& ctx, const Packet& packet, uint32_t row_tile) {
  const TensorEntry &q = operand(ctx, packet, 0), &cache = operand(ctx, packet, 1),
                    &out = operand(ctx, packet, 2);
  const uint32_t group = q.cols / cache.cols, window = packet.immediate[1];
  TeamAttention pass{};
  pass.ctx = &ctx;
  pass.cache = &cache;
  pass.head_dim = packet.immediate[0];
  pass.scale = immediate_f32(packet, 2);
  pass.softcap = immediate_f32(packet, 3);
  pass.q = reinterpret_cast<float*>(ctx.shared);
  const uint32_t heads_cols = group * pass.head_dim;
  const Range rows = packet_rows(ctx, packet, row_tile);
  for (uint32_t row = rows.begin; row < rows.end; ++row) {
    const uint32_t position = ctx.step->positions[row];
    pass.slot = ctx.step->row_slots[row];
    pass.positions = {window != 0 && position + 1 > window ? position + 1 - window : 0, position + 1};
    for_columns(packet, out.cols, [&](uint32_t begin, uint32_t end) {
      for (uint32_t column = begin; column < end; column += heads_cols) {
        pass.kv_head = column / heads_cols;
        for (uint32_t g = 0; g < group; g += kTeamQueries) {
          pass.n_queries = min_u32(kTeamQueries, group - g);
          const uint32_t c = column + g * pass.head_dim;
          const float* from = arena_row(ctx, q, row) + c;
          float* to = arena_row(ctx, out, row) + c;
          if (pass.head_dim <= kLaneColumns * B::kLanes) {
            attend_queries<B, T, 1>(pass, from, to);
          } else {
            attend_queries<B, T, 2>(pass, from, to);
          }
        }
      }
    });
  }
}

template <class B>
PLOW_DEVICE_BODY void attention_team_body(const BodyContext& ctx, const Packet& packet, uint32_t row_tile) {
  if (operand(ctx, packet, 1).dtype == DType::kBf16) {
    attention_of<B, Bf16>(ctx, packet, row_tile);
  } else {
    attention_of<B, float>(ctx, packet, row_tile);
  }
}

}  // namespace plow::dev
