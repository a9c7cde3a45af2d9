// norm_add, for a team: r + rms_norm(y).
#pragma once

#include "ops/rms_norm/team_body.h"

namespace plow::dev {

template <class B>
PLOW_DEVICE_BODY void norm_add_team_body(const BodyContext& ctx, const Packet& packet, uint32_t row_tile) {
  const TensorEntry& out = operand(ctx, packet, 3);
  const ActivationRows residual = activation_rows(ctx, operand(ctx, packet, 2)),
                       to = activation_rows(ctx, out);
  norm_rows<B>(
      ctx, packet, row_tile, out.cols, out.cols, immediate_f32(packet, 0), immediate_f32(packet, 1),
      [&](uint32_t row, uint32_t c, uint32_t n) { return load_four(residual.row(row) + c, n); },
      [&](uint32_t row, uint32_t c, uint32_t n, const Quad& normalised, const Quad& added) {
        store_four(to.row(row) + c,
                   map_four(added, normalised, [](float a, float b) { return B::add(a, b); }), n);
      });
}

}  // namespace plow::dev
