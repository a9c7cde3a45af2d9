// A pass of a product by fused multiply-adds, for matrices that no matrix unit takes: f32 and f16, and bf16
// where there is no unit. Thirty-two lanes take a part of a tile: four lanes an output, of which lane q takes
// every fourth eight columns of each atom. Every sum is a chain of fused multiply-adds a lane over ascending columns;
// the four lanes are added as a tree.
#pragma once

#include "ops/linear/team_product.h"

namespace plow::dev {

// Rows of activations that pass a tile of weights together.
constexpr uint32_t kFmaRows = 4;

template <class W>
PLOW_DEVICE float unit_value(const WeightUnit& unit, uint32_t i) {
  if constexpr (sizeof(W) == 4) {
    return bits_to<float>(unit.words[i]);
  } else {
    const uint32_t word = unit.words[i / 2];
    return to_float(W{static_cast<uint16_t>(i % 2 == 0 ? word & 0xffffu : word >> 16)});
  }
}

// One part of a slot against R rows (the last one once more where there are fewer); the sums are the same in
// all four lanes of an output. `squares` of the lane's columns. A lane takes eight columns at a time, which are
// one unit of an atom, or two.
template <class B, class W, int R>
PLOW_DEVICE void fma_part(const ProductRows& rows, const ProductPass& pass, uint32_t slot, uint32_t part,
                          float (&sum)[R], float (&squares)[R]) {
  constexpr uint32_t kAtomColumns = kAtomRowBytes / sizeof(W), kUnits = 8 * sizeof(W) / kAtomUnitBytes;
  const uint32_t row = B::thread() % 32 / 4, quarter = B::thread() % 4;
  const bool float_gains = has_float_gain(*rows.product);
  const Range chunks = rows.chunks();
  PLOW_UNROLL
  for (int r = 0; r < R; ++r) sum[r] = 0, squares[r] = 0;
  PLOW_UNROLL_BY(1)
  for (uint32_t chunk = chunks.begin; chunk < chunks.end; ++chunk) {
    const unsigned char* atoms = slot_chunk(rows, pass, slot, chunk);
    PLOW_UNROLL_BY(1)
    for (uint32_t atom = part; atom < rows.shape.chunk_atoms; atom += kParts) {
      PLOW_UNROLL_BY(1)
      for (uint32_t eight = quarter; eight < kAtomColumns / 8; eight += 4) {
        WeightUnit units[kUnits];
        PLOW_UNROLL
        for (uint32_t u = 0; u < kUnits; ++u)
          units[u] = *reinterpret_cast<const WeightUnit*>(atoms + atom * kAtomBytes + row * kAtomRowBytes +
                                                          ((eight * kUnits + u) ^ row) * kAtomUnitBytes);
        const uint32_t column = (chunk * rows.shape.chunk_atoms + atom) * kAtomColumns + eight * 8;
        PLOW_UNROLL
        for (int r = 0; r < R; ++r) {
          float x[8];
          const float* from = rows.x(min_u32(static_cast<uint32_t>(r), rows.n - 1)) + column;
          load_activations<B>(rows, from, float_gains ? float_gain(rows) + column : nullptr, column, x, squares[r]);
          PLOW_UNROLL
          for (uint32_t i = 0; i < 8; ++i)
            sum[r] = B::fma(x[i], unit_value<W>(units[i * kUnits / 8], i % (8 / kUnits)), sum[r]);
        }
      }
    }
  }
  PLOW_UNROLL
  for (int r = 0; r < R; ++r) {
    sum[r] = reduce_lanes<B>(sum[r], 4, Sum{});
    squares[r] = reduce_lanes<B>(squares[r], 4, Sum{});
  }
}

// All parts of a pass against up to R rows.
template <class B, class W, int R>
PLOW_DEVICE_CALL void fma_pass(const ProductRows& rows, const ProductPass& pass, float* squares, float* parts) {
  static_assert(B::kLanes % 32 == 0, "thirty-two lanes take a part");
  // A wave goes round as long as its first 32 lanes have work; the others repeat the last piece then.
  constexpr uint32_t kPerWave = B::kLanes / 32;
  const uint32_t pieces = pass.n_slots() * kParts;
  PLOW_UNROLL_BY(1)
  for (uint32_t i = wave<B>() * kPerWave; i < pieces; i += n_waves<B>() * kPerWave) {
    const uint32_t piece = min_u32(i + lane<B>() / 32, pieces - 1), slot = piece / kParts,
                   part = piece % kParts, output = B::thread() % 32 / 4;
    float sum[R], square[R];
    fma_part<B, W, R>(rows, pass, slot, part, sum, square);
    if (B::thread() % 4 != 0) continue;
    PLOW_UNROLL
    for (int r = 0; r < R; ++r) {
      const uint32_t row = part * kPartRows + static_cast<uint32_t>(r);
      parts[slot * kSlotFloats + row * kAtomRows + output] = sum[r];
      if (squares != nullptr && slot == 0 && output == 0) squares[row] = square[r];
    }
  }
}

}  // namespace plow::dev
