// add: out = x + y.
#pragma once

#include "ops/row_wise_body.h"

namespace plow::dev {

template <class I>
PLOW_DEVICE void add_body(const BodyContext& ctx, const Packet& packet, uint32_t row_tile) {
  const TensorEntry& other = operand(ctx, packet, 1);
  map_rows<I>(ctx, packet, row_tile, 2, [&](typename I::Vec x, uint32_t row, uint32_t c, uint32_t n) {
    return I::add(x, load_lanes<I>(arena_row(ctx, other, row) + c, n));
  });
}

}  // namespace plow::dev
