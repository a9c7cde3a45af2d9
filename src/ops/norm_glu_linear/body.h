// norm_glu_linear: act(h Wg^T) * (h Wu^T), h = rms_norm(x).
#pragma once

#include "ops/linear/product_body.h"

namespace plow::dev {

PLOW_DEVICE Product norm_glu_linear_product(const Packet& packet, const TensorEntry* tensors) {
  const auto operand = [&](uint32_t i) { return tensors + packet.operand[i]; };
  return {.x = operand(0),
          .matrix = operand(2),
          .out = operand(4),
          .k = all_columns(*operand(0)),
          .gain = operand(1),
          .eps = immediate_f32(packet, 0),
          .offset = immediate_f32(packet, 1),
          .up = operand(3),
          .activation = static_cast<GluActivation>(packet.immediate[2])};
}

template <class I>
PLOW_DEVICE void norm_glu_linear_body(const BodyContext& ctx, const Packet& packet, uint32_t row_tile) {
  product_body<I>(ctx, packet, row_tile, norm_glu_linear_product(packet, ctx.program->tensors));
}

}  // namespace plow::dev
