// gather_rows, for a team: row s of the output is row sample_rows[s] of x.
#pragma once

#include "interp/team.h"

namespace plow::dev {

template <class B>
PLOW_DEVICE_BODY void gather_rows_team_body(const BodyContext& ctx, const Packet& packet, uint32_t row_tile) {
  const TensorEntry& out = operand(ctx, packet, 2);
  const ActivationRows from = activation_rows(ctx, operand(ctx, packet, 0)), to = activation_rows(ctx, out);
  each_four<B>(
      ctx, packet, row_tile, out.cols,
      [&](uint32_t s, uint32_t c, uint32_t n) {
        return load_four(from.row(ctx.step->sample_rows[s]) + c, n);
      },
      [&](uint32_t s, uint32_t c, uint32_t n, const Quad& loaded) { store_four(to.row(s) + c, loaded, n); });
}

}  // namespace plow::dev
