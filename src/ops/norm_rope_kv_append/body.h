// norm_rope_kv_append: keys are normalised head by head and rotated on their way to the cache.
#pragma once

#include "ops/kv_append/body.h"
#include "ops/rms_norm/body.h"

namespace plow::dev {

template <class I>
PLOW_DEVICE void norm_rope_kv_append_body(const BodyContext& ctx, const Packet& packet, uint32_t row_tile) {
  const TensorEntry& k = operand(ctx, packet, 0);
  const TensorEntry& table = operand(ctx, packet, 3);
  const uint32_t head_dim = packet.immediate[0];
  float* made = reinterpret_cast<float*>(ctx.scratch);
  with_tape_type(ctx, operand(ctx, packet, 1), [&](const auto* gain) {
    append_heads(ctx, packet, row_tile, operand(ctx, packet, 2), operand(ctx, packet, 5),
                 [&](uint32_t row, uint32_t c) {
                   normalise_to<I>(arena_row(ctx, k, row) + c, gain, head_dim, immediate_f32(packet, 1),
                                   immediate_f32(packet, 2), made);
                   rotate_head<I>(made, arena_row(ctx, table, row), table.cols / 2, head_dim, made);
                   return made;
                 });
  });
}

}  // namespace plow::dev
