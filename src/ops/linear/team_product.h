// Products for a team: what all of its ways to multiply have in common. W is in Layout::kAtoms8x128.
//
// A packet's columns are taken in passes of up to eight slots, each a tile of 8 outputs of a matrix (of a gated
// product, four tiles of either). A row's columns are cut into n parts: of every chunk, part p has atoms
// p, p + n, ... . The parts of a pass are made one by one, in ascending order of columns, and added in order:
// an output's bits do not depend on how many rows share the step, nor on the packet. Parts stay apart until
// then: of `leaves` rows for each row of activations, which are added up from the last one on.
//
// A norm before the product is applied to the columns by its gain, and to the sum by the root of the mean
// square, which is the same number for all columns.
#pragma once

#include "abi/layout.h"
#include "interp/tape.h"
#include "interp/team.h"
#include "ops/glu/team_body.h"
#include "ops/linear/product_body.h"

namespace plow::dev {

constexpr uint32_t kPassSlots = 8;
constexpr uint32_t kMostParts = 8;
template <class B>
constexpr uint32_t parts_of() {
  if constexpr (HasWarpUnit<B>) {
    static_assert(B::kWaves <= kMostParts);
    return B::kWaves;
  } else {
    return kMostParts;
  }
}
// Rows of parts that a slot has room for, and rows of activations that share a pass.
constexpr uint32_t kPartRows = 16;
// Floats of a slot's parts: [part][row][output]; eight more, so that equal places of neighbouring slots lie in
// different banks.
template <class B>
constexpr uint32_t slot_floats() {
  return parts_of<B>() * kPartRows * kAtomRows + kAtomRows;
}
// Floats of the squares of the activations: [part][row].
constexpr uint32_t kSquareFloats = kMostParts * kPartRows;

// Floats of the team's memory that all ways need: squares and parts.
template <class B>
constexpr uint32_t pass_floats() {
  return kSquareFloats + kPassSlots * slot_floats<B>();
}

struct alignas(16) WeightUnit {
  uint32_t words[kAtomUnitBytes / 4];
};

// Up to 16 rows of a packet's activations.
struct ProductRows {
  const BodyContext* ctx;
  const Product* product;
  uint32_t first, n;  // rows
  AtomShape shape;
  uint32_t element_bytes;  // of the matrix

