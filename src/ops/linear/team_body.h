// linear, for a team: x W^T with W in Layout::kAtoms8x128, read straight from memory.
//
// Thirty-two lanes take a tile of 8 outputs: four lanes an output, of which lane q takes units q and q + 4 of each
// atom, 16 bytes at a time. Every output is four chains of fused multiply-adds over ascending columns, added as a
// tree: its bits do not depend on how many rows share the step.
#pragma once

#include "abi/layout.h"
#include "interp/team.h"

namespace plow::dev {

// Rows of activations that pass a tile of weights together.
constexpr uint32_t kTeamRows = 4;

struct alignas(16) WeightUnit {
  uint32_t words[4];
};

template <class W>
PLOW_DEVICE float unit_value(const WeightUnit& unit, uint32_t i) {
  if constexpr (sizeof(W) == 4) {
    return bits_to<float>(unit.words[i]);
  } else {
    const uint32_t word = unit.words[i / 2];
    return to_float(W{static_cast<uint16_t>(i % 2 == 0 ? word & 0xffffu : word >> 16)});
  }
}

// Adds the products of a unit's columns [first, first + 16 / sizeof(W)), those below k, to the rows' sums.
template <class B, class W, int R>
PLOW_DEVICE void add_unit(const WeightUnit& unit, uint32_t first, uint32_t k, const float* const (&x)[R], float (&sum)[R]) {
  constexpr uint32_t kValues = kAtomUnitBytes / sizeof(W);
  if (first + kValues <= k) {
PLOW_UNROLL
    for (uint32_t i = 0; i < kValues; ++i) {
      const float w = unit_value<W>(unit, i);
PLOW_UNROLL
      for (int r = 0; r < R; ++r) sum[r] = B::fma(x[r][first + i], w, sum[r]);
    }
  } else {
    for (uint32_t i = 0; first + i < k; ++i) {
      const float w = unit_value<W>(unit, i);
PLOW_UNROLL
      for (int r = 0; r < R; ++r) sum[r] = B::fma(x[r][first + i], w, sum[r]);
    }
  }
}

// R rows against row tile `tile` of the matrix; the outputs' sums, the same in all four lanes of an output.
template <class B, class W, int R>
PLOW_DEVICE void linear_tile(const unsigned char* matrix, const AtomShape& shape, uint32_t tile, uint32_t k,
                             const float* const (&x)[R], float (&sum)[R]) {
  constexpr uint32_t kValues = kAtomUnitBytes / sizeof(W), kUnits = kAtomRowBytes / kAtomUnitBytes;
  const uint32_t row = B::thread() % 32 / 4, quarter = B::thread() % 4;
PLOW_UNROLL
  for (int r = 0; r < R; ++r) sum[r] = 0;
  for (uint32_t chunk = 0; chunk < shape.chunks; ++chunk) {
    const unsigned char* from = matrix + shape.chunk_offset(chunk, tile) + row * kAtomRowBytes;
    const uint32_t first = chunk * shape.chunk_atoms * kUnits;
PLOW_UNROLL_BY(4)
    for (uint32_t atom = 0; atom < shape.chunk_atoms; ++atom) {
PLOW_UNROLL
      for (uint32_t half = 0; half < 2; ++half) {
        const uint32_t u = half * 4 + quarter;
        const auto unit = *reinterpret_cast<const WeightUnit*>(from + atom * kAtomBytes + (u ^ row) * kAtomUnitBytes);
        add_unit<B, W, R>(unit, (first + atom * kUnits + u) * kValues, k, x, sum);
      }
    }
  }
PLOW_UNROLL
  for (int r = 0; r < R; ++r) sum[r] = reduce_lanes<B>(sum[r], 4, Sum{});
}

// R rows from `row` on (the last ones once more where there are fewer) against the tiles of columns [begin, end).
template <class B, class W, int R>
PLOW_DEVICE void linear_rows(const BodyContext& ctx, const Packet& packet, uint32_t row, uint32_t n_rows,
                             uint32_t begin, uint32_t end) {
  const TensorEntry &in = operand(ctx, packet, 0), &weights = operand(ctx, packet, 1), &out = operand(ctx, packet, 2);
  const unsigned char* matrix = ctx.device->tape + weights.offset;
  const AtomShape shape = atom_shape(weights.rows, weights.cols, sizeof(W));
  const float* x[R];
  float sum[R];
PLOW_UNROLL
  for (int r = 0; r < R; ++r) x[r] = arena_row(ctx, in, row + min_u32(static_cast<uint32_t>(r), n_rows - 1));
  // A wave goes round as long as its first 32 lanes have a tile; the others repeat the last one then.
  const uint32_t first_tile = begin / kAtomRows, tiles = ceil_div(end, kAtomRows) - first_tile;
  for (uint32_t i = wave<B>() * (B::kLanes / 32); i < tiles; i += B::n_threads() / 32) {
    const uint32_t own = i + lane<B>() / 32;
    const uint32_t tile = first_tile + min_u32(own, tiles - 1);
    linear_tile<B, W, R>(matrix, shape, tile, in.cols, x, sum);
    const uint32_t column = tile * kAtomRows + B::thread() % 32 / 4;
    if (B::thread() % 4 != 0 || own >= tiles || column >= end) continue;
PLOW_UNROLL
    for (int r = 0; r < R; ++r) {
      if (static_cast<uint32_t>(r) < n_rows) arena_row(ctx, out, row + static_cast<uint32_t>(r))[column] = sum[r];
    }
  }
}

template <class B>
PLOW_DEVICE_BODY void linear_team_body(const BodyContext& ctx, const Packet& packet, uint32_t row_tile) {
  const Range rows = packet_rows(ctx, packet, row_tile);
  with_tape_type(ctx, operand(ctx, packet, 1), [&]<class W>(const W*) {
    for_columns(packet, operand(ctx, packet, 2).cols, [&](uint32_t begin, uint32_t end) {
      if (rows.end - rows.begin == 1) {
        linear_rows<B, W, 1>(ctx, packet, rows.begin, 1, begin, end);
        return;
      }
      for (uint32_t row = rows.begin; row < rows.end; row += kTeamRows)
        linear_rows<B, W, kTeamRows>(ctx, packet, row, min_u32(kTeamRows, rows.end - row), begin, end);
    });
  });
}

}  // namespace plow::dev
