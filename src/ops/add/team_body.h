// add, for a team: out = x + y.
#pragma once

#include "interp/team.h"

namespace plow::dev {

template <class B>
PLOW_DEVICE_BODY void add_team_body(const BodyContext& ctx, const Packet& packet, uint32_t row_tile) {
  const ActivationRows y = activation_rows(ctx, operand(ctx, packet, 1));
  map_elements<B>(
      ctx, packet, row_tile, operand(ctx, packet, 0), [&](uint32_t row) { return y.row(row); },
      operand(ctx, packet, 2), [](float a, float b) { return B::add(a, b); });
}

}  // namespace plow::dev
