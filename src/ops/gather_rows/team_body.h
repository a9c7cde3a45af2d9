// gather_rows, for a team: row s of the output is row sample_rows[s] of x.
#pragma once

#include "interp/team.h"

namespace plow::dev {

template <class B>
PLOW_DEVICE_BODY void gather_rows_team_body(const BodyContext& ctx, const Packet& packet, uint32_t row_tile) {
  const TensorEntry &x = operand(ctx, packet, 0), &out = operand(ctx, packet, 2);
  each_element<B>(ctx, packet, row_tile, out.cols, [&](uint32_t s, uint32_t c) {
    arena_row(ctx, out, s)[c] = arena_row(ctx, x, ctx.step->sample_rows[s])[c];
  });
}

}  // namespace plow::dev
