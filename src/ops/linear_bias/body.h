// linear_bias: x W^T + b.
#pragma once

#include "ops/linear/product_body.h"

namespace plow::dev {

PLOW_DEVICE Product linear_bias_product(const Packet& packet, const TensorEntry* tensors) {
  const auto operand = [&](uint32_t i) { return tensors + packet.operand[i]; };
  return {.x = operand(0),
          .matrix = operand(1),
          .out = operand(3),
          .k = all_columns(*operand(0)),
          .bias = operand(2)};
}

template <class I>
PLOW_DEVICE void linear_bias_body(const BodyContext& ctx, const Packet& packet, uint32_t row_tile) {
  product_body<I>(ctx, packet, row_tile, linear_bias_product(packet, ctx.program->tensors));
}

}  // namespace plow::dev
