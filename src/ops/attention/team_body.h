// attention and attention_part, for a team, over Layout::kKvRows: softmax(q k^T) v, causal, optionally in a
// window, with the query heads of a KV head sharing the pass over K and V, four at a time.
//
// The positions of a row (or of a part of them) are shared out over the waves, an equal run each. A wave
// takes some at once: all their keys and values are under way before the first is used, and the next keys are
// asked for when these have given their scores. It keeps a running maximum, sum and output (online softmax,
// Milakov and Gimelshein 2018); the waves' results are merged in the order of the waves. So a query's bits
// depend on its position, window and parts only.
#pragma once

#include "abi/attention_parts.h"
#include "interp/team.h"
#include "interp/vector_math.h"
#include "ops/attention/matrix_pass.h"
#include "ops/soft_cap/body.h"

namespace plow::dev {

constexpr uint32_t kTeamQueries = 4;  // heads that share a pass
constexpr uint32_t kLaneColumns = 8;  // of a key or value, that a lane holds
constexpr uint32_t kLaneUnits = 4;  // of 16 bytes, of keys, and as many of values, that a lane has under way
constexpr uint32_t kTeamHeadDim = 512;  // most columns of a head,
// and of one whose columns are no multiple of kLaneColumns, or whose cache is f32 (registers hold no more)
constexpr uint32_t kTeamNarrowHeadDim = 256;
// Lanes that share a row of a head are at least the queries: each of four ends up with one query's score.
constexpr uint32_t most_rows_at_once(uint32_t lanes) { return kLaneUnits * lanes / kTeamQueries; }
// Of a wave: how often its lanes' columns go into a head.
constexpr uint32_t most_passes(uint32_t lanes) {
  return (kTeamHeadDim + kLaneColumns * lanes - 1) / (kLaneColumns * lanes);
}
// Waves of the largest team, of 256 threads.
constexpr uint32_t kMostWaves = 8;
// From a lane's result to the same lane's next one: eight lanes' neighbouring results lie in different banks,
// written lane by lane and read column by column.
constexpr uint32_t result_stride(uint32_t lanes) { return lanes + 4; }

struct alignas(16) RowUnit {
  uint32_t words[4];
};
// A number for each query of a pass.
struct alignas(16) OfQueries {
  float of[kTeamQueries];
};

// What a wave hands to the team.
struct WaveResult {
  float maximum[kTeamQueries], sum[kTeamQueries];
  float factor[kTeamQueries];  // by which its outputs are to be multiplied
};
struct TeamResult {
  float maximum[kTeamQueries];
};

// The team's memory: weights of the waves, their results, the team's, the waves' outputs.
constexpr uint32_t attention_team_bytes(uint32_t lanes, uint32_t waves) {
  const uint32_t weights = (most_rows_at_once(lanes) + 1) * static_cast<uint32_t>(sizeof(OfQueries));
  const uint32_t outputs = most_passes(lanes) * kTeamQueries * kLaneColumns * result_stride(lanes) *
                           static_cast<uint32_t>(sizeof(float));
  return waves * (weights + outputs + static_cast<uint32_t>(sizeof(WaveResult))) +
         static_cast<uint32_t>(sizeof(TeamResult));
}

// Some query heads of one row, and where the keys of their KV head are.
struct TeamAttention {
  const float* q;      // [n_queries][head_dim]
  uint32_t n_queries;  // 1 .. kTeamQueries
  uint32_t head_dim;
  const unsigned char* head;  // K of the KV head in block 0
  uint64_t block_bytes;
  const uint32_t* blocks;  // of the row's slot, by unit of positions
  PositionRange positions;
  float scale, softcap;
  unsigned char* shared;  // the team's memory, as TeamPlaces says
};

// Where the parts of the team's memory are: made of its beginning when they are needed, since registers are
// short.
template <class B>
struct TeamPlaces {
  static constexpr uint32_t kWeights = most_rows_at_once(B::kLanes) + 1;

