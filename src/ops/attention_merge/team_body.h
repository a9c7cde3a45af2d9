// attention_merge, for a team: a column of the output a thread, some of whose parts are under way at once.
#pragma once

#include "abi/attention_parts.h"
#include "interp/team.h"
#include "interp/vector_math.h"

namespace plow::dev {

// Column c of a query; `tile` is part 0's.
template <class B>
PLOW_DEVICE float merged_column(const AttentionParts& layout, const float* tile, uint32_t query, uint32_t c) {
  float maximum[kMostAttentionParts];
  PLOW_UNROLL
  for (uint32_t p = 0; p < kMostAttentionParts; ++p)
    maximum[p] = p < layout.parts ? (tile + p * layout.tile_cols())[layout.maximum(query)] : -__builtin_inff();
  float largest = -__builtin_inff(), whole_sum = 0, whole = 0;
  PLOW_UNROLL
  for (uint32_t p = 0; p < kMostAttentionParts; ++p) largest = B::max(largest, maximum[p]);
  PLOW_UNROLL_BY(4)
  for (uint32_t p = 0; p < layout.parts; ++p) {
    const float* part = tile + p * layout.tile_cols();
    const float factor = exp<B>(B::sub(part[layout.maximum(query)], largest));  // 0 of a part without positions
    whole_sum = B::fma(part[layout.sum(query)], factor, whole_sum);
    whole = B::fma(part[layout.output(query) + c], factor, whole);
  }
  return B::div(whole, whole_sum);
}

template <class B>
PLOW_DEVICE_BODY void attention_merge_team_body(const BodyContext& ctx, const Packet& packet,
                                                uint32_t row_tile) {
  const TensorEntry &in = operand(ctx, packet, 0), &out = operand(ctx, packet, 1);
  const AttentionParts layout{packet.immediate[0], packet.immediate[1], packet.immediate[2]};
  const Range rows = packet_rows(ctx, packet, row_tile);
  for_columns(packet, out.cols, [&](uint32_t begin, uint32_t end) {
    each_piece<B, 1>(
        rows.end - rows.begin, end - begin,
        [&](uint32_t run, uint32_t piece) {
          const uint32_t column = begin + piece, head = column / layout.head_dim, c = column % layout.head_dim;
          const float* kv_head =
              arena_row(ctx, in, rows.begin + run) + head / layout.queries * layout.cols(1);
          return merged_column<B>(layout, kv_head, head % layout.queries, c);
        },
        [&](uint32_t run, uint32_t piece, float merged) {
          arena_row(ctx, out, rows.begin + run)[begin + piece] = merged;
        });
  });
}

}  // namespace plow::dev
