// linear_part: x W^T over a range of columns, which begins with a pair of them.
#pragma once

#include "ops/linear/product_body.h"

namespace plow::dev {

PLOW_DEVICE Product linear_part_product(const Packet& packet, const TensorEntry* tensors) {
  const auto operand = [&](uint32_t i) { return tensors + packet.operand[i]; };
  return {.x = operand(0),
          .matrix = operand(1),
          .out = operand(2),
          .k = {packet.immediate[0], packet.immediate[1]}};
}

template <class I>
PLOW_DEVICE void linear_part_body(const BodyContext& ctx, const Packet& packet, uint32_t row_tile) {
  product_body<I>(ctx, packet, row_tile, linear_part_product(packet, ctx.program->tensors));
}

}  // namespace plow::dev
