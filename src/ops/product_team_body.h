// What every operator that is a product does on a team: in pieces on a warp's matrix unit, or in passes.
#pragma once

#include "ops/linear/fma_pass.h"
#include "ops/linear/group_pass.h"
#include "ops/linear/piece_pass.h"
#include "ops/linear/wave_pass.h"
#include "ops/products.h"

namespace plow::dev {

// Bytes of the team's memory that a product needs.
template <class B>
constexpr uint32_t product_team_bytes() {
  constexpr uint32_t kPasses = kPassFloats * sizeof(float), kPieces = sizeof(PieceMemory);
  constexpr uint32_t kGroup = HasGroupUnit<B> ? sizeof(GroupMemory) + alignof(GroupMemory) : 0;
  constexpr uint32_t kOthers = HasWarpUnit<B> && kPieces > kPasses ? kPieces : kPasses;
  return kGroup > kOthers ? kGroup : kOthers;
}

// Rows that a pass takes.
template <class B>
PLOW_DEVICE uint32_t rows_of_pass(DType matrix) {
  return matrix == DType::kBf16 && HasMatrixUnit<B> ? kPartRows : kFmaRows;
}

template <class B>
PLOW_DEVICE void make_pass(const ProductRows& rows, const ProductPass& pass, float* squares, float* parts) {
  const DType dtype = rows.product->matrix->dtype;
  if (dtype == DType::kBf16) {
    if constexpr (HasMatrixUnit<B>) {
      return wave_pass<B>(rows, pass, squares, parts);
    } else {
      return fma_pass<B, Bf16, kFmaRows>(rows, pass, squares, parts);
    }
  }
  if (dtype == DType::kF16) return fma_pass<B, F16, kFmaRows>(rows, pass, squares, parts);
  fma_pass<B, float, kFmaRows>(rows, pass, squares, parts);
}

template <class B>
PLOW_DEVICE_BODY void passes_team_body(const BodyContext& ctx, const Packet& packet, const Product& product, Range range) {
  const TensorEntry& matrix = *product.matrix;
  const uint32_t element = matrix.dtype == DType::kF32 ? 4 : 2, step = rows_of_pass<B>(matrix.dtype);
  float* squares = reinterpret_cast<float*>(ctx.shared);
  float* parts = squares + kSquareFloats;
  PLOW_UNROLL_BY(1)
  for (uint32_t row = range.begin; row < range.end; row += step) {
    const ProductRows rows{&ctx, &product, row, min_u32(step, range.end - row),
                           atom_shape(matrix.rows, matrix.cols, element), element};
    bool first = true;
    for_columns(packet, product.out->cols, [&](uint32_t begin, uint32_t end) {
      for_passes(product.up != nullptr, begin, end, [&](const ProductPass& pass) {
        make_pass<B>(rows, pass, first ? squares : nullptr, parts);
        first = false;
        B::settle();
        finish_pass<B>(rows, pass, end, squares, parts);
        B::settle();
      });
    });
  }
}

// Of a packet that is not for a group.
template <class B>
PLOW_DEVICE void product_team_body(const BodyContext& ctx, const Packet& packet, uint32_t row_tile) {
  Product product{};
  if (!product_of(packet, ctx.program->tensors, product)) return B::trap();
  if constexpr (HasWarpUnit<B>) {
    if (comes_in_pieces(product)) return piece_team_body<B>(ctx, packet, product, row_tile);
  }
  passes_team_body<B>(ctx, packet, product, packet_rows(ctx, packet, row_tile));
}

}  // namespace plow::dev
