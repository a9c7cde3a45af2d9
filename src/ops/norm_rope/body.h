// norm_rope: each head normalised, then rotated.
#pragma once

#include "ops/rms_norm/body.h"
#include "ops/rope/body.h"

namespace plow::dev {

template <class I>
PLOW_DEVICE void norm_rope_body(const BodyContext& ctx, const Packet& packet, uint32_t row_tile) {
  const TensorEntry& x = operand(ctx, packet, 0);
  const TensorEntry& table = operand(ctx, packet, 2);
  const TensorEntry& out = operand(ctx, packet, 3);
  const uint32_t head_dim = packet.immediate[0];
  with_tape_type(ctx, operand(ctx, packet, 1), [&](const auto* gain) {
    for_heads(ctx, packet, row_tile, out.cols, head_dim, [&](uint32_t row, uint32_t c) {
      float* to = arena_row(ctx, out, row) + c;
      normalise_to<I>(arena_row(ctx, x, row) + c, gain, head_dim, immediate_f32(packet, 1),
                      immediate_f32(packet, 2), to);
      rotate_head<I>(to, arena_row(ctx, table, row), table.cols / 2, head_dim, to);
    });
  });
}

}  // namespace plow::dev
