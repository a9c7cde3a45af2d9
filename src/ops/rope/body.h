// rope: in each head, for j < h, (x_j, x_{j+h}) -> (x_j c_j - x_{j+h} s_j, x_{j+h} c_j + x_j s_j); columns
// from 2h on are copied. The table holds c in columns [0, h) and s in [h, 2h).
#pragma once

#include "ops/row_wise_body.h"

namespace plow::dev {

// Into `to`, which may be `from`.
template <class I>
PLOW_DEVICE void rotate_head(const float* from, const float* table, uint32_t half, uint32_t head_dim,
                             float* to) {
  using Vec = typename I::Vec;
  for_lanes(0, half, [&](uint32_t j, uint32_t n) {
    const Vec a = load_lanes<I>(from + j, n), b = load_lanes<I>(from + half + j, n);
    const Vec c = load_lanes<I>(table + j, n), s = load_lanes<I>(table + half + j, n);
    I::store_n(to + j, I::sub(I::mul(a, c), I::mul(b, s)), n);
    I::store_n(to + half + j, I::add(I::mul(b, c), I::mul(a, s)), n);
  });
  for (uint32_t j = 2 * half; j < head_dim; ++j) to[j] = from[j];
}

// Calls f(row, column) for every head of head_dim columns that the packet has.
template <class F>
PLOW_DEVICE void for_heads(const BodyContext& ctx, const Packet& packet, uint32_t row_tile, uint32_t cols,
                           uint32_t head_dim, const F& f) {
  const Range rows = packet_rows(ctx, packet, row_tile);
  for (uint32_t row = rows.begin; row < rows.end; ++row) {
    for_columns(packet, cols, [&](uint32_t begin, uint32_t end) {
      for (uint32_t c = begin; c < end; c += head_dim) f(row, c);
    });
  }
}

template <class I>
PLOW_DEVICE void rope_body(const BodyContext& ctx, const Packet& packet, uint32_t row_tile) {
  const TensorEntry& x = operand(ctx, packet, 0);
  const TensorEntry& table = operand(ctx, packet, 1);
  const TensorEntry& out = operand(ctx, packet, 2);
  const uint32_t head_dim = packet.immediate[0];
  for_heads(ctx, packet, row_tile, out.cols, head_dim, [&](uint32_t row, uint32_t c) {
    rotate_head<I>(arena_row(ctx, x, row) + c, arena_row(ctx, table, row), table.cols / 2, head_dim,
                   arena_row(ctx, out, row) + c);
  });
}

}  // namespace plow::dev
