// attention_merge, for a team: a column of the output a thread, sixteen of whose parts are under way at once.
#pragma once

#include "abi/attention_parts.h"
#include "interp/team.h"
#include "interp/vector_math.h"

namespace plow::dev {

constexpr uint32_t kPartsAtOnce = 16;  // as many as 132 workers have for each of 8 KV heads

// Column c of a query; `tile` is part 0's. What was added before is rescaled when a larger maximum comes.
template <class B>
PLOW_DEVICE float merged_column(const AttentionParts& layout, const float* tile, uint32_t query, uint32_t c) {
  float largest = -__builtin_inff(), whole_sum = 0, whole = 0;
  for (uint32_t first = 0; first < layout.parts; first += kPartsAtOnce) {
    float maximum[kPartsAtOnce], sum[kPartsAtOnce], value[kPartsAtOnce];
    PLOW_UNROLL
    for (uint32_t i = 0; i < kPartsAtOnce; ++i) {
      // Beyond the last part it is the last once more, with a factor of 0.
      const float* part = tile + min_u32(first + i, layout.parts - 1) * layout.tile_cols();
      maximum[i] = first + i < layout.parts ? part[layout.maximum(query)] : -__builtin_inff();
      sum[i] = part[layout.sum(query)];
      value[i] = part[layout.output(query) + c];
    }
    const float before = largest;
    PLOW_UNROLL
    for (uint32_t i = 0; i < kPartsAtOnce; ++i) largest = B::max(largest, maximum[i]);
    // Without positions so far, as with any: e^-infinity is 0.
    const float top = largest == -__builtin_inff() ? 0.0f : largest;
    const float rescale = exp<B>(B::sub(before, top));
    whole_sum = B::mul(whole_sum, rescale);
    whole = B::mul(whole, rescale);
    PLOW_UNROLL
    for (uint32_t i = 0; i < kPartsAtOnce; ++i) {
      const float factor = exp<B>(B::sub(maximum[i], top));
      whole_sum = B::fma(sum[i], factor, whole_sum);
      whole = B::fma(value[i], factor, whole);
    }
  }
  return B::div(whole, whole_sum);
}

// Where a column of the output comes from.
struct MergedColumn {
  const float* kv_head;  // tile of part 0
  uint32_t query, c;
};
PLOW_DEVICE MergedColumn column_of(const BodyContext& ctx, const Packet& packet, const AttentionParts& layout, uint32_t row, uint32_t column) {
  const uint32_t head = column / layout.head_dim;
  return {arena_row(ctx, operand(ctx, packet, 0), row) + head / layout.queries * layout.cols(1), head % layout.queries,
          column % layout.head_dim};
}

// Columns whose query part `whole_at` has whole are copied. False: the calling thread met others.
template <class B>
PLOW_DEVICE bool copy_whole_columns(const BodyContext& ctx, const Packet& packet, const AttentionParts& layout, Range rows, uint64_t whole_at) {
  constexpr uint32_t kAtOnce = 8;  // 16 loads under way
  struct Whole {
    float maximum, value;
  };
  bool all = true;
  const TensorEntry& out = operand(ctx, packet, 1);
  for_columns(packet, out.cols, [&](uint32_t begin, uint32_t end) {
    each_piece<B, kAtOnce>(
        rows.end - rows.begin, end - begin,
        [&](uint32_t run, uint32_t piece) {
          const MergedColumn from = column_of(ctx, packet, layout, rows.begin + run, begin + piece);
          const float* whole = from.kv_head + whole_at;
          return Whole{whole[layout.maximum(from.query)], whole[layout.output(from.query) + from.c]};
        },
        [&](uint32_t run, uint32_t piece, const Whole& whole) {
          if (whole.maximum == kWholeInOnePart) {
            arena_row(ctx, out, rows.begin + run)[begin + piece] = whole.value;
          } else {
            all = false;
          }
        });
  });
  return all;
}

template <class B>
PLOW_DEVICE_BODY void attention_merge_team_body(const BodyContext& ctx, const Packet& packet,
                                                uint32_t row_tile) {
  const AttentionParts layout{packet.immediate[0], packet.immediate[1], packet.immediate[2]};
  const TensorEntry& out = operand(ctx, packet, 1);
  const Range rows = packet_rows(ctx, packet, row_tile);
  const bool many = has_many_rows(*ctx.program, packet);
  const uint64_t whole_at = layout.part_of_whole(row_tile) * layout.tile_cols();
  if (many && copy_whole_columns<B>(ctx, packet, layout, rows, whole_at)) return;
  for_columns(packet, out.cols, [&](uint32_t begin, uint32_t end) {
    each_piece<B, 1>(
        rows.end - rows.begin, end - begin,
        [&](uint32_t run, uint32_t piece) {
          const MergedColumn from = column_of(ctx, packet, layout, rows.begin + run, begin + piece);
          if (many && from.kv_head[whole_at + layout.maximum(from.query)] == kWholeInOnePart)
            return from.kv_head[whole_at + layout.output(from.query) + from.c];
          return merged_column<B>(layout, from.kv_head, from.query, from.c);
        },
        [&](uint32_t run, uint32_t piece, float merged) {
          arena_row(ctx, out, rows.begin + run)[begin + piece] = merged;
        });
  });
}

}  // namespace plow::dev
