// linear_add: r + x W^T over a range of columns. r is added to the complete sum, not to what it begins with:
// a residual is far larger than the terms, and each of their sums would round at its size.
#pragma once

#include "ops/linear/product_body.h"

namespace plow::dev {

PLOW_DEVICE Product linear_add_product(const Packet& packet, const TensorEntry* tensors) {
  const auto operand = [&](uint32_t i) { return tensors + packet.operand[i]; };
  return {.x = operand(0),
          .matrix = operand(1),
          .out = operand(3),
          .k = {packet.immediate[0], packet.immediate[1]},
          .added = operand(2)};
}

template <class I>
PLOW_DEVICE void linear_add_body(const BodyContext& ctx, const Packet& packet, uint32_t row_tile) {
  product_body<I>(ctx, packet, row_tile, linear_add_product(packet, ctx.program->tensors));
}

}  // namespace plow::dev
