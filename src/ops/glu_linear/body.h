// glu_linear: act(x Wg^T) * (x Wu^T).
#pragma once

#include "ops/linear/product_body.h"

namespace plow::dev {

PLOW_DEVICE Product glu_linear_product(const Packet& packet, const TensorEntry* tensors) {
  const auto operand = [&](uint32_t i) { return tensors + packet.operand[i]; };
  return {.x = operand(0),
          .matrix = operand(1),
          .out = operand(3),
          .k = all_columns(*operand(0)),
          .up = operand(2),
          .activation = static_cast<GluActivation>(packet.immediate[0])};
}

template <class I>
PLOW_DEVICE void glu_linear_body(const BodyContext& ctx, const Packet& packet, uint32_t row_tile) {
  product_body<I>(ctx, packet, row_tile, glu_linear_product(packet, ctx.program->tensors));
}

}  // namespace plow::dev
