// soft_cap, for a team: out = cap * tanh(x / cap).
#pragma once

#include "interp/team.h"
#include "ops/soft_cap/body.h"

namespace plow::dev {

template <class B>
PLOW_DEVICE_BODY void soft_cap_team_body(const BodyContext& ctx, const Packet& packet, uint32_t row_tile) {
  const TensorEntry &x = operand(ctx, packet, 0), &out = operand(ctx, packet, 1);
  const float cap = immediate_f32(packet, 0);
  each_element<B>(ctx, packet, row_tile, out.cols, [&](uint32_t row, uint32_t c) {
    arena_row(ctx, out, row)[c] = soft_capped<B>(arena_row(ctx, x, row)[c], cap);
  });
}

}  // namespace plow::dev
