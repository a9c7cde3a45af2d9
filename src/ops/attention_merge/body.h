// attention_merge: the parts of a query's output, each brought to the largest maximum, over their sum. A part
// without positions has a factor of 0.
#pragma once

#include "abi/attention_parts.h"
#include "interp/vector_math.h"
#include "ops/row_wise_body.h"

namespace plow::dev {

// One query head; `tile` is part 0's.
template <class I>
PLOW_DEVICE void merge_query(const AttentionParts& layout, const float* tile, uint32_t query, float* out) {
  const size_t next = layout.tile_cols();
  float factor[kMostAttentionParts], largest = -__builtin_inff(), sum = 0;
  for (uint32_t p = 0; p < kMostAttentionParts; ++p) {
    factor[p] = p < layout.parts ? tile[p * next + layout.maximum(query)] : -__builtin_inff();
    largest = factor[p] > largest ? factor[p] : largest;
  }
  for (uint32_t p = 0; p < kMostAttentionParts; p += 16)
    I::store(factor + p, exp<I>(I::sub(I::load(factor + p), I::set(largest))));
  for (uint32_t p = 0; p < layout.parts; ++p) sum += factor[p] * tile[p * next + layout.sum(query)];
  const float* from = tile + layout.output(query);
  for_lanes(0, layout.head_dim, [&](uint32_t d, uint32_t n) {
    typename I::Vec value = I::zero();
    for (uint32_t p = 0; p < layout.parts; ++p)
      value = I::fma(I::set(factor[p]), load_lanes<I>(from + p * next + d, n), value);
    store_lanes<I>(out + d, I::div(value, I::set(sum)), n);
  });
}

template <class I>
PLOW_DEVICE void attention_merge_body(const BodyContext& ctx, const Packet& packet, uint32_t row_tile) {
  const TensorEntry &in = operand(ctx, packet, 0), &out = operand(ctx, packet, 1);
  const AttentionParts layout{packet.immediate[0], packet.immediate[1], packet.immediate[2]};
  const Range rows = packet_rows(ctx, packet, row_tile);
  for (uint32_t row = rows.begin; row < rows.end; ++row) {
    for_columns(packet, out.cols, [&](uint32_t begin, uint32_t end) {
      for (uint32_t column = begin; column < end; column += layout.head_dim) {
        const uint32_t head = column / layout.head_dim;
        merge_query<I>(layout, arena_row(ctx, in, row) + head / layout.queries * layout.cols(1),
                       head % layout.queries, arena_row(ctx, out, row) + column);
      }
    });
  }
}

}  // namespace plow::dev