  // Of this wave: one a row at once, then the factor.
  PLOW_DEVICE_MEMBER static OfQueries* weights(const TeamAttention& pass) {
    return reinterpret_cast<OfQueries*>(pass.shared) + wave<B>() * kWeights;
  }
  PLOW_DEVICE_MEMBER static WaveResult* waves(const TeamAttention& pass) {
    return reinterpret_cast<WaveResult*>(reinterpret_cast<OfQueries*>(pass.shared) + n_waves<B>() * kWeights);
  }
  PLOW_DEVICE_MEMBER static TeamResult* team(const TeamAttention& pass) {
    return reinterpret_cast<TeamResult*>(waves(pass) + n_waves<B>());
  }
  // [wave][pass][query][column of the lane][result_stride]
  PLOW_DEVICE_MEMBER static float* outputs(const TeamAttention& pass) {
    return reinterpret_cast<float*>(team(pass) + 1);
  }
};

// How the lanes of a wave share rows of keys and values: `per_row` lanes, a power of two, a row, `rows` rows
// at once.
struct HeadLanes {
  uint32_t per_row, rows, row, column;
};
template <class B>
PLOW_DEVICE HeadLanes head_lanes(uint32_t head_dim) {
  uint32_t per_row = kTeamQueries;
  while (per_row < B::kLanes && per_row * kLaneColumns < head_dim) per_row *= 2;
  return {per_row, B::kLanes / per_row, lane<B>() / per_row, lane<B>() % per_row * kLaneColumns};
}

PLOW_DEVICE uint32_t raw_bits(Bf16 value) { return value.bits; }
PLOW_DEVICE uint32_t raw_bits(float value) {
  uint32_t bits;
  __builtin_memcpy(&bits, &value, sizeof(bits));
  return bits;
}

// A lane's columns of a row of keys or values, as they lie.
template <class T>
struct LaneRow {
  uint32_t words[kLaneColumns * sizeof(T) / sizeof(uint32_t)];

