// linear, for a team: x W^T with W in Layout::kAtoms8x128, read straight from memory. What follows is for
// matrices that no matrix unit takes; matrix_team_body.h is for those.
//
// A row's atoms are cut into eight parts, and part p of every tile of 8 outputs is the work of wave p (mod
// the number of waves): so all waves load at once however few tiles a packet has. In a wave thirty-two lanes
// take a tile: four lanes an output, of which lane q takes units q and q + 4 of each atom, 16 bytes at a
// time. Every output is a chain of fused multiply-adds a lane and part over ascending columns; lanes are
// added as a tree, parts in order: an output's bits do not depend on how many rows share the step, nor on the
// packet.
#pragma once

#include "abi/layout.h"
#include "interp/team.h"
#include "ops/linear/matrix_team_body.h"

namespace plow::dev {

// Rows of activations that pass a tile of weights together.
constexpr uint32_t kTeamRows = 4;
// Tiles whose parts are in the team's memory at once.
constexpr uint32_t kTilesAtOnce = 16;
// Atoms whose units are loaded before the first is used: 8 loads of 16 bytes a lane are on their way.
constexpr uint32_t kAtomsAtOnce = 4;

constexpr uint32_t linear_team_bytes() {
  constexpr uint32_t kPlain = kTilesAtOnce * kLinearParts * kAtomRows * kTeamRows;
  return (matrix_team_floats() > kPlain ? matrix_team_floats() : kPlain) *
         static_cast<uint32_t>(sizeof(float));
}

template <class W>
PLOW_DEVICE float unit_value(const WeightUnit& unit, uint32_t i) {
  if constexpr (sizeof(W) == 4) {
    return bits_to<float>(unit.words[i]);
  } else {
    const uint32_t word = unit.words[i / 2];
    return to_float(W{static_cast<uint16_t>(i % 2 == 0 ? word & 0xffffu : word >> 16)});
  }
}

// Adds the products of a unit's columns to the rows' sums; `x` is each row at the unit's first column.
template <class B, class W, int R>
PLOW_DEVICE void add_unit(const WeightUnit& unit, const float* const (&x)[R], uint32_t column,
                          float (&sum)[R]) {
  constexpr uint32_t kValues = kAtomUnitBytes / sizeof(W);
  struct alignas(16) Four {
    float value[4];
  };
  PLOW_UNROLL
  for (uint32_t i = 0; i < kValues; i += 4) {
    PLOW_UNROLL
    for (int r = 0; r < R; ++r) {
      const Four four = *reinterpret_cast<const Four*>(x[r] + column + i);
      PLOW_UNROLL
      for (uint32_t j = 0; j < 4; ++j) sum[r] = B::fma(four.value[j], unit_value<W>(unit, i + j), sum[r]);
    }
  }
}

// The same of a unit that reaches beyond the last of k columns.
template <class B, class W, int R>
PLOW_DEVICE void add_last_unit(const WeightUnit& unit, const float* const (&x)[R], uint32_t column,
                               uint32_t k, float (&sum)[R]) {
  constexpr uint32_t kValues = kAtomUnitBytes / sizeof(W);
  PLOW_UNROLL
  for (uint32_t i = 0; i < kValues; ++i) {
    if (column + i >= k) break;
    PLOW_UNROLL
    for (int r = 0; r < R; ++r) sum[r] = B::fma(x[r][column + i], unit_value<W>(unit, i), sum[r]);
  }
}

// R rows against atoms [begin, end) of row tile `tile`; the sums are the same in all four lanes of an output.
template <class B, class W, int R>
PLOW_DEVICE void linear_part(const unsigned char* matrix, const AtomShape& shape, uint32_t tile,
                             uint32_t begin, uint32_t end, uint32_t k, const float* const (&x)[R],
                             float (&sum)[R]) {
  constexpr uint32_t kAtomColumns = kAtomRowBytes / sizeof(W), kUnitColumns = kAtomUnitBytes / sizeof(W);
  const uint32_t row = B::thread() % 32 / 4, quarter = B::thread() % 4;
  const auto unit_at = [&](uint32_t atom, uint32_t half) {
    const unsigned char* from =
        matrix + shape.chunk_offset(atom / shape.chunk_atoms, tile) + atom % shape.chunk_atoms * kAtomBytes;
    return *reinterpret_cast<const WeightUnit*>(from + row * kAtomRowBytes +
                                                ((half * 4 + quarter) ^ row) * kAtomUnitBytes);
  };
  PLOW_UNROLL
  for (int r = 0; r < R; ++r) sum[r] = 0;
  uint32_t atom = begin;
  for (; atom + kAtomsAtOnce <= end && (atom + kAtomsAtOnce) * kAtomColumns <= k; atom += kAtomsAtOnce) {
    WeightUnit units[2 * kAtomsAtOnce];
    PLOW_UNROLL
    for (uint32_t i = 0; i < 2 * kAtomsAtOnce; ++i) units[i] = unit_at(atom + i / 2, i % 2);
    PLOW_UNROLL
    for (uint32_t i = 0; i < 2 * kAtomsAtOnce; ++i)
      add_unit<B, W, R>(units[i], x, (atom + i / 2) * kAtomColumns + (i % 2 * 4 + quarter) * kUnitColumns,
                        sum);
  }
  for (; atom < end; ++atom) {
    for (uint32_t half = 0; half < 2; ++half)
      add_last_unit<B, W, R>(unit_at(atom, half), x,
                             atom * kAtomColumns + (half * 4 + quarter) * kUnitColumns, k, sum);
  }
  PLOW_UNROLL
  for (int r = 0; r < R; ++r) sum[r] = reduce_lanes<B>(sum[r], 4, Sum{});
}

// R rows from `row` on (the last ones once more where there are fewer) against the tiles of columns [begin,
// end).
template <class B, class W, int R>
PLOW_DEVICE void linear_rows(const BodyContext& ctx, const Packet& packet, uint32_t row, uint32_t n_rows,
                             uint32_t begin, uint32_t end) {
  static_assert(B::kLanes % 32 == 0, "thirty-two lanes take a tile");
  const TensorEntry &in = operand(ctx, packet, 0), &weights = operand(ctx, packet, 1),
                    &out = operand(ctx, packet, 2);
  const unsigned char* matrix = ctx.device->tape + weights.offset;
  const AtomShape shape = atom_shape(weights.rows, weights.cols, sizeof(W));
  const uint32_t atoms = shape.chunks * shape.chunk_atoms, k = in.cols;
  float* parts = reinterpret_cast<float*>(ctx.shared);  // [tile][part][row of the tile][R]
  const float* x[R];
  PLOW_UNROLL
  for (int r = 0; r < R; ++r) x[r] = arena_row(ctx, in, row + min_u32(static_cast<uint32_t>(r), n_rows - 1));
  const uint32_t first_tile = begin / kAtomRows, end_tile = ceil_div(end, kAtomRows);
  for (uint32_t batch = first_tile; batch < end_tile; batch += kTilesAtOnce) {
    const uint32_t tiles = min_u32(kTilesAtOnce, end_tile - batch);
    // A wave goes round as long as its first 32 lanes have work; the others repeat the last piece then.
    const uint32_t per_wave = B::kLanes / 32, pieces = tiles * kLinearParts;
    for (uint32_t i = wave<B>() * per_wave; i < pieces; i += n_waves<B>() * per_wave) {
      const uint32_t piece = min_u32(i + lane<B>() / 32, pieces - 1), tile = piece / kLinearParts,
                     part = piece % kLinearParts;
      float sum[R];
      linear_part<B, W, R>(matrix, shape, batch + tile, atoms * part / kLinearParts,
                           atoms * (part + 1) / kLinearParts, k, x, sum);
      if (B::thread() % 4 != 0) continue;
      PLOW_UNROLL
      for (int r = 0; r < R; ++r)
        parts[((tile * kLinearParts + part) * kAtomRows + B::thread() % 32 / 4) * R +
              static_cast<uint32_t>(r)] = sum[r];
    }
    B::settle();
    for (uint32_t i = B::thread(); i < tiles * kAtomRows * R; i += B::n_threads()) {
      const uint32_t r = i % R, tile_row = i / R % kAtomRows, tile = i / (R * kAtomRows),
                     column = (batch + tile) * kAtomRows + tile_row;
      if (r >= n_rows || column >= end) continue;
      float total = 0;
      PLOW_UNROLL
      for (uint32_t part = 0; part < kLinearParts; ++part)
        total = B::add(total, parts[((tile * kLinearParts + part) * kAtomRows + tile_row) * R + r]);
      arena_row(ctx, out, row + r)[column] = total;
    }
    B::settle();
  }
}

template <class B>
PLOW_DEVICE_BODY void linear_team_body(const BodyContext& ctx, const Packet& packet, uint32_t row_tile) {
  const Range rows = packet_rows(ctx, packet, row_tile);
  with_tape_type(ctx, operand(ctx, packet, 1), [&]<class W>(const W*) {
    for_columns(packet, operand(ctx, packet, 2).cols, [&](uint32_t begin, uint32_t end) {
      if constexpr (HasMatrixUnit<B> && kForMatrixUnit<W>) {
        for (uint32_t row = rows.begin; row < rows.end; row += kMatrixRows)
          matrix_rows<B>(ctx, packet, row, min_u32(kMatrixRows, rows.end - row), begin, end);
        return;
      }
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
