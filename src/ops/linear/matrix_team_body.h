// linear, for a team whose waves have a matrix unit (interp/team.h), with W in bf16 and in
// Layout::kAtoms8x128.
//
// A step of the unit takes half of the columns of an atom, of two tiles of 8 outputs, times 16 rows: a lane's
// share of W is a unit of an atom. A row's activations are f32, and each is the sum of three bf16 numbers, of
// which every product with a weight is exact in f32: so a product is as good as one of f32 multiply-adds. As
// elsewhere a row's atoms are cut into eight parts, which are added in order, and a row's bits do not depend
// on the others.
#pragma once

#include "abi/layout.h"
#include "interp/team.h"

namespace plow::dev {

// Into which the columns of a product are cut: the waves of a team share them.
constexpr uint32_t kLinearParts = 8;
// Rows of activations, and outputs, of a step of the matrix unit.
constexpr uint32_t kMatrixRows = 16;
// Pairs of tiles of 8 outputs whose parts are in the team's memory at once.
constexpr uint32_t kMatrixPairsAtOnce = 4;
// Atoms whose units are loaded before the first is used: 8 loads of 16 bytes a lane are on their way.
constexpr uint32_t kMatrixAtomsAtOnce = 4;

// Of the team's memory: [pair][part][row of activations][output].
constexpr uint32_t matrix_team_floats() {
  return kMatrixPairsAtOnce * kLinearParts * kMatrixRows * kMatrixRows;
}

template <class W>
constexpr bool kForMatrixUnit = false;
template <>
constexpr bool kForMatrixUnit<Bf16> = true;

struct alignas(16) WeightUnit {
  uint32_t words[4];
};

// Eight consecutive activations as three sets of eight bf16 whose sums they are: the leading 8 bits of each,
// the next 8 and the last 8.
struct SplitActivations {
  uint32_t words[3][4];
};
PLOW_DEVICE SplitActivations split(const float (&x)[8]) {
  SplitActivations result = {};
  PLOW_UNROLL
  for (uint32_t i = 0; i < 8; ++i) {
    float rest = x[i];
    PLOW_UNROLL
    for (uint32_t part = 0; part < 3; ++part) {
      uint32_t bits;
      __builtin_memcpy(&bits, &rest, sizeof(bits));
      bits &= 0xffff0000u;
      rest -= bits_to<float>(bits);
      result.words[part][i / 2] |= i % 2 == 0 ? bits >> 16 : bits;
    }
  }
  return result;
}

// Columns [column, column + 8) of a row of k; those from k on are 0.
PLOW_DEVICE void load_activations(const float* x, uint32_t column, uint32_t k, float (&out)[8]) {
  struct alignas(16) Four {
    float value[4];
  };
  if (column + 8 <= k) {
    const Four first = *reinterpret_cast<const Four*>(x + column);
    const Four second = *reinterpret_cast<const Four*>(x + column + 4);
    PLOW_UNROLL
    for (uint32_t i = 0; i < 4; ++i) out[i] = first.value[i], out[4 + i] = second.value[i];
  } else {
    PLOW_UNROLL
    for (uint32_t i = 0; i < 8; ++i) out[i] = column + i < k ? x[column + i] : 0.0f;
  }
}

// Where a lane's units of a pair of tiles lie.
struct MatrixLane {
  const unsigned char* matrix;
  AtomShape shape;
  uint32_t tile, row, quarter;  // of 8 outputs, of the tile, of the columns of half an atom