  PLOW_DEVICE_MEMBER float value(uint32_t i) const {
    if constexpr (sizeof(T) == sizeof(float)) return bits_to<float>(words[i]);
    return bits_to<float>(i % 2 == 0 ? words[i / 2] << 16 : words[i / 2] & 0xffff0000u);
  }
};

// Those from `column` on. Of columns beyond the head it has others instead, which count for nothing: queries
// have 0 there. kWhole: the head's columns are a multiple of kLaneColumns.
template <class T, bool kWhole>
PLOW_DEVICE LaneRow<T> load_row(const T* row, uint32_t column, uint32_t head_dim) {
  LaneRow<T> out;
  if constexpr (kWhole) {
    const auto* from = reinterpret_cast<const RowUnit*>(row + min_u32(column, head_dim - kLaneColumns));
    PLOW_UNROLL
    for (uint32_t u = 0; u < sizeof(T) / 2; ++u) {
      const RowUnit unit = from[u];
      PLOW_UNROLL
      for (uint32_t i = 0; i < 4; ++i) out.words[4 * u + i] = unit.words[i];
    }
  } else {
    constexpr uint32_t kInWord = sizeof(uint32_t) / sizeof(T);
    PLOW_UNROLL
    for (uint32_t i = 0; i < kLaneColumns; ++i) {
      const uint32_t bits = raw_bits(row[min_u32(column + i, head_dim - 1)]);
      if (i % kInWord == 0) {
        out.words[i / kInWord] = bits;
      } else {
        out.words[i / kInWord] |= bits << 16;
      }
    }
  }
  return out;
}

// A lane's columns of the queries; 0 beyond the head and of queries that are not there.
template <class B, uint32_t kPasses, bool kWhole>
PLOW_DEVICE void load_queries(const TeamAttention& pass, uint32_t column,
                              float (&q)[kPasses][kTeamQueries][kLaneColumns]) {
  PLOW_UNROLL
  for (uint32_t p = 0; p < kPasses; ++p) {
    const uint32_t c = column + p * kLaneColumns * B::kLanes;
    PLOW_UNROLL
    for (uint32_t g = 0; g < kTeamQueries; ++g) {
      const float* from = pass.q + min_u32(g, pass.n_queries - 1) * pass.head_dim;
      const LaneRow<float> row = load_row<float, kWhole>(from, c, pass.head_dim);
      PLOW_UNROLL
      for (uint32_t i = 0; i < kLaneColumns; ++i)
        q[p][g][i] = g < pass.n_queries && c + i < pass.head_dim ? row.value(i) : 0.0f;
    }
  }
}

// Sums of the lanes of a row: each lane gets that of query lane % 4.
template <class B>
PLOW_DEVICE float sum_of_row(const float (&s)[kTeamQueries], uint32_t per_row) {
  const bool odd = lane<B>() % 2 != 0, high = lane<B>() % 4 >= 2;
  const float low_pair = B::add(odd ? s[1] : s[0], B::lane_xor(odd ? s[0] : s[1], 1));
  const float high_pair = B::add(odd ? s[3] : s[2], B::lane_xor(odd ? s[2] : s[3], 1));
  float own = B::add(high ? high_pair : low_pair, B::lane_xor(high ? low_pair : high_pair, 2));
  PLOW_UNROLL_BY(1)
  for (uint32_t mask = kTeamQueries; mask < per_row; mask *= 2) own = B::add(own, B::lane_xor(own, mask));
  return own;
}

// The rows that a wave takes at once: kSteps times as many as its lanes hold.
template <class B, class T, uint32_t kPasses, bool kWhole>
struct WaveRows {
  // Of heads that a wave goes through twice, or element by element, one at a time: queries, outputs and these
  // are held in registers.
  static constexpr uint32_t kSteps = kPasses == 1 && kWhole
                                         ? kLaneUnits * static_cast<uint32_t>(sizeof(RowUnit)) /
                                               (kLaneColumns * static_cast<uint32_t>(sizeof(T)))
                                         : 1;
  uint32_t n_steps;  // that have a position
  const T* keys_at[kSteps];
  LaneRow<T> keys[kSteps][kPasses], values[kSteps][kPasses];

  // Those from position `first` on; a lane whose position is not below `end` has the last one's.
  PLOW_DEVICE_MEMBER void load_keys(const TeamAttention& pass, const HeadLanes& lanes, uint32_t first,
                                    uint32_t end) {
    n_steps = min_u32(kSteps, ceil_div(end - first, lanes.rows));
    PLOW_UNROLL
    for (uint32_t i = 0; i < kSteps; ++i) {
      if (i >= n_steps) break;
      const uint32_t position = min_u32(first + i * lanes.rows + lanes.row, end - 1);
      const unsigned char* block = pass.head + pass.blocks[position / kAttentionUnit] * pass.block_bytes;
      keys_at[i] = reinterpret_cast<const T*>(block) + position % kAttentionUnit * pass.head_dim;
    }
    load(pass, lanes, 0, keys);
  }
  // Of the same rows: they lie behind the keys of the block.
  PLOW_DEVICE_MEMBER void load_values(const TeamAttention& pass, const HeadLanes& lanes) {
    load(pass, lanes, kAttentionUnit * pass.head_dim, values);
  }

