// norm_rope, for a team: each head normalised, then rotated; a head is a wave's. Bits are those of rms_norm
// and rope.
#pragma once

#include "ops/rms_norm/team_body.h"
#include "ops/rope/team_body.h"

namespace plow::dev {

// The widest head: a wave keeps it in the team's memory between norm and rotation.
constexpr uint32_t kTurnedHead = 512;

constexpr uint32_t norm_rope_team_bytes(uint32_t waves) {
  return waves * kTurnedHead * static_cast<uint32_t>(sizeof(float));
}

// One head of rows of `cols` columns: sink(column of the head, n, Quad) gets what becomes of it. All lanes of
// the wave must call. REQUIRES head_dim up to kTurnedHead.
template <class B, class G, class F>
PLOW_DEVICE void norm_rope_head(const BodyContext& ctx, const float* x, uint32_t cols, const G* gain,
                                const float* table, const HeadPieces& pieces, uint32_t head_dim, float eps,
                                float offset, const F& sink) {
  float* normalised = reinterpret_cast<float*>(ctx.shared) + wave<B>() * kTurnedHead;
  // The angles of the lane's first piece are on their way while the head is normalised.
  const Angles first = lane<B>() < pieces.all ? load_angles(table, pieces, lane<B>()) : Angles{};
  norm_group<B>(
      x, gain, head_dim, norm_columns(head_dim, cols), eps, offset, lane<B>(), B::kLanes,
      [](uint32_t, uint32_t) { return Nothing{}; },
      [](float part) { return reduce_lanes<B>(part, B::kLanes, Sum{}); },
      [&](uint32_t c, uint32_t n, const Quad& four, const Nothing&) { store_four(normalised + c, four, n); });
  B::settle_wave();
  PLOW_UNROLL_BY(1)
  for (uint32_t p = lane<B>(); p < pieces.all; p += B::kLanes) {
    const Angles angles = p == lane<B>() ? first : load_angles(table, pieces, p);
    rotate_piece<B>(load_head_piece(normalised, pieces, p), angles, pieces, p, sink);
  }
  B::settle_wave();  // the next head goes to the same place
}

// Calls f(row, column) for every head of the packet, wave by wave; all lanes of a wave call it together.
template <class B, class F>
PLOW_DEVICE void each_head_of_wave(const BodyContext& ctx, const Packet& packet, uint32_t row_tile,
                                   uint32_t cols, uint32_t head_dim, const F& f) {
  const Range rows = packet_rows(ctx, packet, row_tile);
  for_columns(packet, cols, [&](uint32_t begin, uint32_t end) {
    const uint32_t heads = (end - begin) / head_dim, n = heads * (rows.end - rows.begin);
    PLOW_UNROLL_BY(1)
    for (uint32_t i = wave<B>(); i < n; i += n_waves<B>()) {
      const uint32_t in_rows = i / heads;
      f(rows.begin + in_rows, begin + (i - in_rows * heads) * head_dim);
    }
  });
}

template <class B>
PLOW_DEVICE_BODY void norm_rope_team_body(const BodyContext& ctx, const Packet& packet, uint32_t row_tile) {
  const TensorEntry &table = operand(ctx, packet, 2), &out = operand(ctx, packet, 3);
  const ActivationRows x = activation_rows(ctx, operand(ctx, packet, 0)),
                       angles = activation_rows(ctx, table), to = activation_rows(ctx, out);
  const uint32_t head_dim = packet.immediate[0];
  const HeadPieces pieces = head_pieces(head_dim, table.cols / 2);
  with_tape_type(ctx, operand(ctx, packet, 1), [&](const auto* gain) {
    each_head_of_wave<B>(ctx, packet, row_tile, out.cols, head_dim, [&](uint32_t row, uint32_t column) {
      norm_rope_head<B>(
          ctx, x.row(row) + column, out.cols, gain, angles.row(row), pieces, head_dim,
          immediate_f32(packet, 1), immediate_f32(packet, 2),
          [&](uint32_t c, uint32_t n, const Quad& four) { store_four(to.row(row) + column + c, four, n); });
    });
  });
}

}  // namespace plow::dev
