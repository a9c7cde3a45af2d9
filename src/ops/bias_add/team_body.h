// bias_add, for a team: out = x + b, b of the tape, the same for every row.
#pragma once

#include "interp/team.h"

namespace plow::dev {

template <class B>
PLOW_DEVICE_BODY void bias_add_team_body(const BodyContext& ctx, const Packet& packet, uint32_t row_tile) {
  const TensorEntry &x = operand(ctx, packet, 0), &out = operand(ctx, packet, 2);
  with_tape_type(ctx, operand(ctx, packet, 1), [&](const auto* bias) {
    each_element<B>(ctx, packet, row_tile, out.cols, [&](uint32_t row, uint32_t c) {
      arena_row(ctx, out, row)[c] = B::add(arena_row(ctx, x, row)[c], to_float(bias[c]));
    });
  });
}

}  // namespace plow::dev
