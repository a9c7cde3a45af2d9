// attention and attention_part of many rows by the units of a team's warps (HasWarpUnit of interp/team.h), over a cache of
// bf16: a row tile's rows of a sequence, with all query heads of a KV head, are the rows of matrices, 16 a warp, past which
// the team brings 64 keys and then their values at once (FlashAttention-2, Dao 2023, arXiv 2307.08691).
//
// Queries and weights are three sets of bf16 (split_activations.h), so that nothing is rounded but sums. A row's sums
// depend on its own query and positions only, in ascending order of keys: a block in which it attends to nothing leaves
// them as they are. So its bits do not depend on the rows that share the pass.
#pragma once

#include "abi/attention_parts.h"
#include "interp/vector_math.h"
#include "ops/linear/split_activations.h"
#include "ops/soft_cap/body.h"

namespace plow::dev {

constexpr uint32_t kWarpQueries = 16;     // m16n8k16
constexpr uint32_t kNarrowHeadDim = 64;   // a head of as many columns or fewer takes half the registers
constexpr uint32_t kMostMatrixWaves = 7;  // that multiply: the team's memory holds no more queries

// Consecutive rows of one sequence, at ascending positions, with the query heads of a KV head. Query i is head i % queries
// of row i / queries.
struct QueryRun {
  const BodyContext* ctx;
  const Packet* packet;
  uint32_t first_row, n;  // n: queries
  uint32_t queries, kv_head, head_dim, window;
  const unsigned char* head;  // K of the KV head in block 0
  uint64_t block_bytes;
  const uint32_t* blocks;  // of the sequence, by unit of positions
  float scale, softcap;
  uint32_t out_column;  // of the tile's
  uint32_t whole_at;    // column of the tile where the maximum of query 0 goes; 0: none does

  PLOW_DEVICE_MEMBER uint32_t row(uint32_t query) const { return first_row + query / queries; }
  PLOW_DEVICE_MEMBER uint32_t position(uint32_t query) const { return ctx->step->positions[step_row(*ctx, *packet, row(query))]; }
};

// The team's memory; kDim: columns of a head, those that are not there are 0.
template <class B, uint32_t kDim>
struct alignas(16) MatrixPassMemory {
  static constexpr uint32_t kWaves = B::kWaves < kMostMatrixWaves ? B::kWaves : kMostMatrixWaves;
  // 16 more than the columns: the rows of a matrix of 8 x 8 lie in different banks.
  static constexpr uint32_t kRowBytes = kDim * sizeof(Bf16) + 16;

