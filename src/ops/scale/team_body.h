// scale, for a team: out = x * factor.
#pragma once

#include "interp/team.h"

namespace plow::dev {

template <class B>
PLOW_DEVICE_BODY void scale_team_body(const BodyContext& ctx, const Packet& packet, uint32_t row_tile) {
  const TensorEntry &x = operand(ctx, packet, 0), &out = operand(ctx, packet, 1);
  const float factor = immediate_f32(packet, 0);
  each_element<B>(ctx, packet, row_tile, out.cols, [&](uint32_t row, uint32_t c) {
    arena_row(ctx, out, row)[c] = B::mul(arena_row(ctx, x, row)[c], factor);
  });
}

}  // namespace plow::dev
