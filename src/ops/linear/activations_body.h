// What products read and make before they multiply: their operands, and the packet's activations in the form
// that the product takes.
#pragma once

#include "ops/glu/body.h"
#include "ops/linear/block_body.h"
#include "ops/rms_norm/body.h"

namespace plow::dev {

// An operator that is a product: its operands, null when it has none of that kind.
struct Product {
  const TensorEntry* x;
  const TensorEntry* matrix;
  const TensorEntry* out;
  Range k;                            // the columns of x and of the matrix that are multiplied
  const TensorEntry* gain = nullptr;  // of the norm that x goes through
  float eps = 0, offset = 0;          // of the norm
  const TensorEntry* up = nullptr;    // a matrix as large as the other, whose product is the gate of this one
  GluActivation activation = GluActivation::kSilu;
  const TensorEntry* added = nullptr;  // an activation of the output's shape
  const TensorEntry* bias = nullptr;
};

// Row groups that are read side by side at most: independent chains hide the latency of an FMA when rows are
// few.
constexpr uint32_t kMaxGroups = 4;
// Columns of a gated product that are made before they are combined: what few rows read side by side.
constexpr uint32_t kGluColumns = 16 * kMaxGroups;

// Where a packet keeps what it makes of its operands, in order: activations, a normalised row of them, a tile
// of the gated product, a bias in f32. Bytes from the beginning of the worker's scratch.
struct ProductScratch {
  uint32_t row, tile, bias, end;
};
PLOW_DEVICE ProductScratch product_scratch(const Product& product, ActivationForm form, uint32_t n_rows) {
  const uint32_t k = product.k.end - product.k.begin, row = ceil_div(k, 2) * 2;
  const bool normed = product.gain != nullptr;
  const auto lines = [](uint32_t bytes) { return ceil_div(bytes, 64) * 64; };
  ProductScratch places{};
  switch (form) {
    case ActivationForm::kFloats:
      places.tile = normed ? lines(n_rows * row * 4) : 0;
      break;
    case ActivationForm::kBf16Pairs:
      places.tile = lines(n_rows * row * 2);
      break;
    case ActivationForm::kBlocks:  // and one row as floats, before it is turned into blocks
      places.row = lines(n_rows * block_row_words(product.k) * 4);
      places.tile = places.row + (normed ? lines(k * 4) : 0);
      break;
  }
  places.bias = places.tile + (product.up != nullptr ? n_rows * kGluColumns * 4 : 0);
  places.end = places.bias + (product.bias != nullptr ? lines(product.out->cols * 4) : 0);
  return places;
}

// Floats or pairs: where they lie, or made in the scratch. `stride` becomes that of the rows.
template <class I, class P>
PLOW_DEVICE const typename P::X* row_activations(const BodyContext& ctx, const Product& product, Range rows,
                                                 size_t& stride) {
  constexpr bool kFloats = P::kForm == ActivationForm::kFloats;
  using Element = typename P::Element;
  const uint32_t k = product.k.end - product.k.begin;
  const auto from = [&](uint32_t row) { return arena_row(ctx, *product.x, row) + product.k.begin; };
  if constexpr (kFloats) {
    if (product.gain == nullptr) {
      stride = product.x->row_stride / sizeof(float);
      return from(rows.begin);
    }
  }
  const uint32_t padded = ceil_div(k, 2) * 2;
  stride = padded / (sizeof(typename P::X) / sizeof(Element));
  auto* made = reinterpret_cast<Element*>(ctx.scratch);
  const auto each_row = [&](const auto& make) {
    for (uint32_t row = rows.begin; row < rows.end; ++row) {
      Element* to = made + size_t{row - rows.begin} * padded;
      make(from(row), to);
      if (k % 2 != 0) to[k] = Element{};
    }
  };
  if (product.gain == nullptr) {
    each_row([&](const float* x, Element* to) {
      for_lanes(0, k, [&](uint32_t c, uint32_t n) { I::store_n(to + c, load_lanes<I>(x + c, n), n); });
    });
  } else {
    with_tape_type(ctx, *product.gain, [&](const auto* gain) {
      each_row([&](const float* x, Element* to) {
        normalise<I>(x, gain, k, product.eps, product.offset,
                     [&](uint32_t c, uint32_t n, typename I::Vec v) { I::store_n(to + c, v, n); });
      });
    });
  }
  return reinterpret_cast<const typename P::X*>(ctx.scratch);
}

// In blocks of integers, in the scratch.
template <class I>
PLOW_DEVICE const uint32_t* block_activations(const BodyContext& ctx, const Product& product, Range rows) {
  auto* made = reinterpret_cast<uint32_t*>(ctx.scratch);
  const auto to = [&](uint32_t row) { return made + size_t{row - rows.begin} * block_row_words(product.k); };
  if (product.gain == nullptr) {
    for (uint32_t row = rows.begin; row < rows.end; ++row)
      to_blocks<I>(arena_row(ctx, *product.x, row), product.k, to(row));
    return made;
  }
  const uint32_t k = product.k.end;
  const ProductScratch places = product_scratch(product, ActivationForm::kBlocks, rows.end - rows.begin);
  auto* floats = reinterpret_cast<float*>(ctx.scratch + places.row);
  with_tape_type(ctx, *product.gain, [&](const auto* gain) {
    for (uint32_t row = rows.begin; row < rows.end; ++row) {
      normalise_to<I>(arena_row(ctx, *product.x, row), gain, k, product.eps, product.offset, floats);
      to_blocks<I>(floats, product.k, to(row));
    }
  });
  return made;
}

// The packet's activations as P reads them, once for all columns.
template <class I, class P>
PLOW_DEVICE const typename P::X* product_activations(const BodyContext& ctx, const Product& product,
                                                     Range rows, size_t& stride) {
  if constexpr (P::kForm == ActivationForm::kBlocks) {
    stride = block_row_words(product.k);
    return block_activations<I>(ctx, product, rows);
  } else {
    return row_activations<I, P>(ctx, product, rows, stride);
  }
}

// The bias as floats, in the scratch unless it is stored so.
template <class I>
PLOW_DEVICE const float* product_bias(const BodyContext& ctx, const Packet& packet, const TensorEntry& bias,
                                      unsigned char* scratch) {
  if (bias.dtype == DType::kF32) return tape_data<float>(ctx, bias);
  float* wide = reinterpret_cast<float*>(scratch);
  with_tape_type(ctx, bias, [&](const auto* narrow) {
    for_columns(packet, bias.cols, [&](uint32_t begin, uint32_t end) {
      for_lanes(begin, end,
                [&](uint32_t c, uint32_t n) { I::store_n(wide + c, I::load_n(narrow + c, n), n); });
    });
  });
  return wide;
}

}  // namespace plow::dev
