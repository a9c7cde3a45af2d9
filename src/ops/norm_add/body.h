// norm_add: r + rms_norm(y).
#pragma once

#include "ops/rms_norm/body.h"

namespace plow::dev {

template <class I>
PLOW_DEVICE void norm_add_body(const BodyContext& ctx, const Packet& packet, uint32_t row_tile) {
  const TensorEntry& out = operand(ctx, packet, 3);
  const Range rows = packet_rows(ctx, packet, row_tile);
  with_tape_type(ctx, operand(ctx, packet, 1), [&](const auto* gain) {
    for (uint32_t row = rows.begin; row < rows.end; ++row) {
      const float* residual = arena_row(ctx, operand(ctx, packet, 2), row);
      float* to = arena_row(ctx, out, row);
      normalise<I>(arena_row(ctx, operand(ctx, packet, 0), row), gain, out.cols, immediate_f32(packet, 0),
                   immediate_f32(packet, 1), [&](uint32_t c, uint32_t n, typename I::Vec v) {
                     store_lanes<I>(to + c, I::add(load_lanes<I>(residual + c, n), v), n);
                   });
    }
  });
}

}  // namespace plow::dev
