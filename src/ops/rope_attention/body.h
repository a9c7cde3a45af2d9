// rope_attention: queries are rotated when a pass over the cache begins.
#pragma once

#include "ops/attention/body.h"
#include "ops/rope/body.h"

namespace plow::dev {

template <class I>
PLOW_DEVICE void rope_attention_body(const BodyContext& ctx, const Packet& packet, uint32_t row_tile) {
  const TensorEntry& q = operand(ctx, packet, 0);
  const TensorEntry& table = operand(ctx, packet, 1);
  attend_wholly<I>(ctx, packet, row_tile, 2, [&](uint32_t row, uint32_t column, float* to) {
    rotate_head<I>(arena_row(ctx, q, row) + column, arena_row(ctx, table, row), table.cols / 2,
                   packet.immediate[0], to);
  });
}

}  // namespace plow::dev
