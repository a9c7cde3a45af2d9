// Products for a team: what all of its ways to multiply have in common. W is in Layout::kAtoms8x128.
//
// A packet's columns are taken in passes of up to eight slots, each a tile of 8 outputs of a matrix (of a gated
// product, four tiles of either). A row's columns are cut into n parts: of every chunk, part p has atoms
// p, p + n, ... . The parts of a pass are made one by one, in ascending order of columns, and added in order:
// an output's bits do not depend on how many rows share the step, nor on the packet.
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
constexpr uint32_t kParts = 8;
// Rows of parts that a slot has room for, and rows of activations that share a pass.
constexpr uint32_t kPartRows = 16;
// Floats of a slot's parts: [part][row][output]; eight more, so that equal places of neighbouring slots lie in
// different banks.
constexpr uint32_t kSlotFloats = kParts * kPartRows * kAtomRows + kAtomRows;
// Floats of the squares of the activations: [part][row].
constexpr uint32_t kSquareFloats = kParts * kPartRows;

// Floats of the team's memory that a pass needs: squares and parts.
constexpr uint32_t kPassFloats = kSquareFloats + kPassSlots * kSlotFloats;

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

// The gain of a column, of whatever type. Not inlined: where it is stored as floats nobody calls it.
template <class B>
PLOW_DEVICE_CALL float gain_of(const BodyContext& ctx, const TensorEntry& gain, uint32_t column) {
  return tape_value(ctx, gain, column);
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
    for (uint32_t i = 0; i < 8; ++i) gains[i] = column + i < k.end ? gain_of<B>(*rows.ctx, *product.gain, column + i) : 0.0f;
  }
  PLOW_UNROLL
  for (uint32_t i = 0; i < 8; ++i) out[i] = B::mul(out[i], B::add(gains[i], product.offset));
}

// The sum of the parts of an output.
template <class B>
PLOW_DEVICE float sum_of_parts(const float* parts, uint32_t slot, uint32_t row, uint32_t output) {
  const float* first = parts + slot * kSlotFloats + row * kAtomRows + output;
  float total = 0;
  PLOW_UNROLL_BY(1)
  for (uint32_t part = 0; part < kParts; ++part) total = B::add(total, first[part * kPartRows * kAtomRows]);
  return total;
}

template <class B>
PLOW_DEVICE_CALL float gated(GluActivation activation, float gate, float up) {
  return B::mul(activated<B>(activation, gate), up);
}

// What a norm multiplies a row by, of the sum of its squares.
template <class B>
PLOW_DEVICE float norm_factor(const Product& product, float square) {
  const float mean = B::div(square, static_cast<float>(product.k.end - product.k.begin));
  return B::div(1.0f, B::sqrt(B::add(mean, product.eps)));
}

// The output of a sum; `up`: the sum of the gated matrix, `factor`: norm_factor() of its row, if there is a norm, `added`:
// what the product adds to it, if anything.
template <class B>
PLOW_DEVICE float output_of(const BodyContext& ctx, const Product& product, uint32_t column, float sum, float up, float factor,
                            float added) {
  if (product.gain != nullptr) {
    sum = B::mul(sum, factor);
    up = B::mul(up, factor);
  }
  if (product.up != nullptr) sum = gated<B>(product.activation, sum, up);
  if (product.bias != nullptr) sum = B::add(sum, tape_value(ctx, *product.bias, column));
  if (product.added != nullptr) sum = B::add(added, sum);
  return sum;
}

// A sum becomes an output; `square`: the sum of the squares of the norm's row.
template <class B>
PLOW_DEVICE void store_output(const BodyContext& ctx, const Product& product, uint32_t row, uint32_t column, float sum,
                              float up, float square) {
  const float factor = product.gain != nullptr ? norm_factor<B>(product, square) : 0.0f;
  const float added = product.added != nullptr ? arena_row(ctx, *product.added, row)[column] : 0.0f;
  arena_row(ctx, *product.out, row)[column] = output_of<B>(ctx, product, column, sum, up, factor, added);
}

// Sums of a pass become outputs.
template <class B>
PLOW_DEVICE void finish_pass(const ProductRows& rows, const ProductPass& pass, uint32_t end, const float* squares,
                             const float* parts) {
  const Product& product = *rows.product;
  const uint32_t width = pass.n * kAtomRows;
  PLOW_UNROLL_BY(1)
  for (uint32_t i = B::thread(); i < width * rows.n; i += B::n_threads()) {
    const uint32_t row = rows.n == 1 ? 0 : i / width, in_row = i - row * width;
    const uint32_t slot = in_row / kAtomRows, output = in_row % kAtomRows;
    const uint32_t column = pass.first * kAtomRows + in_row;
    if (column >= end) continue;
    float square = 0, up = 0;
    if (product.gain != nullptr) {
      PLOW_UNROLL_BY(1)
      for (uint32_t part = 0; part < kParts; ++part) square = B::add(square, squares[part * kPartRows + row]);
    }
    if (product.up != nullptr) up = sum_of_parts<B>(parts, pass.n + slot, row, output);
    const float sum = sum_of_parts<B>(parts, slot, row, output);
    store_output<B>(*rows.ctx, product, rows.first + row, column, sum, up, square);
  }
}

}  // namespace plow::dev