  PLOW_DEVICE_MEMBER const float* x(uint32_t row) const { return arena_row(*ctx, *product->x, first + row); }
  // Chunks of columns that the product has to do with.
  PLOW_DEVICE_MEMBER Range chunks() const {
    const uint32_t columns = shape.chunk_atoms * kAtomRowBytes / element_bytes;
    return {product->k.begin / columns, ceil_div(product->k.end, columns)};
  }
};

// Tiles [first, first + n) of the matrix, or of both.
struct ProductPass {
  uint32_t first, n;
  bool gated;
  PLOW_DEVICE_MEMBER uint32_t n_slots() const { return gated ? 2 * n : n; }
  PLOW_DEVICE_MEMBER uint32_t tile(uint32_t slot) const { return first + (slot < n ? slot : slot - n); }
};

// Calls f(pass) for the passes of the columns [begin, end).
template <class F>
PLOW_DEVICE void for_passes(bool gated, uint32_t begin, uint32_t end, const F& f) {
  const uint32_t most = gated ? kPassSlots / 2 : kPassSlots, last = ceil_div(end, kAtomRows);
  PLOW_UNROLL_BY(1)
  for (uint32_t tile = begin / kAtomRows; tile < last; tile += most)
    f(ProductPass{tile, min_u32(most, last - tile), gated});
}

// Where the atoms of a slot's tile in a chunk of columns lie in the tape.
PLOW_DEVICE const unsigned char* slot_chunk(const ProductRows& rows, const ProductPass& pass, uint32_t slot,
                                            uint32_t chunk) {
  const Product& product = *rows.product;
  const TensorEntry& matrix = slot < pass.n ? *product.matrix : *product.up;
  return rows.ctx->device->tape + matrix.offset + rows.shape.chunk_offset(chunk, pass.tile(slot));
}

PLOW_DEVICE float tape_value(const BodyContext& ctx, const TensorEntry& tensor, uint32_t i) {
  if (tensor.dtype == DType::kF32) return tape_data<float>(ctx, tensor)[i];
  if (tensor.dtype == DType::kBf16) return to_float(tape_data<Bf16>(ctx, tensor)[i]);
  return to_float(tape_data<F16>(ctx, tensor)[i]);
}

struct alignas(16) FourFloats {
  float value[4];
};

// The gain of a column, of whatever type. Not inlined: where it is stored as floats nobody calls it, and the
// code of a pass should stay in the instruction cache.
template <class B>
PLOW_DEVICE_BODY float gain_of(const ProductRows& rows, uint32_t column) {
  return column < rows.product->k.end ? tape_value(*rows.ctx, *rows.product->gain, column) : 0.0f;
}
PLOW_DEVICE bool has_float_gain(const Product& product) {
  return product.gain != nullptr && product.gain->dtype == DType::kF32;
}
PLOW_DEVICE const float* float_gain(const ProductRows& rows) {
  return tape_data<float>(*rows.ctx, *rows.product->gain);
}

PLOW_DEVICE void load_floats(const float* from, float (&to)[8]) {
  PLOW_UNROLL
  for (uint32_t i = 0; i < 8; i += 4) {
    const FourFloats four = *reinterpret_cast<const FourFloats*>(from + i);
    PLOW_UNROLL
    for (uint32_t j = 0; j < 4; ++j) to[i + j] = four.value[j];
  }
}

// Eight columns of a row of activations from `column`, a multiple of 8, on, which lie at `x`, times the gain of
// the norm if there is one (at `gain`; null: not stored as floats); those outside of the product's are 0. Adds
// their squares to `square`. A row of the arena may be read up to the next multiple of 8 columns.
template <class B>
PLOW_DEVICE void load_activations(const ProductRows& rows, const float* x, const float* gain, uint32_t column,
                                  float (&out)[8], float& square) {
  const Product& product = *rows.product;
  const Range k = product.k;
  PLOW_UNROLL
  for (uint32_t i = 0; i < 8; ++i) out[i] = 0;
  if (column >= k.end || column + 8 <= k.begin) return;
  load_floats(x, out);
  PLOW_UNROLL
  for (uint32_t i = 0; i < 8; ++i) out[i] = column + i >= k.begin && column + i < k.end ? out[i] : 0.0f;
  if (product.gain == nullptr) return;
  PLOW_UNROLL
  for (uint32_t i = 0; i < 8; ++i) square = B::fma(out[i], out[i], square);
  float gains[8];
  if (gain != nullptr && column + 8 <= k.end) {
    load_floats(gain, gains);
  } else {
    PLOW_UNROLL
    for (uint32_t i = 0; i < 8; ++i) gains[i] = gain_of<B>(rows, column + i);
  }
  PLOW_UNROLL
  for (uint32_t i = 0; i < 8; ++i) out[i] = B::mul(out[i], B::add(gains[i], product.offset));
}

// The sum of the parts of an output: of `leaves` rows of parts for each row of activations.
template <class B>
PLOW_DEVICE float sum_of_parts(const float* parts, uint32_t slot, uint32_t row, uint32_t output, uint32_t leaves) {
  float total = 0;
  PLOW_UNROLL_BY(1)
  for (uint32_t part = 0; part < parts_of<B>(); ++part) {
    const float* leaf = parts + slot * slot_floats<B>() + (part * kPartRows + row * leaves) * kAtomRows + output;
    float sum = leaf[(leaves - 1) * kAtomRows];
    if (leaves == 3) sum = B::add(leaf[0], B::add(leaf[kAtomRows], sum));
    total = B::add(total, sum);
  }
  return total;
}

template <class B>
PLOW_DEVICE_BODY float gated(GluActivation activation, float gate, float up) {
  return B::mul(activated<B>(activation, gate), up);
}

// Sums of a pass become outputs. `leaves`: 1 or 3.
template <class B>
PLOW_DEVICE void finish_pass(const ProductRows& rows, const ProductPass& pass, uint32_t end,
                             const float* squares, const float* parts, uint32_t leaves) {
  const Product& product = *rows.product;
  const uint32_t width = pass.n * kAtomRows;
  PLOW_UNROLL_BY(1)
  for (uint32_t i = B::thread(); i < width * rows.n; i += B::n_threads()) {
    const uint32_t row = rows.n == 1 ? 0 : i / width, in_row = i - row * width;
    const uint32_t slot = in_row / kAtomRows, output = i % kAtomRows;
    const uint32_t column = (pass.first + slot) * kAtomRows + output;
    if (column >= end) continue;
    float factor = 1;
    if (product.gain != nullptr) {
      float square = 0;
      PLOW_UNROLL_BY(1)
      for (uint32_t part = 0; part < parts_of<B>(); ++part)
        square = B::add(square, squares[part * kPartRows + row]);
      const float mean = B::div(square, static_cast<float>(product.k.end - product.k.begin));
      factor = B::div(1.0f, B::sqrt(B::add(mean, product.eps)));
    }
    float value = B::mul(sum_of_parts<B>(parts, slot, row, output, leaves), factor);
    if (product.up != nullptr) {
      const float up = B::mul(sum_of_parts<B>(parts, pass.n + slot, row, output, leaves), factor);
      value = gated<B>(product.activation, value, up);
    }
    if (product.bias != nullptr) value = B::add(value, tape_value(*rows.ctx, *product.bias, column));
    if (product.added != nullptr)
      value = B::add(arena_row(*rows.ctx, *product.added, rows.first + row)[column], value);
    arena_row(*rows.ctx, *product.out, rows.first + row)[column] = value;
  }
}

}  // namespace plow::dev
