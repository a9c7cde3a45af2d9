// rope, for a team: in each head, for j < h, (x_j, x_{j+h}) -> (x_j c_j - x_{j+h} s_j, x_{j+h} c_j + x_j
// s_j); columns from 2h on are copied.
//
// A head is cut into pieces of up to four columns: those that are rotated with their partners h columns
// further, then those that are copied. Where fours do not begin at multiples of four, pieces have one column.
#pragma once

#include "interp/team.h"

namespace plow::dev {

struct HeadPieces {
  uint32_t half, columns;  // of a piece, 1 or 4
  uint32_t rotated, all;   // pieces

  // Piece p begins at this column.
  PLOW_DEVICE_MEMBER uint32_t column(uint32_t p) const {
    return p < rotated ? p * columns : 2 * half + (p - rotated) * columns;
  }
};
PLOW_DEVICE HeadPieces head_pieces(uint32_t head_dim, uint32_t half) {
  const bool fours = head_dim % 4 == 0 && half % 4 == 0;
  return fours ? HeadPieces{half, 4, half / 4, (head_dim - half) / 4}
               : HeadPieces{half, 1, half, head_dim - half};
}

// Cosines and sines of a piece that is rotated.
struct Angles {
  Quad cosine, sine;
};
PLOW_DEVICE Angles load_angles(const float* table, const HeadPieces& pieces, uint32_t p) {
  if (p >= pieces.rotated) return {};
  return {load_four(table + p * pieces.columns, pieces.columns),
          load_four(table + pieces.half + p * pieces.columns, pieces.columns)};
}

// A piece's columns, and their partners where it is rotated.
struct HeadPiece {
  Quad x, partner;
};
PLOW_DEVICE HeadPiece load_head_piece(const float* head, const HeadPieces& pieces, uint32_t p) {
  HeadPiece piece{load_four(head + pieces.column(p), pieces.columns), {}};
  if (p < pieces.rotated) piece.partner = load_four(head + pieces.half + p * pieces.columns, pieces.columns);
  return piece;
}

// Hands what the piece becomes to sink(first column, columns, Quad).
template <class B, class F>
PLOW_DEVICE void rotate_piece(const HeadPiece& piece, const Angles& angles, const HeadPieces& pieces,
                              uint32_t p, const F& sink) {
  if (p >= pieces.rotated) {
    sink(pieces.column(p), pieces.columns, piece.x);
    return;
  }
  Quad x, partner;
  PLOW_UNROLL
  for (uint32_t i = 0; i < 4; ++i) {
    const float a = piece.x.value[i], b = piece.partner.value[i], c = angles.cosine.value[i],
                s = angles.sine.value[i];
    x.value[i] = B::sub(B::mul(a, c), B::mul(b, s));
    partner.value[i] = B::add(B::mul(b, c), B::mul(a, s));
  }
  sink(p * pieces.columns, pieces.columns, x);
  sink(pieces.half + p * pieces.columns, pieces.columns, partner);
}

// All heads of the packet, rotated: sink(row, first column, columns, Quad).
template <class B, class F>
PLOW_DEVICE void rotate_heads(const BodyContext& ctx, const Packet& packet, uint32_t row_tile, uint32_t cols,
                              const TensorEntry& x, const TensorEntry& table, const F& sink) {
  constexpr uint32_t kAtOnce = 2;  // of four loads each
  const ActivationRows from = activation_rows(ctx, x), angles = activation_rows(ctx, table);
  const uint32_t head_dim = packet.immediate[0];
  const HeadPieces pieces = head_pieces(head_dim, table.cols / 2);
  struct Loaded {
    HeadPiece piece;
    Angles angles;
  };
  each_head_piece<B, kAtOnce>(
      ctx, packet, row_tile, cols, head_dim, pieces.all,
      [&](uint32_t row, uint32_t column, uint32_t p) {
        return Loaded{load_head_piece(from.row(row) + column, pieces, p),
                      load_angles(angles.row(row), pieces, p)};
      },
      [&](uint32_t row, uint32_t column, uint32_t p, const Loaded& loaded) {
        rotate_piece<B>(loaded.piece, loaded.angles, pieces, p,
                        [&](uint32_t c, uint32_t n, const Quad& four) { sink(row, column + c, n, four); });
      });
}

template <class B>
PLOW_DEVICE_BODY void rope_team_body(const BodyContext& ctx, const Packet& packet, uint32_t row_tile) {
  const TensorEntry& out = operand(ctx, packet, 2);
  const ActivationRows to = activation_rows(ctx, out);
  rotate_heads<B>(
      ctx, packet, row_tile, out.cols, operand(ctx, packet, 0), operand(ctx, packet, 1),
      [&](uint32_t row, uint32_t c, uint32_t n, const Quad& four) { store_four(to.row(row) + c, four, n); });
}

}  // namespace plow::dev
