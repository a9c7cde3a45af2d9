// rms_norm, for a team: for each group of columns, x / sqrt(mean(x^2) + eps) * (g + offset). A wide group is
// the whole team's, a narrow one (a head's) a wave's.
#pragma once

#include "interp/team.h"

namespace plow::dev {

// Columns from which the team shares a group: below, its barriers cost more than the loads that they save.
constexpr uint32_t kTeamNormGroup = 1024;

// One group by the threads `first`, `first` + `stride`, ...; `sum` adds their parts up.
template <class B, class G, class F>
PLOW_DEVICE void norm_group(const float* x, float* out, uint32_t group, float eps, float offset,
                            const G* gain, uint32_t first, uint32_t stride, const F& sum) {
  float squares = 0;
  for (uint32_t c = first; c < group; c += stride) squares = B::fma(x[c], x[c], squares);
  const float factor = B::div(1.0f, B::sqrt(B::add(B::div(sum(squares), static_cast<float>(group)), eps)));
  for (uint32_t c = first; c < group; c += stride)
    out[c] = B::mul(B::mul(x[c], factor), B::add(to_float(gain[c]), offset));
}

template <class B>
PLOW_DEVICE_BODY void rms_norm_team_body(const BodyContext& ctx, const Packet& packet, uint32_t row_tile) {
  const TensorEntry &x = operand(ctx, packet, 0), &out = operand(ctx, packet, 2);
  const float eps = immediate_f32(packet, 0), offset = immediate_f32(packet, 1);
  const uint32_t group = packet.immediate[2];
  const bool wide = group >= kTeamNormGroup;
  const uint32_t step = wide ? 1 : n_waves<B>();
  const Range rows = packet_rows(ctx, packet, row_tile);
  with_tape_type(ctx, operand(ctx, packet, 1), [&](const auto* gain) {
    for_columns(packet, out.cols, [&](uint32_t begin, uint32_t end) {
      const uint32_t groups = (end - begin) / group, n = groups * (rows.end - rows.begin);
      for (uint32_t i = wide ? 0 : wave<B>(); i < n; i += step) {
        const uint32_t row = rows.begin + i / groups, column = begin + i % groups * group;
        const float* from = arena_row(ctx, x, row) + column;
        float* to = arena_row(ctx, out, row) + column;
        if (wide) {
          norm_group<B>(from, to, group, eps, offset, gain, B::thread(), B::n_threads(),
                        [&](float part) { return reduce_team<B>(part, Sum{}, ctx.shared); });
        } else {
          norm_group<B>(from, to, group, eps, offset, gain, lane<B>(), B::kLanes,
                        [&](float part) { return reduce_lanes<B>(part, B::kLanes, Sum{}); });
        }
      }
    });
  });
}

}  // namespace plow::dev
