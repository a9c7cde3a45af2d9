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

template <class B>
PLOW_DEVICE_BODY void attention_merge_team_body(const BodyContext& ctx, const Packet& packet,
                                                uint32_t row_tile) {
  const TensorEntry &in = operand(ctx, packet, 0), &out = operand(ctx, packet, 1);
  const AttentionParts layout{packet.immediate[0], packet.immediate[1], packet.immediate[2]};
  const Range rows = packet_rows(ctx, packet, row_tile);
  const bool may_be_whole = has_many_rows(*ctx.program, packet);
  const uint64_t whole_at = layout.part_of_whole(row_tile) * layout.tile_cols();
  for_columns(packet, out.cols, [&](uint32_t begin, uint32_t end) {
    each_piece<B, 1>(
        rows.end - rows.begin, end - begin,
        [&](uint32_t run, uint32_t piece) {
          const uint32_t column = begin + piece, head = column / layout.head_dim, c = column % layout.head_dim;
          const float* kv_head = arena_row(ctx, in, rows.begin + run) + head / layout.queries * layout.cols(1);
          const float* whole = kv_head + whole_at;
          if (may_be_whole && whole[layout.maximum(head % layout.queries)] == kWholeInOnePart)
            return whole[layout.output(head % layout.queries) + c];
          return merged_column<B>(layout, kv_head, head % layout.queries, c);
        },
        [&](uint32_t run, uint32_t piece, float merged) {
          arena_row(ctx, out, rows.begin + run)[begin + piece] = merged;
        });
  });
}

}  // namespace plow::dev
