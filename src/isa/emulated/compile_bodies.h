// Defines the bodies of the team that a file names.
#pragma once

#include "interp/testing/emulated_team.h"
#include "isa/emulated/bodies.h"
#include "ops/team_bodies.h"

namespace plow::emulated {

template <class B>
void Bodies::run(const BodyContext& ctx, const Packet& packet, uint32_t row_tile) {
  dev::TeamBodies::run<B>(ctx, packet, row_tile);
}

}  // namespace plow::emulated
