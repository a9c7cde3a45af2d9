// soft_cap: out = cap * tanh(x / cap).
#pragma once

#include "interp/vector_math.h"
#include "ops/row_wise_body.h"

namespace plow::dev {

template <class I>
PLOW_DEVICE typename I::Vec soft_capped(typename I::Vec x, typename I::Vec cap) {
  return I::mul(cap, tanh<I>(I::div(x, cap)));
}

template <class I>
PLOW_DEVICE void soft_cap_body(const BodyContext& ctx, const Packet& packet, uint32_t row_tile) {
  const typename I::Vec cap = I::set(immediate_f32(packet, 0));
  map_rows<I>(ctx, packet, row_tile, 1,
              [&](typename I::Vec x, uint32_t, uint32_t, uint32_t) { return soft_capped<I>(x, cap); });
}

}  // namespace plow::dev
