// attention: softmax(q k^T) v over the cache, causal, optionally in a window, with all query heads of a KV
// head and consecutive rows of one sequence sharing the pass over K and V.
//
// Positions are taken in units of 64 that are aligned to multiples of 64; after each unit the running
// maximum, sum and output of a query are rescaled (online softmax, Milakov and Gimelshein 2018). Every sum of
// a query runs over its own positions in ascending order, so its bits depend on its position, window and
// parts only, not on what shares the pass.
#pragma once

#include "abi/attention_parts.h"
#include "interp/vector_math.h"
#include "ops/soft_cap/body.h"

namespace plow::dev {

constexpr uint32_t kBlockTokens = 16;  // of a KV block: one Vec of scores
constexpr uint32_t kUnitBlocks = 4;
constexpr uint32_t kUnitTokens = kUnitBlocks * kBlockTokens;
static_assert(kUnitTokens == kAttentionUnit, "a part is a run of whole units");
// Queries (rows times heads) that share a pass. Their outputs, 64 x 64 floats for heads of 64, stay in a
// second-level cache.
constexpr uint32_t kPassQueries = 64;

// Floats of a query's output, padded to whole Vecs.
constexpr uint32_t padded_head(uint32_t head_dim) { return (head_dim + 15) / 16 * 16; }

// Bytes of scratch that a pass needs.
constexpr uint32_t attention_scratch_bytes(uint32_t head_dim) {
  return kPassQueries * (kUnitTokens + padded_head(head_dim) + head_dim + 3) *
         static_cast<uint32_t>(sizeof(float));
}

// One pass: queries 0 .. n_queries - 1 of one KV head over one part of their positions; query i is head i %
// group of row first_row + i / group.
struct AttentionPass {
  const BodyContext* ctx;
  const TensorEntry* cache;
  uint32_t slot;
  uint32_t kv_head;
  uint32_t head_dim;
  uint32_t group;        // query heads of a KV head
  uint32_t first_query;  // added to i before it is divided by group
  uint32_t n_queries;
  uint32_t first_position;  // of first_row
  uint32_t window;
  uint32_t part, parts;
  float scale, softcap;
  // Scratch
  float* q;        // [n_queries][head_dim]
  float* maximum;  // [n_queries]
  float* sum;      // [n_queries]
  float* factor;   // [n_queries]: by which the unit rescales
  float* scores;   // [n_queries][kUnitTokens]
  float* output;   // [n_queries][padded_head]
};

// The positions that query i attends to in this part. Neither end is before that of an earlier query, and a
// query without positions is outside of every unit that others have positions in.
PLOW_DEVICE Range positions_of(const AttentionPass& pass, uint32_t i) {
  const uint32_t position = pass.first_position + (pass.first_query + i) / pass.group;
  const bool cut = pass.window != 0 && position + 1 > pass.window;
  const PositionRange all{cut ? position + 1 - pass.window : 0, position + 1};
  if (pass.parts == 1) return {all.begin, all.end};
  const PositionRange own = positions_of_part(all, pass.part, pass.parts);
  return {own.begin, own.end};
}

// Those of a unit that begins at position `base`, as places within it; empty (begin >= end) when there are
// none.
PLOW_DEVICE Range unit_range(const AttentionPass& pass, uint32_t i, uint32_t base) {
  const Range all = positions_of(pass, i);
  const uint32_t begin = max_u32(all.begin, base), end = min_u32(all.end, base + kUnitTokens);
  return begin < end ? Range{begin - base, end - base} : Range{0, 0};
}

// Where K of the pass's KV head begins in the block of `position`; V follows it.
template <class T>
PLOW_DEVICE const T* head_block(const AttentionPass& pass, uint32_t position) {
  const unsigned char* block = kv_block(*pass.ctx, *pass.cache, pass.slot, position);
  return reinterpret_cast<const T*>(block) + size_t{2} * pass.kv_head * pass.head_dim * kBlockTokens;
}

// K and V of a unit's blocks, and those of the unit after it, which are prefetched line by line as these are
// read (or these again, when there is nothing to be prefetched).
template <class T>
struct UnitBlocks {
  uint32_t first, end;  // that exist
  const T* keys[kUnitBlocks];
  const T* values[kUnitBlocks];
  const T* next_keys[kUnitBlocks];
  const T* next_values[kUnitBlocks];
};

// Scores of R queries from `first` on against one block, before scale.
template <class I, class T, int R>
PLOW_DEVICE void score_block(const AttentionPass& pass, uint32_t first, const UnitBlocks<T>& blocks,
                             uint32_t block) {
  using Vec = typename I::Vec;
  Vec acc[R];
  const float* q[R];
  for (int r = 0; r < R; ++r) {
    acc[r] = I::zero();
    q[r] = pass.q + size_t{first + static_cast<uint32_t>(r)} * pass.head_dim;
  }
  const T* k = blocks.keys[block];
  const T* next = blocks.next_keys[block];
  for (uint32_t d = 0; d < pass.head_dim; ++d) {
    const Vec keys = I::load(k + size_t{d} * kBlockTokens);
    I::prefetch(next + size_t{d} * kBlockTokens);
    for (int r = 0; r < R; ++r) acc[r] = I::fma(I::set(q[r][d]), keys, acc[r]);
  }
  for (int r = 0; r < R; ++r) {
    I::store(pass.scores + (first + static_cast<uint32_t>(r)) * kUnitTokens + block * kBlockTokens, acc[r]);
  }
}

// Turns the scores of query i into weights, and updates its maximum and sum.
template <class I>
PLOW_DEVICE void softmax_unit(const AttentionPass& pass, uint32_t i, Range range) {
  using Vec = typename I::Vec;
  float* scores = pass.scores + i * kUnitTokens;
  const Vec lowest = I::set(-__builtin_inff());
  const uint32_t first_block = range.begin / kBlockTokens, end_block = ceil_div(range.end, kBlockTokens);
  Vec s[kUnitBlocks] = {lowest, lowest, lowest, lowest};
  Vec largest = lowest;
  for (uint32_t b = first_block; b < end_block; ++b) {
    const uint32_t base = b * kBlockTokens;
    Vec x = I::mul(I::load(scores + base), I::set(pass.scale));
    if (pass.softcap > 0) x = soft_capped<I>(x, I::set(pass.softcap));
    x = I::select(I::lanes_below(range.end - base), x, lowest);
    if (range.begin > base) x = I::select(I::lanes_below(range.begin - base), lowest, x);
    s[b] = x;
    largest = I::max(largest, x);
  }
  const float before = pass.maximum[i];
  const float block_max = I::reduce_max(largest);
  const float maximum = before > block_max ? before : block_max;
  Vec total = I::zero();
  for (uint32_t b = first_block; b < end_block; ++b) {
    const Vec weight = exp<I>(I::sub(s[b], I::set(maximum)));
    I::store(scores + b * kBlockTokens, weight);
    total = I::add(total, weight);
  }
  float factor[16];
  I::store(factor, exp<I>(I::set(before - maximum)));
  pass.factor[i] = factor[0];
  pass.sum[i] = pass.sum[i] * factor[0] + I::reduce_add(total);
  pass.maximum[i] = maximum;
}

// Adds weight * V of places [range.begin, range.end) to 16 columns of the outputs of R queries.
template <class I, class T, int R>
PLOW_DEVICE void add_values(const AttentionPass& pass, uint32_t first, Range range,
                            const UnitBlocks<T>& blocks, uint32_t column) {
  using Vec = typename I::Vec;
  const uint32_t padded = padded_head(pass.head_dim), lanes = min_u32(16, pass.head_dim - column);
  float* output = pass.output + size_t{first} * padded + column;
  const float* scores = pass.scores + first * kUnitTokens;
  Vec acc[R];
  for (int r = 0; r < R; ++r) acc[r] = I::load(output + r * padded);
  for (uint32_t t = range.begin; t < range.end; ++t) {
    const size_t at = size_t{t % kBlockTokens} * pass.head_dim + column;
    const T* row = blocks.values[t / kBlockTokens] + at;
    I::prefetch(blocks.next_values[t / kBlockTokens] + at);
    const Vec v = lanes == 16 ? I::load(row) : I::load_n(row, lanes);
    for (int r = 0; r < R; ++r) acc[r] = I::fma(I::set(scores[r * kUnitTokens + t]), v, acc[r]);
  }
  for (int r = 0; r < R; ++r) I::store(output + r * padded, acc[r]);
}

// The same for R queries whose ranges may differ at both ends: what they have in common is added together.
template <class I, class T, int R>
PLOW_DEVICE void add_unit_values(const AttentionPass& pass, uint32_t first, uint32_t base,
                                 const UnitBlocks<T>& blocks) {
  Range own[R];
  Range common{0, kUnitTokens};
  for (int r = 0; r < R; ++r) {
    own[r] = unit_range(pass, first + static_cast<uint32_t>(r), base);
    common = {max_u32(common.begin, own[r].begin), min_u32(common.end, own[r].end)};
  }
  if (common.begin >= common.end) common = {kUnitTokens, kUnitTokens};  // every query alone
  for (uint32_t column = 0; column < pass.head_dim; column += 16) {
    for (int r = 0; r < R; ++r) {
      const uint32_t i = first + static_cast<uint32_t>(r);
      float* output = pass.output + size_t{i} * padded_head(pass.head_dim) + column;
      I::store(output, I::mul(I::load(output), I::set(pass.factor[i])));
      const Range before{own[r].begin, min_u32(own[r].end, common.begin)};
      if (before.begin < before.end) add_values<I, T, 1>(pass, i, before, blocks, column);
    }
    if (common.begin < common.end) add_values<I, T, R>(pass, first, common, blocks, column);
    for (int r = 0; r < R; ++r) {
      const Range after{common.end, own[r].end};
      if (after.begin < after.end)
        add_values<I, T, 1>(pass, first + static_cast<uint32_t>(r), after, blocks, column);
    }
  }
}

// The queries [first, first + n) against the unit at `base`. REQUIRES n in 1 .. R.
template <class I, class T, int R>
PLOW_DEVICE void attend_unit(uint32_t n, const AttentionPass& pass, uint32_t first, uint32_t base,
                             const UnitBlocks<T>& blocks) {
  if constexpr (R > 1) {
    if (n < R) return attend_unit<I, T, R - 1>(n, pass, first, base, blocks);
  }
  for (uint32_t b = blocks.first; b < blocks.end; ++b) score_block<I, T, R>(pass, first, blocks, b);
  for (int r = 0; r < R; ++r) {
    const uint32_t i = first + static_cast<uint32_t>(r);
    softmax_unit<I>(pass, i, unit_range(pass, i, base));
  }
  add_unit_values<I, T, R>(pass, first, base, blocks);
}

// The blocks of the unit at `base` that hold positions of `all`, and those of the next.
template <class T>
PLOW_DEVICE UnitBlocks<T> unit_blocks(const AttentionPass& pass, Range all, uint32_t base) {
  UnitBlocks<T> blocks{};
  blocks.first = all.begin > base ? (all.begin - base) / kBlockTokens : 0;
  blocks.end = ceil_div(min_u32(all.end - base, kUnitTokens), kBlockTokens);
  const size_t keys = size_t{pass.head_dim} * kBlockTokens;
  for (uint32_t b = blocks.first; b < blocks.end; ++b) {
    const uint32_t position = base + b * kBlockTokens;
    const bool more = position + kUnitTokens < all.end;
    blocks.keys[b] = head_block<T>(pass, position);
    blocks.next_keys[b] = more ? head_block<T>(pass, position + kUnitTokens) : blocks.keys[b];
    blocks.values[b] = blocks.keys[b] + keys;
    blocks.next_values[b] = blocks.next_keys[b] + keys;
  }
  return blocks;
}

template <class I, class T>
PLOW_DEVICE void attend(const AttentionPass& pass) {
  const uint32_t padded = padded_head(pass.head_dim);
  for (uint32_t i = 0; i < pass.n_queries; ++i) {
    pass.maximum[i] = -__builtin_inff();
    pass.sum[i] = 0;
    for (uint32_t d = 0; d < padded; d += 16) I::store(pass.output + size_t{i} * padded + d, I::zero());
  }
  // Earlier queries begin and end no later than later ones.
  const Range all{positions_of(pass, 0).begin, positions_of(pass, pass.n_queries - 1).end};
  for (uint32_t base = all.begin / kUnitTokens * kUnitTokens; base < all.end; base += kUnitTokens) {
    const UnitBlocks<T> blocks = unit_blocks<T>(pass, all, base);
    // Queries that have positions in the unit follow each other.
    uint32_t first = 0, end = pass.n_queries;
    while (first < end && positions_of(pass, first).end <= base) ++first;
    while (end > first && positions_of(pass, end - 1).begin >= base + kUnitTokens) --end;
    for (uint32_t i = first; i < end; i += I::kRowBlock) {
      attend_unit<I, T, I::kRowBlock>(min_u32(I::kRowBlock, end - i), pass, i, base, blocks);
    }
  }
}

// Calls write(i, row of the pass, query head of the KV head) for the queries of a pass.
template <class Write>
PLOW_DEVICE void each_query(const AttentionPass& pass, const Write& write) {
  for (uint32_t i = 0; i < pass.n_queries; ++i)
    write(i, (pass.first_query + i) / pass.group, (pass.first_query + i) % pass.group);
}

// Rows from `row` on that continue its sequence, one position after the other.
PLOW_DEVICE uint32_t run_length(const BodyContext& ctx, const Packet& packet, uint32_t row, uint32_t end) {
  const uint32_t first = step_row(ctx, packet, row);
  uint32_t n = 1;
  while (row + n < end && step_row(ctx, packet, row + n) == first + n &&
         ctx.step->row_slots[first + n] == ctx.step->row_slots[first]) {
    ++n;
  }
  return n;
}

// load(row, column, to): a query head of head_dim floats. write(pass, first row, column of the tile): what a
// pass has made.
template <class I, class Load, class Write>
PLOW_DEVICE void attend_rows(const BodyContext& ctx, const Packet& packet, uint32_t row_tile,
                             const TensorEntry& q, const TensorEntry& cache, uint32_t out_cols,
                             uint32_t parts, const Load& load, const Write& write) {
  const uint32_t head_dim = packet.immediate[0];
  const uint32_t group = q.cols / cache.cols, tile_cols = out_cols / (cache.cols / head_dim * parts);
  const Range rows = packet_rows(ctx, packet, row_tile);
  AttentionPass pass{};
  pass.ctx = &ctx;
  pass.cache = &cache;
  pass.head_dim = head_dim;
  pass.group = group;
  pass.window = packet.immediate[1];
  pass.parts = parts;
  pass.scale = immediate_f32(packet, 2);
  pass.softcap = immediate_f32(packet, 3);
  pass.scores = reinterpret_cast<float*>(ctx.scratch);
  pass.output = pass.scores + kPassQueries * kUnitTokens;
  pass.q = pass.output + kPassQueries * padded_head(head_dim);
  pass.maximum = pass.q + kPassQueries * head_dim;
  pass.sum = pass.maximum + kPassQueries;
  pass.factor = pass.sum + kPassQueries;
  for (uint32_t row = rows.begin, n = 0; row < rows.end; row += n) {
    n = run_length(ctx, packet, row, rows.end);
    pass.slot = ctx.step->row_slots[step_row(ctx, packet, row)];
    pass.first_position = ctx.step->positions[step_row(ctx, packet, row)];
    for_columns(packet, out_cols, [&](uint32_t begin, uint32_t end) {
      for (uint32_t column = begin; column < end; column += tile_cols) {
        pass.kv_head = column / tile_cols / parts;
        pass.part = column / tile_cols % parts;
        for (uint32_t first = 0; first < n * group; first += kPassQueries) {
          pass.first_query = first;
          pass.n_queries = min_u32(kPassQueries, n * group - first);
          each_query(pass, [&](uint32_t i, uint32_t r, uint32_t head) {
            load(row + r, (pass.kv_head * group + head) * head_dim, pass.q + size_t{i} * head_dim);
          });
          if (cache.dtype == DType::kBf16) {
            attend<I, Bf16>(pass);
          } else {
            attend<I, float>(pass);
          }
          write(pass, row, column);
        }
      }
    });
  }
}

// The same of all positions at once: outputs are divided by their sums. The cache is operand `cache`, the
// output follows.
template <class I, class Load>
PLOW_DEVICE void attend_wholly(const BodyContext& ctx, const Packet& packet, uint32_t row_tile,
                               uint32_t cache, const Load& load) {
  const TensorEntry& out = operand(ctx, packet, cache + 1);
  attend_rows<I>(ctx, packet, row_tile, operand(ctx, packet, 0), operand(ctx, packet, cache), out.cols, 1,
                 load, [&](const AttentionPass& pass, uint32_t row, uint32_t column) {
                   each_query(pass, [&](uint32_t i, uint32_t r, uint32_t head) {
                     float* to = arena_row(ctx, out, row + r) + column + head * pass.head_dim;
                     const float* from = pass.output + size_t{i} * padded_head(pass.head_dim);
                     const typename I::Vec sum = I::set(pass.sum[i]);
                     for_lanes(0, pass.head_dim, [&](uint32_t d, uint32_t m) {
                       I::store_n(to + d, I::div(I::load(from + d), sum), m);
                     });
                   });
                 });
}

template <class I>
PLOW_DEVICE void attention_body(const BodyContext& ctx, const Packet& packet, uint32_t row_tile) {
  const TensorEntry& q = operand(ctx, packet, 0);
  const size_t bytes = packet.immediate[0] * sizeof(float);
  attend_wholly<I>(ctx, packet, row_tile, 1, [&](uint32_t row, uint32_t column, float* to) {
    __builtin_memcpy(to, arena_row(ctx, q, row) + column, bytes);
  });
}

}  // namespace plow::dev
