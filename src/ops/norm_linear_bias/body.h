// norm_linear_bias: rms_norm(x) W^T + b.
#pragma once

#include "ops/linear/product_body.h"

namespace plow::dev {

PLOW_DEVICE Product norm_linear_bias_product(const Packet& packet, const TensorEntry* tensors) {
  const auto operand = [&](uint32_t i) { return tensors + packet.operand[i]; };
  return {.x = operand(0),
          .matrix = operand(2),
          .out = operand(4),
          .k = all_columns(*operand(0)),
          .gain = operand(1),
          .eps = immediate_f32(packet, 0),
          .offset = immediate_f32(packet, 1),
          .bias = operand(3)};
}

template <class I>
PLOW_DEVICE void norm_linear_bias_body(const BodyContext& ctx, const Packet& packet, uint32_t row_tile) {
  product_body<I>(ctx, packet, row_tile, norm_linear_bias_product(packet, ctx.program->tensors));
}

}  // namespace plow::dev
