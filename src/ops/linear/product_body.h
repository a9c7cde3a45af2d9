// The product that linear maps share: x W^T with W in Layout::kRows16Pairs, so a line of 64 or 128 bytes
// holds a column pair of 16 outputs and no sum runs across lanes. Before it activations may be normalised,
// after it a row may be added or an activation applied, so that an operator's body says only which
// (product_body).
//
// Every output element is one chain of fused multiply-adds over the columns in ascending order, whatever the
// blocking: its bits do not depend on how many rows share the step. (With bf16 pairs, one chain over the
// pairs.) What comes before and after has the bits of the operator that it stands for.
#pragma once

#include "ops/glu/body.h"
#include "ops/rms_norm/body.h"

namespace plow::dev {

// Bytes of a weight panel that stays in a first-level cache of 32 KiB while rows of activations pass it; a
// block of activations takes as much again.
constexpr uint32_t kPanelBytes = 12 * 1024;
// How far ahead of their use weights are asked for, over all streams of a block: 15 GB/s times a memory
// latency of 0.1 us are 1.5 KiB.
constexpr uint32_t kLinearAheadBytes = 4 * 1024;
// Row groups that are read side by side at most: independent chains hide the latency of an FMA when rows are
// few.
constexpr uint32_t kMaxGroups = 4;
// Elements of a line: 16 rows, 2 columns.
constexpr uint32_t kLineElements = 32;

// One call of the innermost block: R rows of activations, G row groups of weights, a run of column pairs.
struct LinearPanel {
  size_t x_stride;      // elements between rows of activations
  size_t group_stride;  // elements between row groups
  uint32_t n_pairs;
  bool half_pair;       // one column more
  bool accumulate;      // go on from what `out` holds
  uint32_t last_lanes;  // outputs of the last group that exist
  float* out;
  size_t out_stride;   // floats
  const float* added;  // to the sums, when they are complete; else null
  size_t added_stride;
  size_t ahead;        // elements from a line to the one prefetched with it
  uint32_t jump_pair;  // from this pair on, `ahead` grows by `jump`: to where the next block begins
  ptrdiff_t jump;
};

// f32 activations, weights widened to f32.
template <class I, class W>
struct FmaProduct {
  using Weight = W;
  using X = float;
  using Element = float;
  static constexpr uint32_t kXPerPair = 2;
  using Vec = typename I::Vec;

  template <int R, int G>
  static void pair(Vec (&acc)[R][G], const W* line, const float* x, const LinearPanel& panel) {
    half_pair(acc, line, x, panel);
    Vec odd[G];
    for (int g = 0; g < G; ++g) odd[g] = I::load_odd(line + g * panel.group_stride);
    add_column(acc, odd, x + 1, panel);
  }
  // The last column when their number is odd: the weights of the other are padding, and x ends.
  template <int R, int G>
  static void half_pair(Vec (&acc)[R][G], const W* line, const float* x, const LinearPanel& panel) {
    Vec even[G];
    for (int g = 0; g < G; ++g) even[g] = I::load_even(line + g * panel.group_stride);
    add_column(acc, even, x, panel);
  }

 private:
  template <int R, int G>
  static void add_column(Vec (&acc)[R][G], const Vec (&weights)[G], const float* x,
                         const LinearPanel& panel) {
    for (int r = 0; r < R; ++r) {
      const Vec value = I::set(x[r * panel.x_stride]);
      for (int g = 0; g < G; ++g) acc[r][g] = I::fma(value, weights[g], acc[r][g]);
    }
  }
};

// Activations rounded to bf16, in pairs (an odd last column is paired with 0).
template <class I>
struct PairProduct {
  using Weight = Bf16;
  using X = uint32_t;
  using Element = Bf16;
  static constexpr uint32_t kXPerPair = 1;
  using Vec = typename I::Vec;

