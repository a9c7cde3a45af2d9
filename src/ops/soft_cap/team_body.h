// soft_cap, for a team: out = cap * tanh(x / cap).
#pragma once

#include "interp/team.h"
#include "ops/soft_cap/body.h"

namespace plow::dev {

template <class B>
PLOW_DEVICE_BODY void soft_cap_team_body(const BodyContext& ctx, const Packet& packet, uint32_t row_tile) {
  const float cap = immediate_f32(packet, 0);
  map_elements<B>(ctx, packet, row_tile, operand(ctx, packet, 0), operand(ctx, packet, 1),
                  [&](float x) { return soft_capped<B>(x, cap); });
}

}  // namespace plow::dev
