// The product that linear maps share: x W^T with W in Layout::kRows16Pairs, so a line of 64 or 128 bytes
// holds a column pair of 16 outputs and no sum runs across lanes, or in Layout::kRows16Blocks
// (block_body.h). Before it activations may be normalised,
// after it a row may be added or an activation applied, so that an operator's body says only which
// (product_body).
//
// Every output element is one chain of fused multiply-adds over the columns in ascending order, whatever the
// blocking: its bits do not depend on how many rows share the step. (With bf16 pairs, one chain over the
// pairs; with blocks, over the blocks.) What comes before and after has the bits of the operator that it
// stands for.
#pragma once

#include "ops/linear/activations_body.h"

namespace plow::dev {

// Bytes of a weight panel that stays in a first-level cache of 32 KiB while rows of activations pass it; a
// block of activations takes as much again.
constexpr uint32_t kPanelBytes = 12 * 1024;
// How far ahead of their use weights are asked for, over all streams of a block: 15 GB/s times a memory
// latency of 0.1 us are 1.5 KiB.
constexpr uint32_t kLinearAheadBytes = 4 * 1024;
template <class P>
constexpr uint32_t kStepBytes = P::kStepElements* static_cast<uint32_t>(sizeof(typename P::Weight));

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
  constexpr uint32_t kLineBytes = 64;  // of the caches
  for (int part = 0; part < 2; ++part) {
    for (const uint32_t end = part == 0 ? panel.jump_step : panel.n_steps; p < end; ++p) {
      for (int g = 0; g < G; ++g) {
        const auto* next = reinterpret_cast<const unsigned char*>(w + g * panel.group_stride + ahead);
        for (uint32_t byte = 0; byte < kStepBytes<P>; byte += kLineBytes) I::prefetch(next + byte);
      }
      P::step(acc, w, x, panel);
      w += P::kStepElements;
      x += P::kXPerStep;
    }
    ahead += panel.jump;
  }
  if constexpr (P::kStepColumns == 2) {
    if (panel.half_step) P::half_step(acc, w, x, panel);
  }
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
  const uint32_t full_steps = task.k / P::kStepColumns;
  const size_t range = size_t{ceil_div(task.k, P::kStepColumns)} * P::kStepElements;
  const uint32_t row_block = min_u32(task.n_rows, P::kRowBlock);
  const uint32_t most_groups = groups_for<I>(row_block);
  uint32_t groups = most_groups;
  for (uint32_t column = begin; column < end; column += 16 * groups) {
    while (16 * (groups - 1) >= end - column) groups /= 2;
    const W* first = task.w + column / 16 * task.group_stride;
    const W* after =
        column + 16 * groups >= end && next != nullptr ? next : first + groups * task.group_stride;
    const uint32_t steps_at_once =
        task.n_rows > row_block ? kPanelBytes / (kStepBytes<P> * groups) : full_steps;
    const uint32_t ahead_steps = ceil_div(kLinearAheadBytes, kStepBytes<P> * groups);
    for (uint32_t step = 0; step < full_steps || step == 0; step += steps_at_once) {
      const uint32_t n_steps = min_u32(steps_at_once, full_steps - step);
      const bool last = step + n_steps == full_steps;
      for (uint32_t row = 0; row < task.n_rows; row += row_block) {
        const LinearPanel panel{
            .x_stride = task.x_stride,
            .group_stride = task.group_stride,
            .n_steps = n_steps,
            .half_step = last && task.k % P::kStepColumns != 0,
            .accumulate = step > 0,
            .last_lanes = min_u32(16, end - column - 16 * (groups - 1)),
            .out = task.out + row * task.out_stride + (column - task.out_column),
            .out_stride = task.out_stride,
            .added = last && task.added != nullptr ? task.added + row * task.added_stride + column : nullptr,
            .added_stride = task.added_stride,
            .ahead = size_t{ahead_steps} * P::kStepElements,
            .jump_step = last && n_steps > ahead_steps ? n_steps - ahead_steps
                         : last                        ? 0
                                                       : n_steps,
            .jump = after - first - static_cast<ptrdiff_t>(range)};
        linear_block_of<I, P, P::kRowBlock>(min_u32(row_block, task.n_rows - row), groups,
                                            task.x + row * task.x_stride + size_t{step} * P::kXPerStep,
                                            first + size_t{step} * P::kStepElements, panel);
      }
      if (last) break;
    }
  }
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
  const uint32_t n_rows = rows.end - rows.begin;
  const ProductScratch places = product_scratch(product, P::kForm, n_rows);
  size_t stride = 0;
  const typename P::X* x = product_activations<I, P>(ctx, product, rows, stride);
  const Range steps{product.k.begin / P::kStepColumns, ceil_div(product.k.end, P::kStepColumns)};
  const size_t skipped = size_t{steps.begin} * P::kStepElements;
  LinearTask<P> task{
      .x = x,
      .x_stride = stride,
      .w = tape_data<W>(ctx, *product.matrix) + skipped,
      .group_stride = size_t{ceil_div(product.matrix->cols, P::kStepColumns)} * P::kStepElements,
      .n_rows = n_rows,
      .k = P::kForm == ActivationForm::kBlocks ? (steps.end - steps.begin) * P::kStepColumns
                                               : product.k.end - product.k.begin,
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
  if (product.matrix->dtype == DType::kQ8_0)
    return product_columns<I, BlockProduct<I, Q8Block<I>>>(ctx, packet, rows, product);
  if (product.matrix->dtype == DType::kQ4_0)
    return product_columns<I, BlockProduct<I, Q4Block<I>>>(ctx, packet, rows, product);
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
