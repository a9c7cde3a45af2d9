// norm_rope_kv_append, for a team: keys are normalised head by head and rotated on their way to the cache; a
// head is a wave's.
#pragma once

#include "ops/kv_append/team_body.h"
#include "ops/norm_rope/team_body.h"

namespace plow::dev {

template <class B>
PLOW_DEVICE_BODY void norm_rope_kv_append_team_body(const BodyContext& ctx, const Packet& packet,
                                                    uint32_t row_tile) {
  const TensorEntry& table = operand(ctx, packet, 3);
  const ActivationRows k = activation_rows(ctx, operand(ctx, packet, 0)),
                       v = activation_rows(ctx, operand(ctx, packet, 2)),
                       angles = activation_rows(ctx, table);
  with_tape_type(ctx, operand(ctx, packet, 1), [&](const auto* gain) {
    with_cache_rows(ctx, packet, 5, [&](const auto& cache) {
      const uint32_t head_dim = cache.head_dim, cols = cache.cache.cols;
      const HeadPieces keys = head_pieces(head_dim, table.cols / 2), values = head_pieces(head_dim, 0);
      each_head_of_wave<B>(ctx, packet, row_tile, cols, head_dim, [&](uint32_t row, uint32_t column) {
        auto* to = cache.keys(row, column);
        const auto load = [&](uint32_t p) { return load_head_piece(v.row(row) + column, values, p).x; };
        const auto store = [&](uint32_t p, const Quad& four) {
          store_rounded(cache.values(row, column) + values.column(p), four, values.columns);
        };
        // The lane's first values are on their way while the keys are normalised.
        const Quad first = lane<B>() < values.all ? load(lane<B>()) : Quad{};
        norm_rope_head<B>(ctx, k.row(row) + column, cols, gain, angles.row(row), keys, head_dim,
                          immediate_f32(packet, 1), immediate_f32(packet, 2),
                          [&](uint32_t c, uint32_t n, const Quad& four) { store_rounded(to + c, four, n); });
        PLOW_UNROLL_BY(1)
        for (uint32_t p = lane<B>(); p < values.all; p += B::kLanes)
          store(p, p == lane<B>() ? first : load(p));
      });
    });
  });
}

}  // namespace plow::dev
