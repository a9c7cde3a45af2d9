// rope_table, for a team: columns [0, h) cos(p f_j) * factor, [h, 2h) sin(p f_j) * factor, in double.
#pragma once

#include "interp/team.h"

namespace plow::dev {

template <class B>
PLOW_DEVICE_BODY void rope_table_team_body(const BodyContext& ctx, const Packet& packet, uint32_t row_tile) {
  const TensorEntry& out = operand(ctx, packet, 2);
  const double* frequency = tape_data<double>(ctx, operand(ctx, packet, 0));
  const double factor = static_cast<double>(immediate_f32(packet, 0));
  const uint32_t half = out.cols / 2;
  const Range rows = packet_rows(ctx, packet, row_tile);
  PLOW_UNROLL_BY(1)
  for (uint32_t i = B::thread(); i < half * (rows.end - rows.begin); i += B::n_threads()) {
    const uint32_t row = rows.begin + i / half, j = i % half;
    double sine, cosine;
    B::sin_cos(static_cast<double>(ctx.step->positions[row]) * frequency[j], &sine, &cosine);
    float* to = arena_row(ctx, out, row);
    to[j] = static_cast<float>(cosine * factor);
    to[half + j] = static_cast<float>(sine * factor);
  }
}

}  // namespace plow::dev
