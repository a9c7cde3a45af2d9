// bias_add: out = x + b, b of the tape, the same for every row.
#pragma once

#include "ops/row_wise_body.h"

namespace plow::dev {

template <class I>
PLOW_DEVICE void bias_add_body(const BodyContext& ctx, const Packet& packet, uint32_t row_tile) {
  with_tape_type(ctx, operand(ctx, packet, 1), [&](const auto* bias) {
    map_rows<I>(ctx, packet, row_tile, 2, [&](typename I::Vec x, uint32_t, uint32_t c, uint32_t n) {
      return I::add(x, n == 16 ? I::load(bias + c) : I::load_n(bias + c, n));
    });
  });
}

}  // namespace plow::dev
