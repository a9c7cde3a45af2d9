// glu, for a team: out = act(gate) * up.
#pragma once

#include "interp/team.h"
#include "ops/glu/body.h"

namespace plow::dev {

template <class B>
PLOW_DEVICE float activated(GluActivation activation, float x) {
  switch (activation) {
    case GluActivation::kSilu:
      return B::mul(x, logistic<B>(x));
    case GluActivation::kGeluTanh:
      return gelu_tanh<B>(x);
    case GluActivation::kGeluErf:
      return B::mul(x, normal_cdf<B>(x));
  }
  return x;
}

template <class B>
PLOW_DEVICE_BODY void glu_team_body(const BodyContext& ctx, const Packet& packet, uint32_t row_tile) {
  const ActivationRows up = activation_rows(ctx, operand(ctx, packet, 1));
  const auto activation = static_cast<GluActivation>(packet.immediate[0]);
  map_elements<B>(
      ctx, packet, row_tile, operand(ctx, packet, 0), [&](uint32_t row) { return up.row(row); },
      operand(ctx, packet, 2), [&](float g, float u) { return B::mul(activated<B>(activation, g), u); });
}

}  // namespace plow::dev
