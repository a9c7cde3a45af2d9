// rms_norm: for each group of columns, x / sqrt(mean(x^2) + eps) * (g + offset); g, of the tape, is the same
// for every group.
#pragma once

#include "ops/row_wise_body.h"

namespace plow::dev {

// The mean of squares of n values: four accumulators of 16 lanes (an FMA takes four cycles), added in a fixed
// order.
template <class I>
PLOW_DEVICE float mean_square(const float* x, uint32_t n) {
  using Vec = typename I::Vec;
  Vec sum[4] = {I::zero(), I::zero(), I::zero(), I::zero()};
  uint32_t c = 0;
  for (; c + 64 <= n; c += 64) {
    for (uint32_t i = 0; i < 4; ++i) {
      const Vec v = I::load(x + c + 16 * i);
      sum[i] = I::fma(v, v, sum[i]);
    }
  }
  for (uint32_t i = 0; c < n; c += 16, ++i) {
    const Vec v = I::load_n(x + c, n - c < 16 ? n - c : 16);
    sum[i] = I::fma(v, v, sum[i]);
  }
  return I::reduce_add(I::add(I::add(sum[0], sum[1]), I::add(sum[2], sum[3]))) / static_cast<float>(n);
}

template <class I>
PLOW_DEVICE void rms_norm_body(const BodyContext& ctx, const Packet& packet, uint32_t row_tile) {
  using Vec = typename I::Vec;
  const TensorEntry& x = operand(ctx, packet, 0);
  const TensorEntry& out = operand(ctx, packet, 2);
  const float eps = immediate_f32(packet, 0);
  const Vec offset = I::set(immediate_f32(packet, 1));
  const uint32_t group = packet.immediate[2];
  const Range rows = packet_rows(ctx, packet, row_tile);
  with_tape_type(ctx, operand(ctx, packet, 1), [&](const auto* gain) {
    for (uint32_t row = rows.begin; row < rows.end; ++row) {
      for_columns(packet, out.cols, [&](uint32_t begin, uint32_t end) {
        for (uint32_t first = begin; first < end; first += group) {
          const float* from = arena_row(ctx, x, row) + first;
          float* to = arena_row(ctx, out, row) + first;
          const Vec factor = I::set(1.0f / I::sqrt(mean_square<I>(from, group) + eps));
          for_lanes(0, group, [&](uint32_t c, uint32_t n) {
            const Vec g = I::add(n == 16 ? I::load(gain + c) : I::load_n(gain + c, n), offset);
            I::store_n(to + c, I::mul(I::mul(load_lanes<I>(from + c, n), factor), g), n);
          });
        }
      });
    }
  });
}

}  // namespace plow::dev
