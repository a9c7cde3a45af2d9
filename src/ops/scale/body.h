// scale: out = x * factor.
#pragma once

#include "ops/row_wise_body.h"

namespace plow::dev {

template <class I>
PLOW_DEVICE void scale_body(const BodyContext& ctx, const Packet& packet, uint32_t row_tile) {
  const typename I::Vec factor = I::set(immediate_f32(packet, 0));
  map_rows<I>(ctx, packet, row_tile, 1,
              [&](typename I::Vec x, uint32_t, uint32_t, uint32_t) { return I::mul(x, factor); });
}

}  // namespace plow::dev
