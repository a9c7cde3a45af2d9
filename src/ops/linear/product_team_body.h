// What every operator that is a product does on a team: product_team_body, and where the tape's pieces for it
// come from.
#pragma once

#include "ops/linear/fma_pass.h"
#include "ops/linear/warp_pass.h"
#include "ops/linear/wave_pass.h"

namespace plow::dev {

// Bytes of the team's memory that a product needs.
template <class B>
constexpr uint32_t product_team_bytes() {
  uint32_t bytes = pass_floats<B>() * static_cast<uint32_t>(sizeof(float));
  if constexpr (HasWarpUnit<B>) bytes += B::kWaves * static_cast<uint32_t>(sizeof(WarpStage<B>));
  return bytes;
}

static_assert(kTapeRows == kPartRows);
// The products whose weights come by the tape, in a program that plays it.
PLOW_DEVICE bool comes_by_tape(const Packet& packet, const Product& product) {
  return product.matrix->dtype == DType::kBf16 && (packet.col_stride == 1 || packet.col_count == 1);
}

// Rows that a pass takes.
template <class B>
PLOW_DEVICE uint32_t rows_of_pass(DType matrix) {
  return matrix == DType::kBf16 && (HasWarpUnit<B> || HasMatrixUnit<B>) ? kPartRows : kFmaRows;
}

template <class B>
PLOW_DEVICE void make_pass(const ProductRows& rows, const ProductPass& pass, TapePlace* tape, float* squares,
                           float* parts) {
  const DType dtype = rows.product->matrix->dtype;
  if (dtype == DType::kBf16) {
    if constexpr (HasWarpUnit<B>) {
      auto* stage = reinterpret_cast<WarpStage<B>*>(parts + kPassSlots * slot_floats<B>());
      const bool few = rows.n <= kPackedRows;
      if constexpr (HasTape<B>) {
        if (tape != nullptr && few) return few_rows_pass<B, true>(rows, pass, tape, stage, squares, parts);
        if (tape != nullptr) return many_rows_pass<B, true>(rows, pass, tape, stage, squares, parts);
      }
      if (few) return few_rows_pass<B, false>(rows, pass, tape, stage, squares, parts);
      return many_rows_pass<B, false>(rows, pass, tape, stage, squares, parts);
    } else if constexpr (HasMatrixUnit<B>) {
      return wave_pass<B>(rows, pass, squares, parts);
    } else {
      return fma_pass<B, Bf16, kFmaRows>(rows, pass, squares, parts);
    }
  }
  if (dtype == DType::kF16) return fma_pass<B, F16, kFmaRows>(rows, pass, squares, parts);
  fma_pass<B, float, kFmaRows>(rows, pass, squares, parts);
}

// Rows of parts that a pass leaves for each row of activations.
template <class B>
PLOW_DEVICE uint32_t leaves_of(const ProductRows& rows) {
  const bool packed =
      HasWarpUnit<B> && rows.product->matrix->dtype == DType::kBf16 && rows.n <= kPackedRows;
  return packed ? kSplit : 1;
}

template <class B>
PLOW_DEVICE_BODY void product_team_body(const BodyContext& ctx, const Packet& packet, uint32_t row_tile,
                                        const Product& product) {
  const Range range = packet_rows(ctx, packet, row_tile);
  const TensorEntry& matrix = *product.matrix;
  const uint32_t element = matrix.dtype == DType::kF32 ? 4 : 2;
  TapePlace place;
  bool by_tape = false;
  if constexpr (HasTape<B>) {
    place = *ctx.tape;
    by_tape = place.plays && comes_by_tape(packet, product);
  }
  float* squares = reinterpret_cast<float*>(ctx.shared);
  float* parts = squares + kSquareFloats;
  const uint32_t step = rows_of_pass<B>(matrix.dtype);
  PLOW_UNROLL_BY(1)
  for (uint32_t row = range.begin; row < range.end; row += step) {
    const ProductRows rows{&ctx, &product, row, min_u32(step, range.end - row),
                           atom_shape(matrix.rows, matrix.cols, element), element};
    bool first = true;
    for_columns(packet, product.out->cols, [&](uint32_t begin, uint32_t end) {
      for_passes(product.up != nullptr, begin, end, [&](const ProductPass& pass) {
        make_pass<B>(rows, pass, by_tape ? &place : nullptr, first ? squares : nullptr, parts);
        first = false;
        B::settle();
        finish_pass<B>(rows, pass, end, squares, parts, leaves_of<B>(rows));
        B::settle();
      });
    });
  }
  if (by_tape) ctx.tape->n_pieces = place.n_pieces;
}

}  // namespace plow::dev
