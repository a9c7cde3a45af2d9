// add, for a team: out = x + y.
#pragma once

#include "interp/team.h"

namespace plow::dev {

template <class B>
PLOW_DEVICE_BODY void add_team_body(const BodyContext& ctx, const Packet& packet, uint32_t row_tile) {
  const TensorEntry &x = operand(ctx, packet, 0), &y = operand(ctx, packet, 1),
                    &out = operand(ctx, packet, 2);
  each_element<B>(ctx, packet, row_tile, out.cols, [&](uint32_t row, uint32_t c) {
    arena_row(ctx, out, row)[c] = B::add(arena_row(ctx, x, row)[c], arena_row(ctx, y, row)[c]);
  });
}

}  // namespace plow::dev
