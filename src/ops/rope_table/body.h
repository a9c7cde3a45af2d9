// rope_table: columns [0, h) cos(p f_j) * factor, [h, 2h) sin(p f_j) * factor, for position p. Angles reach
// 10^5 and more, where a float has lost the fraction: they are doubles.
#pragma once

#include "ops/row_wise_body.h"

namespace plow::dev {

template <class I>
PLOW_DEVICE void rope_table_body(const BodyContext& ctx, const Packet& packet, uint32_t row_tile) {
  const TensorEntry& out = operand(ctx, packet, 2);
  const double* frequency = tape_data<double>(ctx, operand(ctx, packet, 0));
  const double factor = static_cast<double>(immediate_f32(packet, 0));
  const uint32_t half = out.cols / 2;
  const Range rows = packet_rows(ctx, packet, row_tile);
  for (uint32_t row = rows.begin; row < rows.end; ++row) {
    const double position = ctx.step->positions[row];
    float* to = arena_row(ctx, out, row);
    for (uint32_t j = 0; j < half; ++j) {
      double sine, cosine;
      I::sin_cos(position * frequency[j], &sine, &cosine);
      to[j] = static_cast<float>(cosine * factor);
      to[half + j] = static_cast<float>(sine * factor);
    }
  }
}

}  // namespace plow::dev