 private:
  PLOW_DEVICE_MEMBER void load(const TeamAttention& pass, const HeadLanes& lanes, uint32_t offset,
                               LaneRow<T> (&to)[kSteps][kPasses]) {
    PLOW_UNROLL
    for (uint32_t i = 0; i < kSteps; ++i) {
      if (i >= n_steps) break;
      PLOW_UNROLL
      for (uint32_t p = 0; p < kPasses; ++p)
        to[i][p] = load_row<T, kWhole>(keys_at[i] + offset, lanes.column + p * kLaneColumns * B::kLanes,
                                       pass.head_dim);
    }
  }
};

// One wave's share of the positions, which is not empty: its outputs and its result.
template <class B, class T, uint32_t kPasses, bool kWhole>
PLOW_DEVICE void attend_share(const TeamAttention& pass, PositionRange share) {
  using Rows = WaveRows<B, T, kPasses, kWhole>;
  constexpr bool kAhead = kPasses == 1;  // else there are no registers for the next keys beside these values
  const HeadLanes lanes = head_lanes<B>(pass.head_dim);
  const uint32_t rows_at_once = Rows::kSteps * lanes.rows, in_row = lane<B>() % lanes.per_row;
  float q[kPasses][kTeamQueries][kLaneColumns], acc[kPasses][kTeamQueries][kLaneColumns] = {};
  load_queries<B, kPasses, kWhole>(pass, lanes.column, q);
  Rows rows{};  // what has no position is never used
  rows.load_keys(pass, lanes, share.begin, share.end);
  rows.load_values(pass, lanes);
  // Of query lane % 4: the maximum of the wave, the sum of this row of lanes.
  float maximum = -__builtin_inff(), sum = 0;
  PLOW_UNROLL_BY(1)
  for (uint32_t base = share.begin; base < share.end; base += rows_at_once) {
    const uint32_t n_steps = rows.n_steps;
    float score[Rows::kSteps] = {}, largest = maximum;
    PLOW_UNROLL
    for (uint32_t i = 0; i < Rows::kSteps; ++i) {
      if (i >= n_steps) break;
      float s[kTeamQueries] = {};
      PLOW_UNROLL
      for (uint32_t p = 0; p < kPasses; ++p) {
        PLOW_UNROLL
        for (uint32_t c = 0; c < kLaneColumns; ++c) {
          const float k = rows.keys[i][p].value(c);
          PLOW_UNROLL
          for (uint32_t g = 0; g < kTeamQueries; ++g) s[g] = B::fma(q[p][g][c], k, s[g]);
        }
      }
      score[i] = sum_of_row<B>(s, lanes.per_row);
    }
    const bool more = base + rows_at_once < share.end;
    if (kAhead && more) rows.load_keys(pass, lanes, base + rows_at_once, share.end);
    PLOW_UNROLL
    for (uint32_t i = 0; i < Rows::kSteps; ++i) {
      if (i >= n_steps) break;
      float x = B::mul(score[i], pass.scale);
      if (pass.softcap > 0) x = soft_capped<B>(x, pass.softcap);
      score[i] = base + i * lanes.rows + lanes.row < share.end ? x : -__builtin_inff();
      largest = B::max(largest, score[i]);
    }
    PLOW_UNROLL_BY(1)
    for (uint32_t mask = lanes.per_row; mask < B::kLanes; mask *= 2)
      largest = B::max(largest, B::lane_xor(largest, mask));
    const float factor = exp<B>(B::sub(maximum, largest));  // 0 the first time
    maximum = largest;
    sum = B::mul(sum, factor);
    PLOW_UNROLL
    for (uint32_t i = 0; i < Rows::kSteps; ++i) {
      if (i >= n_steps) break;
      const float weight = exp<B>(B::sub(score[i], maximum));
      sum = B::add(sum, weight);
      if (in_row < kTeamQueries) TeamPlaces<B>::weights(pass)[i * lanes.rows + lanes.row].of[in_row] = weight;
    }
    if (lane<B>() < kTeamQueries) TeamPlaces<B>::weights(pass)[rows_at_once].of[in_row] = factor;
    B::settle_wave();
    const OfQueries factors = TeamPlaces<B>::weights(pass)[rows_at_once];
    PLOW_UNROLL
    for (uint32_t p = 0; p < kPasses; ++p) {
      PLOW_UNROLL
      for (uint32_t g = 0; g < kTeamQueries; ++g) {
        PLOW_UNROLL
        for (uint32_t c = 0; c < kLaneColumns; ++c) acc[p][g][c] = B::mul(acc[p][g][c], factors.of[g]);
      }
    }
    PLOW_UNROLL
    for (uint32_t i = 0; i < Rows::kSteps; ++i) {
      if (i >= n_steps) break;
      const OfQueries weights = TeamPlaces<B>::weights(pass)[i * lanes.rows + lanes.row];
      PLOW_UNROLL
      for (uint32_t p = 0; p < kPasses; ++p) {
        PLOW_UNROLL
        for (uint32_t c = 0; c < kLaneColumns; ++c) {
          const float v = rows.values[i][p].value(c);
          PLOW_UNROLL
          for (uint32_t g = 0; g < kTeamQueries; ++g) acc[p][g][c] = B::fma(weights.of[g], v, acc[p][g][c]);
        }
      }
    }
    B::settle_wave();
    if (!more) continue;
    if constexpr (!kAhead) rows.load_keys(pass, lanes, base + rows_at_once, share.end);
    rows.load_values(pass, lanes);
  }
  PLOW_UNROLL_BY(1)
  for (uint32_t mask = lanes.per_row; mask < B::kLanes; mask *= 2) sum = B::add(sum, B::lane_xor(sum, mask));
  if (lane<B>() < kTeamQueries) {
    TeamPlaces<B>::waves(pass)[wave<B>()].maximum[in_row] = maximum;
    TeamPlaces<B>::waves(pass)[wave<B>()].sum[in_row] = sum;
  }
  float* out = TeamPlaces<B>::outputs(pass) +
               wave<B>() * kPasses * kTeamQueries * kLaneColumns * result_stride(B::kLanes) + lane<B>();
  PLOW_UNROLL
  for (uint32_t p = 0; p < kPasses; ++p) {
    PLOW_UNROLL
    for (uint32_t g = 0; g < kTeamQueries; ++g) {
      PLOW_UNROLL
      for (uint32_t c = 0; c < kLaneColumns; ++c)
        out[((p * kTeamQueries + g) * kLaneColumns + c) * result_stride(B::kLanes)] = acc[p][g][c];
    }
  }
}

// Calls f(wave) for each of the team, side by side.
template <class B, class F>
PLOW_DEVICE void for_waves(const F& f) {
  PLOW_UNROLL
  for (uint32_t w = 0; w < kMostWaves; ++w) {
    if (w < n_waves<B>()) f(w);
  }
}

// What each wave's outputs count, and the largest maximum.
template <class B>
PLOW_DEVICE void merge_statistics(const TeamAttention& pass) {
  const uint32_t w = B::thread() / kTeamQueries, g = B::thread() % kTeamQueries;
  if (w >= n_waves<B>()) return;
  WaveResult* waves = TeamPlaces<B>::waves(pass);
  float largest = -__builtin_inff();
  for_waves<B>([&](uint32_t i) { largest = B::max(largest, waves[i].maximum[g]); });
  // A wave without positions has a maximum of -infinity, and so a factor of 0.
  waves[w].factor[g] = exp<B>(B::sub(waves[w].maximum[g], largest));
  if (w == 0) TeamPlaces<B>::team(pass)->maximum[g] = largest;
}

template <class B>
PLOW_DEVICE float merged_sum(const TeamAttention& pass, uint32_t g) {
  const WaveResult* waves = TeamPlaces<B>::waves(pass);
  float sum = 0;
  for_waves<B>([&](uint32_t i) { sum = B::fma(waves[i].sum[g], waves[i].factor[g], sum); });
  return sum;
}

// Column c of query g, not divided. All that it reads is on its way at once.
template <class B, uint32_t kPasses>
PLOW_DEVICE float merged_output(const TeamAttention& pass, uint32_t g, uint32_t c) {
  constexpr uint32_t kPassColumns = kLaneColumns * B::kLanes, kStride = result_stride(B::kLanes);
  const HeadLanes lanes = head_lanes<B>(pass.head_dim);
  const float* first = TeamPlaces<B>::outputs(pass) +
                       ((c / kPassColumns * kTeamQueries + g) * kLaneColumns + c % kLaneColumns) * kStride +
                       c % kPassColumns / kLaneColumns;
  float parts[kMostWaves] = {};
  PLOW_UNROLL_BY(1)
  for (uint32_t row = 0; row < lanes.rows; ++row, first += lanes.per_row) {
    for_waves<B>([&](uint32_t w) {
      parts[w] = B::add(parts[w], first[w * kPasses * kTeamQueries * kLaneColumns * kStride]);
    });
  }
  float value = 0;
  for_waves<B>([&](uint32_t w) {
    const float factor = TeamPlaces<B>::waves(pass)[w].factor[g];
    value = factor != 0 ? B::fma(parts[w], factor, value) : value;  // else nothing may have been written
  });
  return value;
}

// The queries of a pass. store(query, column, output, maximum, sum): the output is not divided by the sum.
template <class B, class T, uint32_t kPasses, bool kWhole, class Store>
PLOW_DEVICE void attend_queries(const TeamAttention& pass, const Store& store) {
  if (n_waves<B>() > kMostWaves) return B::trap();
  const PositionRange all = pass.positions;
  const uint32_t outputs = pass.n_queries * pass.head_dim;
  if (all.begin >= all.end) {
    PLOW_UNROLL_BY(1)
    for (uint32_t i = B::thread(); i < outputs; i += B::n_threads())
      store(i / pass.head_dim, i % pass.head_dim, 0.0f, -__builtin_inff(), 0.0f);
    return;
  }
  const uint32_t rows = head_lanes<B>(pass.head_dim).rows, groups = ceil_div(all.end - all.begin, rows);
  const uint32_t first = groups * wave<B>() / n_waves<B>(), end = groups * (wave<B>() + 1) / n_waves<B>();
  if (first < end) {
    attend_share<B, T, kPasses, kWhole>(pass,
                                        {all.begin + first * rows, min_u32(all.begin + end * rows, all.end)});
  } else if (lane<B>() < kTeamQueries) {
    TeamPlaces<B>::waves(pass)[wave<B>()].maximum[lane<B>()] = -__builtin_inff();
    TeamPlaces<B>::waves(pass)[wave<B>()].sum[lane<B>()] = 0;
  }
  B::settle();
  merge_statistics<B>(pass);
  B::settle();
  PLOW_UNROLL_BY(1)
  for (uint32_t i = B::thread(); i < outputs; i += B::n_threads()) {
    const uint32_t g = i / pass.head_dim, c = i % pass.head_dim;
    store(g, c, merged_output<B, kPasses>(pass, g, c), TeamPlaces<B>::team(pass)->maximum[g], merged_sum<B>(pass, g));
  }
  B::settle();
}

// Attention over all positions: outputs are divided by their sums, and those are not stored. Else over a
// part.
PLOW_DEVICE bool is_whole(const Packet& packet) { return static_cast<Op>(packet.body) == Op::kAttention; }

// Tiles of an output, each of one part of a KV head. A body of its own for each kind of head and cache, so
// that none has the registers of another.
PLOW_KEEPS_FEW_REGISTERS
template <class B, class T, uint32_t kPasses, bool kWhole>
PLOW_DEVICE_CALL void attend_tiles_team_body(const BodyContext& ctx, const Packet& packet,
                                             uint32_t row_tile) {
  const TensorEntry &q = operand(ctx, packet, 0), &cache = operand(ctx, packet, 1),
                    &out = operand(ctx, packet, 2);
  TeamAttention pass{};
  pass.head_dim = packet.immediate[0];
  pass.block_bytes = ctx.device->kv_groups[cache.kv_group].block_bytes;
  pass.scale = immediate_f32(packet, 2);
  pass.softcap = immediate_f32(packet, 3);
  pass.shared = ctx.shared;
  const Range rows = packet_rows(ctx, packet, row_tile);
  bool by_matrices = false;
  if constexpr (kPasses == 1 && kWhole && sizeof(T) == sizeof(Bf16)) by_matrices = attends_by_matrices<B>(ctx, packet);
  PLOW_UNROLL_BY(1)
  for (uint32_t row = rows.begin; row < rows.end; ++row) {
    if (by_matrices && has_neighbour(ctx, packet, row)) continue;
    const uint32_t of_step = step_row(ctx, packet, row), position = ctx.step->positions[of_step];
    const PositionRange all = positions_in_window(position, packet.immediate[1]);
    pass.blocks =
        ctx.step->block_tables[cache.kv_group] + size_t{ctx.step->row_slots[of_step]} * ctx.step->table_width;
    for_columns(packet, out.cols, [&](uint32_t begin, uint32_t end) {
      PLOW_UNROLL_BY(1)
      for (uint32_t column = begin; column < end;) {
        // Made for each tile: registers are short.
        const AttentionParts layout = parts_of(ctx, packet, is_whole(packet));
        const uint32_t tile = column / output_tile_cols(layout, is_whole(packet)), kv_head = tile / layout.parts;
        pass.positions = positions_of_part(all, tile % layout.parts, layout.parts);
        pass.head = ctx.device->kv_pools[cache.kv_group] + cache.offset +
                    size_t{2} * kv_head * pass.head_dim * kAttentionUnit * sizeof(T);
        PLOW_UNROLL_BY(1)
        for (uint32_t first = 0; first < layout.queries; first += kTeamQueries) {
          pass.n_queries = min_u32(kTeamQueries, layout.queries - first);
          pass.q = arena_row(ctx, q, row) + (kv_head * layout.queries + first) * pass.head_dim;
          attend_queries<B, T, kPasses, kWhole>(
              pass, [&](uint32_t query, uint32_t c, float value, float maximum, float sum) {
                float* to = arena_row(ctx, out, row) + column;
                const bool divides = is_whole(packet);
                to[layout.output(first + query) + c] = divides ? B::div(value, sum) : value;
                if (divides || c != 0) return;
                to[layout.maximum(first + query)] = maximum;
                to[layout.sum(first + query)] = sum;
              });
        }
        column += output_tile_cols(layout, is_whole(packet));
      }
    });
  }
}

template <class B, class T>
PLOW_DEVICE void attend_team(const BodyContext& ctx, const Packet& packet, uint32_t row_tile) {
  const uint32_t head_dim = packet.immediate[0];
  if (head_dim % kLaneColumns != 0) {
    attend_tiles_team_body<B, T, 1, false>(ctx, packet, row_tile);
  } else if (head_dim <= kLaneColumns * B::kLanes) {
    attend_tiles_team_body<B, T, 1, true>(ctx, packet, row_tile);
  } else if constexpr (sizeof(T) < sizeof(float) || most_passes(B::kLanes) == 1) {
    attend_tiles_team_body<B, T, most_passes(B::kLanes), true>(ctx, packet, row_tile);
  } else {
    B::trap();  // loading refuses it
  }
}

// Of attention_part too: first of what attends by matrices, then of the rows that do not.
template <class B>
PLOW_DEVICE void attention_matrices_team_body(const BodyContext& ctx, const Packet& packet, uint32_t row_tile) {
  if constexpr (HasWarpUnit<B>) matrix_pass_team_body<B>(ctx, packet, row_tile, is_whole(packet));
}
template <class B>
PLOW_DEVICE void attention_team_body(const BodyContext& ctx, const Packet& packet, uint32_t row_tile) {
  if (operand(ctx, packet, 1).dtype == DType::kBf16) {
    attend_team<B, Bf16>(ctx, packet, row_tile);
  } else {
    attend_team<B, float>(ctx, packet, row_tile);
  }
}

}  // namespace plow::dev
