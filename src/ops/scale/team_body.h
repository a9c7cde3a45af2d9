// scale, for a team: out = x * factor.
#pragma once

#include "interp/team.h"

namespace plow::dev {

template <class B>
PLOW_DEVICE_BODY void scale_team_body(const BodyContext& ctx, const Packet& packet, uint32_t row_tile) {
  const float factor = immediate_f32(packet, 0);
  map_elements<B>(ctx, packet, row_tile, operand(ctx, packet, 0), operand(ctx, packet, 1),
                  [&](float x) { return B::mul(x, factor); });
}

}  // namespace plow::dev
