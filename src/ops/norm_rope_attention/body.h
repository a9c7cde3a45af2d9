// norm_rope_attention: queries are normalised head by head and rotated when a pass over the cache begins.
#pragma once

#include "ops/attention/body.h"
#include "ops/rms_norm/body.h"
#include "ops/rope/body.h"

namespace plow::dev {

template <class I>
PLOW_DEVICE void norm_rope_attention_body(const BodyContext& ctx, const Packet& packet, uint32_t row_tile) {
  const TensorEntry& q = operand(ctx, packet, 0);
  const TensorEntry& table = operand(ctx, packet, 2);
  const uint32_t head_dim = packet.immediate[0];
  with_tape_type(ctx, operand(ctx, packet, 1), [&](const auto* gain) {
    attend_wholly<I>(ctx, packet, row_tile, 3, [&](uint32_t row, uint32_t column, float* to) {
      normalise_to<I>(arena_row(ctx, q, row) + column, gain, head_dim, immediate_f32(packet, 4), 0.0f, to);
      rotate_head<I>(to, arena_row(ctx, table, row), table.cols / 2, head_dim, to);
    });
  });
}

}  // namespace plow::dev
