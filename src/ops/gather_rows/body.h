// gather_rows: row s of the output is row sample_rows[s] of x.
#pragma once

#include "ops/row_wise_body.h"

namespace plow::dev {

template <class I>
PLOW_DEVICE void gather_rows_body(const BodyContext& ctx, const Packet& packet, uint32_t row_tile) {
  const TensorEntry& x = operand(ctx, packet, 0);
  const TensorEntry& out = operand(ctx, packet, 2);
  const Range rows = packet_rows(ctx, packet, row_tile);
  for (uint32_t s = rows.begin; s < rows.end; ++s) {
    const float* from = arena_row(ctx, x, ctx.step->sample_rows[s]);
    float* to = arena_row(ctx, out, s);
    for_columns(packet, out.cols, [&](uint32_t begin, uint32_t end) {
      __builtin_memcpy(to + begin, from + begin, (end - begin) * sizeof(float));
    });
  }
}

}  // namespace plow::dev
