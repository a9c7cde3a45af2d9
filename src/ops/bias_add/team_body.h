// bias_add, for a team: out = x + b, b of the tape, the same for every row.
#pragma once

#include "interp/team.h"

namespace plow::dev {

template <class B>
PLOW_DEVICE_BODY void bias_add_team_body(const BodyContext& ctx, const Packet& packet, uint32_t row_tile) {
  with_tape_type(ctx, operand(ctx, packet, 1), [&](const auto* bias) {
    map_elements<B>(
        ctx, packet, row_tile, operand(ctx, packet, 0), [&](uint32_t) { return bias; },
        operand(ctx, packet, 2), [](float a, float b) { return B::add(a, b); });
  });
}

}  // namespace plow::dev
