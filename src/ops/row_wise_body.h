// Loops that the bodies of element by element operators share.
#pragma once

#include "interp/packet_view.h"
#include "interp/prims.h"

namespace plow::dev {

// Calls f(column, n) for runs of up to 16 columns of [begin, end).
template <class F>
PLOW_DEVICE void for_lanes(uint32_t begin, uint32_t end, const F& f) {
  for (uint32_t c = begin; c < end; c += 16) f(c, min_u32(16, end - c));
}

// A Vec of up to 16 elements of any type; a whole one without a mask.
template <class I, class T>
PLOW_DEVICE typename I::Vec load_lanes(const T* p, uint32_t n) {
  return n == 16 ? I::load(p) : I::load_n(p, n);
}
template <class I>
PLOW_DEVICE void store_lanes(float* p, typename I::Vec v, uint32_t n) {
  if (n == 16) {
    I::store(p, v);
  } else {
    I::store_n(p, v, n);
  }
}

// out[row, c] = f(Vec of the first input, row, c, n) over the packet's rows and columns.
template <class I, class F>
PLOW_DEVICE void map_rows(const BodyContext& ctx, const Packet& packet, uint32_t row_tile, uint32_t output,
                          const F& f) {
  const TensorEntry& x = operand(ctx, packet, 0);
  const TensorEntry& out = operand(ctx, packet, output);
  const Range rows = packet_rows(ctx, packet, row_tile);
  for (uint32_t row = rows.begin; row < rows.end; ++row) {
    const float* from = arena_row(ctx, x, row);
    float* to = arena_row(ctx, out, row);
    for_columns(packet, out.cols, [&](uint32_t begin, uint32_t end) {
      for_lanes(begin, end, [&](uint32_t c, uint32_t n) {
        store_lanes<I>(to + c, f(load_lanes<I>(from + c, n), row, c, n), n);
      });
    });
  }
}

}  // namespace plow::dev