  PLOW_DEVICE_MEMBER WeightUnit unit(uint32_t atom, uint32_t half) const {
    const unsigned char* from =
        matrix + shape.chunk_offset(atom / shape.chunk_atoms, tile) + atom % shape.chunk_atoms * kAtomBytes;
    return *reinterpret_cast<const WeightUnit*>(from + row * kAtomRowBytes +
                                                ((half * 4 + quarter) ^ row) * kAtomUnitBytes);
  }
};

// Atoms [begin, end) of the lane's pair of tiles against 16 rows, of which `x` is the lane's; `sum` as the
// matrix unit holds it.
template <class B>
PLOW_DEVICE void matrix_part(const MatrixLane& lane, uint32_t begin, uint32_t end, uint32_t k, const float* x,
                             float (&sum)[4]) {
  float sums[3][4] = {};
  for (uint32_t atom = begin; atom < end; atom += kMatrixAtomsAtOnce) {
    const uint32_t n = 2 * min_u32(kMatrixAtomsAtOnce, end - atom);
    WeightUnit units[2 * kMatrixAtomsAtOnce];
    PLOW_UNROLL
    for (uint32_t i = 0; i < 2 * kMatrixAtomsAtOnce; ++i)
      units[i] = lane.unit(min_u32(atom + i / 2, end - 1), i % 2);
    PLOW_UNROLL
    for (uint32_t i = 0; i < 2 * kMatrixAtomsAtOnce; ++i) {
      if (i >= n) break;
      float activations[8];
      load_activations(x, ((atom + i / 2) * 8 + i % 2 * 4 + lane.quarter) * 8, k, activations);
      const SplitActivations parts = split(activations);
      PLOW_UNROLL
      for (uint32_t part = 0; part < 3; ++part)
        B::multiply_add(units[i].words, parts.words[part], sums[part]);
    }
  }
  PLOW_UNROLL
  for (uint32_t i = 0; i < 4; ++i) sum[i] = B::add(sums[0][i], B::add(sums[1][i], sums[2][i]));
}

// n_rows <= 16 rows from `row` on against the tiles of columns [begin, end).
template <class B>
PLOW_DEVICE void matrix_rows(const BodyContext& ctx, const Packet& packet, uint32_t row, uint32_t n_rows,
                             uint32_t begin, uint32_t end) {
  static_assert(B::kLanes == 64);
  const TensorEntry &in = operand(ctx, packet, 0), &weights = operand(ctx, packet, 1),
                    &out = operand(ctx, packet, 2);
  const AtomShape shape = atom_shape(weights.rows, weights.cols, sizeof(Bf16));
  const uint32_t atoms = shape.chunks * shape.chunk_atoms;
  const uint32_t in_tile = lane<B>() % kMatrixRows, quarter = lane<B>() / kMatrixRows;
  // A lane without a row repeats the last one.
  const float* x = arena_row(ctx, in, row + min_u32(in_tile, n_rows - 1));
  float* parts = reinterpret_cast<float*>(ctx.shared);
  const uint32_t first_tile = begin / kAtomRows, end_tile = ceil_div(end, kAtomRows);
  for (uint32_t batch = first_tile; batch < end_tile; batch += 2 * kMatrixPairsAtOnce) {
    const uint32_t pairs = min_u32(kMatrixPairsAtOnce, ceil_div(end_tile - batch, 2));
    for (uint32_t i = wave<B>(); i < pairs * kLinearParts; i += n_waves<B>()) {
      const uint32_t part = i % kLinearParts, tile = batch + i / kLinearParts * 2 + in_tile / kAtomRows;
      const MatrixLane share{ctx.device->tape + weights.offset, shape, min_u32(tile, shape.row_tiles - 1),
                             in_tile % kAtomRows, quarter};
      float sum[4];
      matrix_part<B>(share, atoms * part / kLinearParts, atoms * (part + 1) / kLinearParts, in.cols, x, sum);
      PLOW_UNROLL
      for (uint32_t j = 0; j < 4; ++j)
        parts[(i * kMatrixRows + in_tile) * kMatrixRows + 4 * quarter + j] = sum[j];
    }
    B::settle();
    for (uint32_t i = B::thread(); i < pairs * n_rows * kMatrixRows; i += B::n_threads()) {
      const uint32_t output = i % kMatrixRows, r = i / kMatrixRows % n_rows,
                     pair = i / (kMatrixRows * n_rows);
      const uint32_t column = batch * kAtomRows + pair * kMatrixRows + output;
      if (column >= end) continue;
      float total = 0;
      PLOW_UNROLL
      for (uint32_t part = 0; part < kLinearParts; ++part)
        total = B::add(total, parts[((pair * kLinearParts + part) * kMatrixRows + r) * kMatrixRows + output]);
      arena_row(ctx, out, row + r)[column] = total;
    }
    B::settle();
  }
}

}  // namespace plow::dev
