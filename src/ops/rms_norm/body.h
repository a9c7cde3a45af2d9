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

// Calls sink(column, lanes, Vec) for runs of up to 16 of the n values, normalised.
template <class I, class G, class F>
PLOW_DEVICE void normalise(const float* x, const G* gain, uint32_t n, float eps, float offset,
                           const F& sink) {
  using Vec = typename I::Vec;
  const Vec factor = I::set(1.0f / I::sqrt(mean_square<I>(x, n) + eps)), added = I::set(offset);
  for_lanes(0, n, [&](uint32_t c, uint32_t lanes) {
    const Vec g = I::add(load_lanes<I>(gain + c, lanes), added);
    sink(c, lanes, I::mul(I::mul(load_lanes<I>(x + c, lanes), factor), g));
  });
}

// Into `to`, which may be x.
template <class I, class G>
PLOW_DEVICE void normalise_to(const float* x, const G* gain, uint32_t n, float eps, float offset, float* to) {
  normalise<I>(x, gain, n, eps, offset,
               [&](uint32_t c, uint32_t lanes, typename I::Vec v) { I::store_n(to + c, v, lanes); });
}

template <class I>
PLOW_DEVICE void rms_norm_body(const BodyContext& ctx, const Packet& packet, uint32_t row_tile) {
  const TensorEntry& x = operand(ctx, packet, 0);
  const TensorEntry& out = operand(ctx, packet, 2);
  const float eps = immediate_f32(packet, 0), offset = immediate_f32(packet, 1);
  const uint32_t group = packet.immediate[2];
  const Range rows = packet_rows(ctx, packet, row_tile);
  with_tape_type(ctx, operand(ctx, packet, 1), [&](const auto* gain) {
    for (uint32_t row = rows.begin; row < rows.end; ++row) {
      for_columns(packet, out.cols, [&](uint32_t begin, uint32_t end) {
        for (uint32_t first = begin; first < end; first += group) {
          normalise_to<I>(arena_row(ctx, x, row) + first, gain, group, eps, offset,
                          arena_row(ctx, out, row) + first);
        }
      });
    }
  });
}

}  // namespace plow::dev
