// rope, for a team: in each head, for j < h, (x_j, x_{j+h}) -> (x_j c_j - x_{j+h} s_j, x_{j+h} c_j + x_j
// s_j); columns from 2h on are copied.
#pragma once

#include "interp/team.h"

namespace plow::dev {

// Column j of a head.
template <class B>
PLOW_DEVICE float rotated(const float* head, const float* table, uint32_t half, uint32_t j) {
  if (j >= 2 * half) return head[j];
  if (j < half) return B::sub(B::mul(head[j], table[j]), B::mul(head[half + j], table[half + j]));
  const uint32_t i = j - half;
  return B::add(B::mul(head[j], table[i]), B::mul(head[i], table[half + i]));
}

template <class B>
PLOW_DEVICE_BODY void rope_team_body(const BodyContext& ctx, const Packet& packet, uint32_t row_tile) {
  const TensorEntry &x = operand(ctx, packet, 0), &table = operand(ctx, packet, 1),
                    &out = operand(ctx, packet, 2);
  const uint32_t head_dim = packet.immediate[0];
  each_element<B>(ctx, packet, row_tile, out.cols, [&](uint32_t row, uint32_t c) {
    const float* head = arena_row(ctx, x, row) + c / head_dim * head_dim;
    arena_row(ctx, out, row)[c] = rotated<B>(head, arena_row(ctx, table, row), table.cols / 2, c % head_dim);
  });
}

}  // namespace plow::dev