  unsigned char keys[kAttentionUnit * kRowBytes], values[kAttentionUnit * kRowBytes];
  // Each lane's own: the middle and the last sets of its queries, by slice of 16 columns.
  uint32_t queries[kWaves][kDim / 16][kSplit - 1][B::kLanes][4];
  QueryRun run;  // here, since registers are short
};

template <class B>
constexpr uint32_t matrix_pass_bytes() {
  return sizeof(MatrixPassMemory<B, B::kMatrixHeadDim>);
}

// A lane's queries: rows g = l / 4 and g + 8 of its warp's.
template <class B>
PLOW_DEVICE uint32_t lane_query(uint32_t first, uint32_t u) {
  return first + wave<B>() * kWarpQueries + lane<B>() / 4 + 8 * u;
}
template <uint32_t kDim>
struct LaneQueries {
  uint32_t position[2];
  uint32_t leading[kDim / 16][4];  // their leading sets
};

// Of 64 positions from `first` on, in block `block`: their keys, or their values (`behind`: elements after the keys); 0 where
// none of the pass's queries attends to the position, and nothing at all behind those. A thread has 16 bytes of every n-th.
template <class B, uint32_t kDim>
PLOW_DEVICE void stage_block(const QueryRun& run, uint32_t block, uint32_t first, PositionRange all, uint32_t behind, unsigned char* to) {
  constexpr uint32_t kUnits = kDim / 8, kRowBytes = MatrixPassMemory<B, kDim>::kRowBytes;
  const uint32_t head_dim = run.head_dim, at_once = B::n_threads() / kUnits;
  const uint32_t row = B::thread() / kUnits, column = B::thread() % kUnits * 8;
  const Bf16* head = reinterpret_cast<const Bf16*>(run.head + block * run.block_bytes) + behind;
  const Bf16* from = head + row * head_dim + column;
  to += row * kRowBytes + column * sizeof(Bf16);
  // Rows of the block that are there.
  const uint32_t begin = all.begin > first ? all.begin - first : 0, end = column < head_dim && all.end > first ? all.end - first : 0;
  if (first < all.end) {
    PLOW_UNROLL_BY(4)
    for (uint32_t i = row; i < kAttentionUnit; i += at_once, from += at_once * head_dim, to += at_once * kRowBytes) {
      const bool exists = i >= begin && i < end;
      B::template stage<16>(to, exists ? from : head, exists);
    }
  }
  B::commit_stage();
}

// Columns 2 (l % 4) and the next of a slice, and those 8 behind, of both of a lane's queries, in three sets.
template <class B>
PLOW_DEVICE SplitActivations split_queries(const QueryRun& run, const float* const (&row)[2], uint32_t slice) {
  float x[8];
  PLOW_UNROLL
  for (uint32_t i = 0; i < 8; ++i) {
    const uint32_t column = slice * 16 + i / 4 * 8 + lane<B>() % 4 * 2 + i % 2;
    const float value = row[i / 2 % 2][column < run.head_dim ? column : 0];
    x[i] = column < run.head_dim ? value : 0.0f;
  }
  return split(x);
}

template <class B, uint32_t kDim>
PLOW_DEVICE void load_lane_queries(const QueryRun& run, uint32_t first, MatrixPassMemory<B, kDim>& memory, LaneQueries<kDim>& own) {
  const TensorEntry& q = operand(*run.ctx, *run.packet, 0);
  const float* row[2];
  PLOW_UNROLL
  for (uint32_t u = 0; u < 2; ++u) {
    const uint32_t query = min_u32(lane_query<B>(first, u), run.n - 1);
    own.position[u] = run.position(query);
    row[u] = arena_row(*run.ctx, q, run.row(query)) + (run.kv_head * run.queries + query % run.queries) * run.head_dim;
  }
  PLOW_UNROLL
  for (uint32_t slice = 0; slice < kDim / 16; ++slice) {
    const SplitActivations sets = split_queries<B>(run, row, slice);
    PLOW_UNROLL
    for (uint32_t i = 0; i < 4; ++i) {
      own.leading[slice][i] = sets.words[0][i];
      PLOW_UNROLL
      for (uint32_t set = 1; set < kSplit; ++set) memory.queries[wave<B>()][slice][set - 1][lane<B>()][i] = sets.words[set][i];
    }
  }
}

// Sets by eight matrices, in ascending order of the sets' sizes. Set by set, since a product waits for the one before it that
// adds to the same sums: b[i] is of c[2 i] and c[2 i + 1].
template <class B>
PLOW_DEVICE void multiply_sets(const SplitActivations& sets, const uint32_t (&b)[4][4], float (*c)[4]) {
  PLOW_UNROLL
  for (uint32_t set = kSplit; set-- > 0;) {
    PLOW_UNROLL
    for (uint32_t t = 0; t < 8; ++t) B::multiply_add(sets.words[set], b[t / 2][t % 2 * 2], b[t / 2][t % 2 * 2 + 1], c[t]);
  }
}

// Scores of 64 keys: of key 8 t + 2 (l % 4) + i and query u as scores[t][2 u + i].
template <class B, uint32_t kDim>
PLOW_DEVICE void multiply_keys(const MatrixPassMemory<B, kDim>& memory, const LaneQueries<kDim>& own, float (&scores)[8][4]) {
  const uint32_t matrix = lane<B>() / 8;
  const auto keys = B::team_address(memory.keys + (matrix / 2 * 8 + lane<B>() % 8) * memory.kRowBytes + matrix % 2 * 16);
  PLOW_UNROLL
  for (uint32_t t = 0; t < 8; ++t) {
    PLOW_UNROLL
    for (uint32_t i = 0; i < 4; ++i) scores[t][i] = 0;
  }
  PLOW_UNROLL
  for (uint32_t slice = 0; slice < kDim / 16; ++slice) {
    SplitActivations sets;
    PLOW_UNROLL
    for (uint32_t i = 0; i < 4; ++i) {
      sets.words[0][i] = own.leading[slice][i];
      PLOW_UNROLL
      for (uint32_t set = 1; set < kSplit; ++set) sets.words[set][i] = memory.queries[wave<B>()][slice][set - 1][lane<B>()][i];
    }
    uint32_t b[4][4];
    PLOW_UNROLL
    for (uint32_t i = 0; i < 4; ++i) B::template load_matrices<false>(keys + (i * 16 * memory.kRowBytes + slice * 32), b[i]);
    multiply_sets<B>(sets, b, scores);
  }
}

// What a lane knows of its two queries: the largest score so far, the sum of its own keys' weights, the outputs of
// columns 8 t + 2 (l % 4) + i of query u as outputs[t][2 u + i].
template <uint32_t kDim>
struct LaneSoftmax {
  float maximum[2], sum[2], outputs[kDim / 8][4];
};

// What a query attends to of the 64 positions from `first` on: `u` as in scores.
template <class B>
PLOW_DEVICE void mask_scores(PositionRange attended, uint32_t first, uint32_t u, float (&scores)[8][4]) {
  if (attended.begin <= first && attended.end >= first + kAttentionUnit) return;
  PLOW_UNROLL
  for (uint32_t i = 0; i < 16; ++i) {
    const uint32_t position = first + i / 2 * 8 + lane<B>() % 4 * 2 + i % 2;
    float& x = scores[i / 2][2 * u + i % 2];
    x = position >= attended.begin && position < attended.end ? x : -__builtin_inff();
  }
}

// Scores become weights; sums and outputs are brought to the new maximum.
template <class B, uint32_t kDim>
PLOW_DEVICE void weigh(const QueryRun& run, const LaneQueries<kDim>& own, uint32_t first, float (&scores)[8][4], LaneSoftmax<kDim>& all) {
  const float scale = run.scale, softcap = run.softcap;
  const uint32_t window = run.window;
  PLOW_UNROLL
  for (uint32_t i = 0; i < 32; ++i) scores[i / 4][i % 4] = B::mul(scores[i / 4][i % 4], scale);
  if (softcap > 0) {
    PLOW_UNROLL
    for (uint32_t i = 0; i < 32; ++i) scores[i / 4][i % 4] = soft_capped<B>(scores[i / 4][i % 4], softcap);
  }
  float factor[2];
  PLOW_UNROLL
  for (uint32_t u = 0; u < 2; ++u) {
    mask_scores<B>(positions_in_window(own.position[u], window), first, u, scores);
    float largest = all.maximum[u];
    PLOW_UNROLL
    for (uint32_t i = 0; i < 16; ++i) largest = B::max(largest, scores[i / 2][2 * u + i % 2]);
    largest = B::max(largest, B::lane_xor(largest, 1));
    largest = B::max(largest, B::lane_xor(largest, 2));
    // Without positions so far, as with any: e^-infinity is 0.
    const float top = largest == -__builtin_inff() ? 0.0f : largest;
    factor[u] = largest == all.maximum[u] ? 1.0f : exp<B>(B::sub(all.maximum[u], top));
    all.maximum[u] = largest;
    float sum = B::mul(all.sum[u], factor[u]);
    PLOW_UNROLL
    for (uint32_t i = 0; i < 16; ++i) {
      const float weight = exp<B>(B::sub(scores[i / 2][2 * u + i % 2], top));
      scores[i / 2][2 * u + i % 2] = weight;
      sum = B::add(sum, weight);
    }
    all.sum[u] = sum;
  }
  PLOW_UNROLL
  for (uint32_t t = 0; t < kDim / 8; ++t) {
    PLOW_UNROLL
    for (uint32_t i = 0; i < 4; ++i) all.outputs[t][i] = B::mul(all.outputs[t][i], factor[i / 2]);
  }
}

// The values of 64 keys by their weights.
template <class B, uint32_t kDim>
PLOW_DEVICE void multiply_values(const MatrixPassMemory<B, kDim>& memory, const float (&weights)[8][4], LaneSoftmax<kDim>& all) {
  const uint32_t matrix = lane<B>() / 8;
  const auto values = B::team_address(memory.values + (matrix % 2 * 8 + lane<B>() % 8) * memory.kRowBytes + matrix / 2 * 16);
  PLOW_UNROLL
  for (uint32_t slice = 0; slice < kAttentionUnit / 16; ++slice) {
    const float (&low)[4] = weights[2 * slice], (&high)[4] = weights[2 * slice + 1];
    const SplitActivations sets = split({low[0], low[1], low[2], low[3], high[0], high[1], high[2], high[3]});
    PLOW_UNROLL
    for (uint32_t t = 0; t < kDim / 8; t += 8) {
      uint32_t b[4][4];
      PLOW_UNROLL
      for (uint32_t i = 0; i < 4; ++i)
        B::template load_matrices<true>(values + (slice * 16 * memory.kRowBytes + (t + 2 * i) * 16), b[i]);
      multiply_sets<B>(sets, b, all.outputs + t);
    }
  }
}

template <class B, uint32_t kDim>
PLOW_DEVICE void store_queries(const QueryRun& run, uint32_t first, const LaneSoftmax<kDim>& all) {
  PLOW_UNROLL
  for (uint32_t u = 0; u < 2; ++u) {
    float sum = B::add(all.sum[u], B::lane_xor(all.sum[u], 1));
    sum = B::add(sum, B::lane_xor(sum, 2));
    const uint32_t query = lane_query<B>(first, u), head = query % run.queries;
    if (query >= run.n) continue;
    float* tile = arena_row(*run.ctx, operand(*run.ctx, *run.packet, 2), run.row(query)) + run.out_column;
    PLOW_UNROLL
    for (uint32_t t = 0; t < kDim / 8; ++t) {
      PLOW_UNROLL
      for (uint32_t i = 0; i < 2; ++i) {
        const uint32_t column = t * 8 + lane<B>() % 4 * 2 + i;
        if (column < run.head_dim) tile[head * run.head_dim + column] = B::div(all.outputs[t][2 * u + i], sum);
      }
    }
    if (run.whole_at != 0 && lane<B>() % 4 == 0) tile[run.whole_at + head] = kWholeInOnePart;
  }
}

// Queries from `first` on, as many as the team's warps take at once.
template <class B, uint32_t kDim>
PLOW_DEVICE void attend_warps(const QueryRun& run, uint32_t first, MatrixPassMemory<B, kDim>& memory) {
  constexpr uint32_t kAtOnce = MatrixPassMemory<B, kDim>::kWaves * kWarpQueries;
  const bool multiplies = wave<B>() < memory.kWaves && first + wave<B>() * kWarpQueries < run.n;
  const PositionRange all{positions_in_window(run.position(first), run.window).begin, run.position(min_u32(first + kAtOnce, run.n) - 1) + 1};
  const uint32_t values = kAttentionUnit * run.head_dim, last = (all.end - 1) / kAttentionUnit;
  uint32_t position = all.begin / kAttentionUnit * kAttentionUnit, block = run.blocks[position / kAttentionUnit];
  LaneQueries<kDim> own;
  LaneSoftmax<kDim> softmax{{-__builtin_inff(), -__builtin_inff()}, {}, {}};
  stage_block<B, kDim>(run, block, position, all, 0, memory.keys);
  stage_block<B, kDim>(run, block, position, all, values, memory.values);
  if (multiplies) load_lane_queries<B>(run, first, memory, own);
  PLOW_UNROLL_BY(1)
  for (; position < all.end; position += kAttentionUnit) {
    block = run.blocks[min_u32(position / kAttentionUnit + 1, last)];  // it comes while products are made
    float scores[8][4];
    B::await_stage(true);
    B::settle();
    if (multiplies) multiply_keys<B>(memory, own, scores);
    B::settle();
    stage_block<B, kDim>(run, block, position + kAttentionUnit, all, 0, memory.keys);
    if (multiplies) weigh<B>(run, own, position, scores, softmax);
    B::await_stage(true);
    B::settle();
    if (multiplies) multiply_values<B>(memory, scores, softmax);
    B::settle();
    stage_block<B, kDim>(run, block, position + kAttentionUnit, all, values, memory.values);
  }
  B::await_stage(false);
  if (multiplies) store_queries<B>(run, first, softmax);
}

// Which rows and queries: `column` is that of their tile of the output.
struct RunIndex {
  uint32_t first_row, n_rows, column;
  bool whole;  // attention; else attention_part
};

PLOW_DEVICE AttentionParts parts_of(const BodyContext& ctx, const Packet& packet, bool whole) {
  return {packet.immediate[0], whole ? 1 : packet.immediate[4], operand(ctx, packet, 0).cols / operand(ctx, packet, 1).cols};
}
// Columns of a tile of the output.
PLOW_DEVICE uint32_t output_tile_cols(const AttentionParts& layout, bool whole) {
  return whole ? layout.queries * layout.head_dim : static_cast<uint32_t>(layout.tile_cols());
}

PLOW_DEVICE QueryRun query_run(const BodyContext& ctx, const Packet& packet, const RunIndex& index) {
  const TensorEntry& cache = operand(ctx, packet, 1);
  const AttentionParts layout = parts_of(ctx, packet, index.whole);
  const uint32_t kv_head = index.column / output_tile_cols(layout, index.whole) / layout.parts;
  const uint32_t slot = ctx.step->row_slots[step_row(ctx, packet, index.first_row)];
  return {&ctx,
          &packet,
          index.first_row,
          index.n_rows * layout.queries,
          layout.queries,
          kv_head,
          layout.head_dim,
          packet.immediate[1],
          ctx.device->kv_pools[cache.kv_group] + cache.offset + size_t{2} * kv_head * layout.head_dim * kAttentionUnit * sizeof(Bf16),
          ctx.device->kv_groups[cache.kv_group].block_bytes,
          ctx.step->block_tables[cache.kv_group] + size_t{slot} * ctx.step->table_width,
          immediate_f32(packet, 2),
          immediate_f32(packet, 3),
          index.column,
          index.whole ? 0 : layout.maximum(0)};
}

// Whether a packet's rows that have neighbours of their sequence in the step go this way.
template <class B>
PLOW_DEVICE bool attends_by_matrices(const BodyContext& ctx, const Packet& packet) {
  if constexpr (HasWarpUnit<B>) {
    return has_many_rows(*ctx.program, packet) && operand(ctx, packet, 1).dtype == DType::kBf16 && packet.immediate[0] % 8 == 0 &&
           packet.immediate[0] <= B::kMatrixHeadDim;
  }
  return false;
}

// A row of a prompt's chunk, not of decode. Asked of the step, not of the row tile: else bits would depend on the rows before.
PLOW_DEVICE bool has_neighbour(const BodyContext& ctx, const Packet& packet, uint32_t row) {
  const uint32_t of_step = step_row(ctx, packet, row), slot = ctx.step->row_slots[of_step];
  return (of_step > 0 && ctx.step->row_slots[of_step - 1] == slot) ||
         (of_step + 1 < ctx.step->n_rows && ctx.step->row_slots[of_step + 1] == slot);
}

// The rows from `row` on, below `end`, that are of its sequence.
PLOW_DEVICE uint32_t rows_of_sequence(const BodyContext& ctx, const Packet& packet, uint32_t row, uint32_t end) {
  const uint32_t slot = ctx.step->row_slots[step_row(ctx, packet, row)];
  uint32_t n = 1;
  while (row + n < end && ctx.step->row_slots[step_row(ctx, packet, row + n)] == slot) ++n;
  return n;
}

// The rows of a row tile that go this way, for the tile of the output that begins at `column`.
PLOW_KEEPS_FEW_REGISTERS
template <class B, uint32_t kDim>
PLOW_DEVICE_CALL void attend_runs(const BodyContext& ctx, const Packet& packet, uint32_t row_tile, uint32_t column, bool whole) {
  auto& memory = *reinterpret_cast<MatrixPassMemory<B, kDim>*>(ctx.shared);
  const Range rows = packet_rows(ctx, packet, row_tile);
  uint32_t n = 1;
  PLOW_UNROLL_BY(1)
  for (uint32_t row = rows.begin; row < rows.end; row += n) {
    n = rows_of_sequence(ctx, packet, row, rows.end);
    if (!has_neighbour(ctx, packet, row)) continue;
    if (B::thread() == 0) memory.run = query_run(ctx, packet, {row, n, column, whole});
    B::settle();
    PLOW_UNROLL_BY(1)
    for (uint32_t first = 0; first < memory.run.n; first += memory.kWaves * kWarpQueries) attend_warps<B, kDim>(memory.run, first, memory);
    B::settle();
  }
}

// All of them: for the packet's tiles of the part whose turn it is. REQUIRES attends_by_matrices().
template <class B>
PLOW_DEVICE void matrix_pass_team_body(const BodyContext& ctx, const Packet& packet, uint32_t row_tile, bool whole) {
  PLOW_UNROLL_BY(1)
  for (uint32_t i = 0;; ++i) {
    const AttentionParts layout = parts_of(ctx, packet, whole);
    const uint32_t tile_cols = output_tile_cols(layout, whole), of_packet_tile = packet.tile_cols / tile_cols;
    if (i >= packet.col_count * of_packet_tile) return;
    const uint32_t column =
        (packet.col_first + i / of_packet_tile * packet.col_stride) * packet.tile_cols + i % of_packet_tile * tile_cols;
    const bool exists = column < operand(ctx, packet, 2).cols;
    if (!exists || column / tile_cols % layout.parts != layout.part_of_whole(row_tile)) continue;
    if (layout.head_dim <= kNarrowHeadDim) {
      attend_runs<B, kNarrowHeadDim>(ctx, packet, row_tile, column, whole);
    } else if constexpr (B::kMatrixHeadDim > kNarrowHeadDim) {
      attend_runs<B, B::kMatrixHeadDim>(ctx, packet, row_tile, column, whole);
    }
  }
}

}  // namespace plow::dev
