// A pass of a product by a matrix unit of waves of 64 lanes (HasMatrixUnit of interp/team.h), for bf16: half
// of the columns of an atom of two slots at once, times up to 16 rows. A lane's share of W is a unit of an
// atom. The three sets that activations are split into have a sum each, added at the end of a part.
#pragma once

#include "ops/linear/split_activations.h"
#include "ops/linear/team_product.h"

namespace plow::dev {

// Columns of a part of a pair of slots; `sum` and `squares` (of the lane's columns) as the unit's lanes hold
// them.
template <class B>
PLOW_DEVICE void wave_part(const ProductRows& rows, const ProductPass& pass, uint32_t slot, uint32_t part,
                           float (&sum)[4], float& squares) {
  const uint32_t in_pair = lane<B>() % kPartRows, quarter = lane<B>() / kPartRows;
  const uint32_t row = in_pair % kAtomRows;
  // A lane without a slot, or without a row, repeats the last one.
  slot = min_u32(slot + in_pair / kAtomRows, pass.n_slots() - 1);
  const float* x = rows.x(min_u32(in_pair, rows.n - 1));
  const bool float_gains = has_float_gain(*rows.product);
  const Range chunks = rows.chunks();
  float sums[kSplit][4] = {};
  squares = 0;
  PLOW_UNROLL_BY(1)
  for (uint32_t chunk = chunks.begin; chunk < chunks.end; ++chunk) {
    const unsigned char* atoms = slot_chunk(rows, pass, slot, chunk);
    PLOW_UNROLL_BY(1)
    for (uint32_t atom = part; atom < rows.shape.chunk_atoms; atom += kParts) {
      PLOW_UNROLL
      for (uint32_t half = 0; half < 2; ++half) {
        const uint32_t unit_of_row = half * 4 + quarter;
        const auto unit = *reinterpret_cast<const WeightUnit*>(
            atoms + atom * kAtomBytes + row * kAtomRowBytes + (unit_of_row ^ row) * kAtomUnitBytes);
        float activations[8];
        const uint32_t column = ((chunk * rows.shape.chunk_atoms + atom) * 8 + unit_of_row) * 8;
        load_activations<B>(rows, x + column, float_gains ? float_gain(rows) + column : nullptr, column, activations,
                            squares);
        const SplitActivations three = split(activations);
        PLOW_UNROLL
        for (uint32_t i = 0; i < kSplit; ++i) B::multiply_add(unit.words, three.words[i], sums[i]);
      }
    }
  }
  PLOW_UNROLL
  for (uint32_t i = 0; i < 4; ++i) sum[i] = B::add(sums[0][i], B::add(sums[1][i], sums[2][i]));
  squares = B::add(squares, B::lane_xor(squares, kPartRows));
  squares = B::add(squares, B::lane_xor(squares, 2 * kPartRows));
}

// All parts of a pass against up to 16 rows.
template <class B>
PLOW_DEVICE void wave_pass(const ProductRows& rows, const ProductPass& pass, float* squares, float* parts) {
  static_assert(B::kLanes == 64);
  const uint32_t in_pair = lane<B>() % kPartRows, quarter = lane<B>() / kPartRows;
  const uint32_t pieces = ceil_div(pass.n_slots(), 2) * kParts;
  PLOW_UNROLL_BY(1)
  for (uint32_t i = wave<B>(); i < pieces; i += n_waves<B>()) {
    const uint32_t part = i % kParts, first = i / kParts * 2;
    float sum[4], square;
    wave_part<B>(rows, pass, first, part, sum, square);
    PLOW_UNROLL
    for (uint32_t j = 0; j < 4; ++j) {
      const uint32_t output = 4 * quarter + j, slot = first + output / kAtomRows;
      parts[slot * kSlotFloats + (part * kPartRows + in_pair) * kAtomRows + output % kAtomRows] = sum[j];
    }
    if (squares != nullptr && first == 0 && quarter == 0) squares[part * kPartRows + in_pair] = square;
  }
}

}  // namespace plow::dev
