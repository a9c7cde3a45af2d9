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
  const TensorEntry &gate = operand(ctx, packet, 0), &up = operand(ctx, packet, 1),
                    &out = operand(ctx, packet, 2);
  const auto activation = static_cast<GluActivation>(packet.immediate[0]);
  each_element<B>(ctx, packet, row_tile, out.cols, [&](uint32_t row, uint32_t c) {
    const float x = activated<B>(activation, arena_row(ctx, gate, row)[c]);
    arena_row(ctx, out, row)[c] = B::mul(x, arena_row(ctx, up, row)[c]);
  });
}

}  // namespace plow::dev
