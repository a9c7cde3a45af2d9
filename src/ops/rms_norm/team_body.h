// rms_norm, for a team: for each group of columns, x / sqrt(mean(x^2) + eps) * (g + offset). A wide group is
// the whole team's, a narrow one (a head's) a wave's.
#pragma once

#include "interp/team.h"

namespace plow::dev {

// Columns from which the team shares a group: below, its barriers cost more than the loads that they save.
constexpr uint32_t kTeamNormGroup = 1024;

// Fours of a group that a thread holds in registers between its two looks at them: 4096 columns by 224
// threads. Of wider groups it loads them twice.
constexpr uint32_t kHeldFours = 5;

// One group of `group` columns by the threads `first`, `first` + `stride`, ...; sum(part) adds their parts
// up. `columns` of them are loaded at once: 4, or 1 where x is not aligned to fours. Hands sink(column, n,
// Quad normalised, loaded) what becomes of n columns, and what beside(column, n) had loaded with them.
template <class B, class G, class Beside, class F, class Sink>
PLOW_DEVICE void norm_group(const float* x, const G* gain, uint32_t group, uint32_t columns, float eps,
                            float offset, uint32_t first, uint32_t stride, const Beside& beside, const F& sum,
                            const Sink& sink) {
  struct Piece {
    Quad x;
    QuadOf<G> gain;
    decltype(beside(0u, 0u)) with_it;
  };
  Piece held[kHeldFours];
  const uint32_t pieces = columns == 4 ? ceil_div(group, 4) : group;
  // Calls f(held piece, its first column, how many columns) for what the thread has from piece `from` on.
  const auto each_held = [&](uint32_t from, const auto& f) {
    PLOW_UNROLL
    for (uint32_t j = 0; j < kHeldFours; ++j) {
      const uint32_t c = (from + j * stride) * columns;
      if (from + j * stride < pieces) f(held[j], c, min_u32(columns, group - c));
    }
  };
  const auto load = [&](uint32_t from) {
    each_held(from, [&](Piece& piece, uint32_t c, uint32_t n) {
      piece.x = load_four(x + c, n);
      piece.gain = load_four(gain + c, n);
      piece.with_it = beside(c, n);
    });
  };
  float squares = 0;
  PLOW_UNROLL_BY(1)
  for (uint32_t from = first; from < pieces; from += kHeldFours * stride) {
    load(from);
    each_held(from, [&](const Piece& piece, uint32_t, uint32_t) {
      PLOW_UNROLL
      for (uint32_t i = 0; i < 4; ++i) squares = B::fma(piece.x.value[i], piece.x.value[i], squares);
    });
  }
  const float factor = B::div(1.0f, B::sqrt(B::add(B::div(sum(squares), static_cast<float>(group)), eps)));
  const bool holds_all = pieces <= kHeldFours * stride;
  PLOW_UNROLL_BY(1)
  for (uint32_t from = first; from < pieces; from += kHeldFours * stride) {
    if (!holds_all) load(from);
    each_held(from, [&](const Piece& piece, uint32_t c, uint32_t n) {
      const Quad normalised = map_four(piece.x, piece.gain, [&](float value, float g) {
        return B::mul(B::mul(value, factor), B::add(g, offset));
      });
      sink(c, n, normalised, piece.with_it);
    });
  }
}

// Columns of a group that are loaded at once, in rows of `cols` columns.
PLOW_DEVICE uint32_t norm_columns(uint32_t group, uint32_t cols) {
  return group % 4 == 0 || group == cols ? 4 : 1;
}

// Where nothing is loaded beside x and gain.
struct Nothing {};

// All groups of the packet: beside(row, column, n), sink(row, column, n, Quad, what beside gave).
template <class B, class Beside, class Sink>
PLOW_DEVICE void norm_rows(const BodyContext& ctx, const Packet& packet, uint32_t row_tile, uint32_t cols,
                           uint32_t group, float eps, float offset, const Beside& beside, const Sink& sink) {
  const ActivationRows x = activation_rows(ctx, operand(ctx, packet, 0));
  const bool wide = group >= kTeamNormGroup;
  const uint32_t columns = norm_columns(group, cols);
  const uint32_t first = wide ? B::thread() : lane<B>(), stride = wide ? B::n_threads() : B::kLanes;
  const Range rows = packet_rows(ctx, packet, row_tile);
  with_tape_type(ctx, operand(ctx, packet, 1), [&](const auto* gain) {
    for_columns(packet, cols, [&](uint32_t begin, uint32_t end) {
      const uint32_t groups = (end - begin) / group, n = groups * (rows.end - rows.begin);
      PLOW_UNROLL_BY(1)
      for (uint32_t i = wide ? 0 : wave<B>(); i < n; i += wide ? 1 : n_waves<B>()) {
        const uint32_t in_rows = i / groups, row = rows.begin + in_rows,
                       column = begin + (i - in_rows * groups) * group;
        norm_group<B>(
            x.row(row) + column, gain, group, columns, eps, offset, first, stride,
            [&](uint32_t c, uint32_t count) { return beside(row, column + c, count); },
            [&](float part) {
              return wide ? reduce_team<B>(part, Sum{}, ctx.shared) : reduce_lanes<B>(part, B::kLanes, Sum{});
            },
            [&](uint32_t c, uint32_t count, const Quad& normalised, const auto& loaded) {
              sink(row, column + c, count, normalised, loaded);
            });
      }
    });
  });
}

template <class B>
PLOW_DEVICE_BODY void rms_norm_team_body(const BodyContext& ctx, const Packet& packet, uint32_t row_tile) {
  const TensorEntry& out = operand(ctx, packet, 2);
  const ActivationRows to = activation_rows(ctx, out);
  norm_rows<B>(
      ctx, packet, row_tile, out.cols, packet.immediate[2], immediate_f32(packet, 0),
      immediate_f32(packet, 1), [](uint32_t, uint32_t, uint32_t) { return Nothing{}; },
      [&](uint32_t row, uint32_t c, uint32_t n, const Quad& normalised, const Nothing&) {
        store_four(to.row(row) + c, normalised, n);
      });
}

}  // namespace plow::dev
