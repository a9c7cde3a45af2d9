// rope_kv_append: keys are rotated on their way to the cache.
#pragma once

#include "ops/kv_append/body.h"

namespace plow::dev {

template <class I>
PLOW_DEVICE void rope_kv_append_body(const BodyContext& ctx, const Packet& packet, uint32_t row_tile) {
  const TensorEntry& k = operand(ctx, packet, 0);
  const TensorEntry& table = operand(ctx, packet, 2);
  float* rotated = reinterpret_cast<float*>(ctx.scratch);
  append_heads(ctx, packet, row_tile, operand(ctx, packet, 1), operand(ctx, packet, 4),
               [&](uint32_t row, uint32_t c) {
                 rotate_head<I>(arena_row(ctx, k, row) + c, arena_row(ctx, table, row), table.cols / 2,
                                packet.immediate[0], rotated);
                 return rotated;
               });
}

}  // namespace plow::dev