  template <int R, int G>
  static void pair(Vec (&acc)[R][G], const Bf16* line, const uint32_t* x, const LinearPanel& panel) {
    for (int r = 0; r < R; ++r) {
      for (int g = 0; g < G; ++g)
        acc[r][g] = I::dot_pair(acc[r][g], line + g * panel.group_stride, x[r * panel.x_stride]);
    }
  }
  template <int R, int G>
  static void half_pair(Vec (&acc)[R][G], const Bf16* line, const uint32_t* x, const LinearPanel& panel) {
    pair(acc, line, x, panel);
  }
};

template <class I, class P, int R, int G>
PLOW_DEVICE void linear_block(const typename P::X* x, const typename P::Weight* w, const LinearPanel& panel) {
  using Vec = typename I::Vec;
  Vec acc[R][G];
  const auto lanes = [&](int g) { return g == G - 1 ? panel.last_lanes : 16u; };
  for (int r = 0; r < R; ++r) {
    for (int g = 0; g < G; ++g) {
      acc[r][g] =
          panel.accumulate ? load_lanes<I>(panel.out + r * panel.out_stride + 16 * g, lanes(g)) : I::zero();
    }
  }
  ptrdiff_t ahead = static_cast<ptrdiff_t>(panel.ahead);
  uint32_t p = 0;
  for (int part = 0; part < 2; ++part) {
    for (const uint32_t end = part == 0 ? panel.jump_pair : panel.n_pairs; p < end; ++p) {
      for (int g = 0; g < G; ++g) {
        const typename P::Weight* line = w + g * panel.group_stride + ahead;
        I::prefetch(line);
        if constexpr (sizeof(typename P::Weight) == 4) I::prefetch(line + kLineElements / 2);
      }
      P::pair(acc, w, x, panel);
      w += kLineElements;
      x += P::kXPerPair;
    }
    ahead += panel.jump;
  }
  if (panel.half_pair) P::half_pair(acc, w, x, panel);
  for (int r = 0; r < R; ++r) {
    for (int g = 0; g < G; ++g) {
      if (panel.added != nullptr) {
        acc[r][g] = I::add(load_lanes<I>(panel.added + r * panel.added_stride + 16 * g, lanes(g)), acc[r][g]);
      }
      store_lanes<I>(panel.out + r * panel.out_stride + 16 * g, acc[r][g], lanes(g));
    }
  }
}

// Groups that are read side by side when `rows` rows are: 4, 2 or 1, as accumulators allow.
template <class I>
constexpr uint32_t groups_for(uint32_t rows) {
  const uint32_t most = static_cast<uint32_t>(I::kAccumulators) / rows;
  return most >= kMaxGroups ? kMaxGroups : most >= 2 ? 2 : 1;
}

// linear_block for run-time `rows` in 1 .. R and `groups` in {1, 2, 4}, at most groups_for(rows).
template <class I, class P, int R>
PLOW_DEVICE void linear_block_of(uint32_t rows, uint32_t groups, const typename P::X* x,
                                 const typename P::Weight* w, const LinearPanel& panel) {
  if constexpr (R > 1) {
    if (rows < R) return linear_block_of<I, P, R - 1>(rows, groups, x, w, panel);
  }
  constexpr uint32_t kMost = groups_for<I>(R);
  if constexpr (kMost >= 4) {
    if (groups == 4) return linear_block<I, P, R, 4>(x, w, panel);
  }
  if constexpr (kMost >= 2) {
    if (groups == 2) return linear_block<I, P, R, 2>(x, w, panel);
  }
  linear_block<I, P, R, 1>(x, w, panel);
}

// A packet's rows times a matrix, or times a range of its columns.
template <class P>
struct LinearTask {
  const typename P::X* x;       // first row, first column of the range
  size_t x_stride;              // elements
  const typename P::Weight* w;  // first row of the matrix, first column of the range
  size_t group_stride;          // elements between the matrix's row groups
  uint32_t n_rows, k;           // k: columns of the range
  float* out;                   // first row, column out_column
  uint32_t out_column;
  size_t out_stride;   // floats
  const float* added;  // first row, column 0; null when nothing is added
  size_t added_stride;
};

// Output columns [begin, end), and which weights are read next: null when the columns that follow. Few rows:
// weights stream past them once. Many: a panel of weights stays in cache while all rows pass it.
template <class I, class P>
PLOW_DEVICE void linear_columns(const LinearTask<P>& task, uint32_t begin, uint32_t end,
                                const typename P::Weight* next) {
  using W = typename P::Weight;
  const uint32_t full_pairs = task.k / 2;
  const size_t range = size_t{ceil_div(task.k, 2)} * kLineElements;
  const uint32_t row_block = min_u32(task.n_rows, I::kRowBlock);
  const uint32_t most_groups = groups_for<I>(row_block);
  uint32_t groups = most_groups;
  for (uint32_t column = begin; column < end; column += 16 * groups) {
    while (16 * (groups - 1) >= end - column) groups /= 2;
    const W* first = task.w + column / 16 * task.group_stride;
    const W* after =
        column + 16 * groups >= end && next != nullptr ? next : first + groups * task.group_stride;
    const uint32_t panel_pairs = kPanelBytes / (kLineElements * static_cast<uint32_t>(sizeof(W)) * groups);
    const uint32_t pairs_at_once = task.n_rows > row_block ? panel_pairs : full_pairs;
    const uint32_t ahead_pairs =
        kLinearAheadBytes / (kLineElements * static_cast<uint32_t>(sizeof(W)) * groups);
    for (uint32_t pair = 0; pair < full_pairs || pair == 0; pair += pairs_at_once) {
      const uint32_t n_pairs = min_u32(pairs_at_once, full_pairs - pair);
      const bool last = pair + n_pairs == full_pairs;
      for (uint32_t row = 0; row < task.n_rows; row += row_block) {
        const LinearPanel panel{
            .x_stride = task.x_stride,
            .group_stride = task.group_stride,
            .n_pairs = n_pairs,
            .half_pair = last && task.k % 2 != 0,
            .accumulate = pair > 0,
            .last_lanes = min_u32(16, end - column - 16 * (groups - 1)),
            .out = task.out + row * task.out_stride + (column - task.out_column),
            .out_stride = task.out_stride,
            .added = last && task.added != nullptr ? task.added + row * task.added_stride + column : nullptr,
            .added_stride = task.added_stride,
            .ahead = size_t{ahead_pairs} * kLineElements,
            .jump_pair = last && n_pairs > ahead_pairs ? n_pairs - ahead_pairs
                         : last                        ? 0
                                                       : n_pairs,
            .jump = after - first - static_cast<ptrdiff_t>(range)};
        linear_block_of<I, P, I::kRowBlock>(min_u32(row_block, task.n_rows - row), groups,
                                            task.x + row * task.x_stride + size_t{pair} * P::kXPerPair,
                                            first + size_t{pair} * kLineElements, panel);
      }
      if (last) break;
    }
  }
}

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

// Columns of a gated product that are made before they are combined: what few rows read side by side.
constexpr uint32_t kGluColumns = 16 * kMaxGroups;

// Where a packet keeps what it makes of its operands, in order: activations, a tile of the gated product, a
// bias in f32. Bytes from the beginning of the worker's scratch.
struct ProductScratch {
  uint32_t tile, bias, end;
};
PLOW_DEVICE ProductScratch product_scratch(const Product& product, bool rounds, uint32_t n_rows) {
  const uint32_t k = product.k.end - product.k.begin, row = ceil_div(k, 2) * 2;
  const uint32_t element = static_cast<uint32_t>(rounds ? sizeof(Bf16) : sizeof(float));
  const bool made = rounds || product.gain != nullptr;
  const auto lines = [](uint32_t bytes) { return ceil_div(bytes, 64) * 64; };
  ProductScratch places{};
  places.tile = lines(made ? n_rows * row * element : 0);
  places.bias = places.tile + (product.up != nullptr ? n_rows * kGluColumns * 4 : 0);
  places.end = places.bias + (product.bias != nullptr ? lines(product.out->cols * 4) : 0);
  return places;
}

// The packet's activations as P reads them: where they lie, or made in the scratch, once for all columns.
// `stride` becomes that of its rows.
template <class I, class P>
PLOW_DEVICE const typename P::X* product_activations(const BodyContext& ctx, const Product& product,
                                                     Range rows, size_t& stride) {
  using Element = typename P::Element;
  const uint32_t k = product.k.end - product.k.begin;
  const auto from = [&](uint32_t row) { return arena_row(ctx, *product.x, row) + product.k.begin; };
  if constexpr (__is_same(Element, float)) {
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

// out[row, c] = act(out[row, c]) * tile[row, c] for the columns [begin, end), which the tile holds.
template <class I>
PLOW_DEVICE void combine_gated(GluActivation activation, uint32_t n_rows, uint32_t begin, uint32_t end,
                               const float* tile, float* out, size_t out_stride) {
  using Vec = typename I::Vec;
  with_activation<I>(activation, [&](const auto& act) {
    for (uint32_t row = 0; row < n_rows; ++row, tile += kGluColumns, out += out_stride) {
      for_lanes(begin, end, [&](uint32_t c, uint32_t n) {
        const Vec gate = load_lanes<I>(out + c, n), up = load_lanes<I>(tile + c - begin, n);
        store_lanes<I>(out + c, I::mul(act(gate), up), n);
      });
    }
  });
}

template <class I, class P>
PLOW_DEVICE void product_columns(const BodyContext& ctx, const Packet& packet, Range rows,
                                 const Product& product) {
  using W = typename P::Weight;
  constexpr bool kRounds = !__is_same(typename P::Element, float);
  const uint32_t n_rows = rows.end - rows.begin;
  const ProductScratch places = product_scratch(product, kRounds, n_rows);
  size_t stride = 0;
  const typename P::X* x = product_activations<I, P>(ctx, product, rows, stride);
  const size_t skipped = size_t{product.k.begin / 2} * kLineElements;
  LinearTask<P> task{.x = x,
                     .x_stride = stride,
                     .w = tape_data<W>(ctx, *product.matrix) + skipped,
                     .group_stride = size_t{ceil_div(product.matrix->cols, 2)} * kLineElements,
                     .n_rows = n_rows,
                     .k = product.k.end - product.k.begin,
                     .out = arena_row(ctx, *product.out, rows.begin),
                     .out_column = 0,
                     .out_stride = product.out->row_stride / sizeof(float),
                     .added = nullptr,
                     .added_stride = 0};
  if (product.added != nullptr) {
    task.added = arena_row(ctx, *product.added, rows.begin);
    task.added_stride = product.added->row_stride / sizeof(float);
  } else if (product.bias != nullptr) {
    task.added = product_bias<I>(ctx, packet, *product.bias, ctx.scratch + places.bias);
  }
  if (product.up == nullptr) {
    return for_columns(packet, product.out->cols, [&](uint32_t begin, uint32_t end) {
      linear_columns<I, P>(task, begin, end, nullptr);
    });
  }
  float* tile = reinterpret_cast<float*>(ctx.scratch + places.tile);
  LinearTask<P> up = task;
  up.w = tape_data<W>(ctx, *product.up) + skipped;
  up.out = tile;
  up.out_stride = kGluColumns;
  for_columns(packet, product.out->cols, [&](uint32_t begin, uint32_t end) {
    for (uint32_t column = begin; column < end; column += kGluColumns) {
      const uint32_t stop = min_u32(column + kGluColumns, end);
      up.out_column = column;
      linear_columns<I, P>(task, column, stop, up.w + column / 16 * task.group_stride);
      linear_columns<I, P>(up, column, stop, task.w + stop / 16 * task.group_stride);
      combine_gated<I>(product.activation, n_rows, column, stop, tile, task.out, task.out_stride);
    }
  });
}

// All of a packet that is a product, for one row tile.
template <class I>
PLOW_DEVICE void product_body(const BodyContext& ctx, const Packet& packet, uint32_t row_tile,
                              const Product& product) {
  const Range rows = packet_rows(ctx, packet, row_tile);
  with_tape_type(ctx, *product.matrix, [&]<class W>(const W*) {
    if constexpr (HasPairDot<I> && __is_same(W, Bf16)) {
      product_columns<I, PairProduct<I>>(ctx, packet, rows, product);
    } else {
      product_columns<I, FmaProduct<I, W>>(ctx, packet, rows, product);
    }
  });
}

// The columns of x: what most products take.
PLOW_DEVICE Range all_columns(const TensorEntry& x) { return {0, x.cols}; }

}  // namespace plow::dev
