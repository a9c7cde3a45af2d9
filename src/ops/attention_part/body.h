// attention_part: attention's pass over a part of the positions; its outputs are stored as they are, with the
// maximum and the sum that attention_merge needs (abi/attention_parts.h).
#pragma once

#include "ops/attention/body.h"

namespace plow::dev {

template <class I>
PLOW_DEVICE void attention_part_body(const BodyContext& ctx, const Packet& packet, uint32_t row_tile) {
  const TensorEntry &q = operand(ctx, packet, 0), &cache = operand(ctx, packet, 1),
                    &out = operand(ctx, packet, 2);
  const AttentionParts layout{packet.immediate[0], packet.immediate[4], q.cols / cache.cols};
  const size_t bytes = layout.head_dim * sizeof(float);
  const auto load = [&](uint32_t row, uint32_t column, float* to) {
    __builtin_memcpy(to, arena_row(ctx, q, row) + column, bytes);
  };
  const auto write = [&](const AttentionPass& pass, uint32_t row, uint32_t column) {
    each_query(pass, [&](uint32_t i, uint32_t r, uint32_t head) {
      float* tile = arena_row(ctx, out, row + r) + column;
      __builtin_memcpy(tile + layout.output(head), pass.output + size_t{i} * padded_head(layout.head_dim),
                       bytes);
      tile[layout.maximum(head)] = pass.maximum[i];
      tile[layout.sum(head)] = pass.sum[i];
    });
  };
  attend_rows<I>(ctx, packet, row_tile, q, cache, out.cols, layout.parts, load, write);
}

}  // namespace plow::dev
