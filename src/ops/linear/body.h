// linear: x W^T with W in Layout::kRows16Pairs, so a line of 64 or 128 bytes holds a column pair of 16
// outputs and no sum runs across lanes.
//
// Every output element is one chain of fused multiply-adds over the columns in ascending order, whatever the
// blocking: its bits do not depend on how many rows share the step. (With bf16 pairs, one chain over the
// pairs.)
#pragma once

#include "ops/row_wise_body.h"

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
  bool accumulate;      // add to what `out` holds
  uint32_t last_lanes;  // outputs of the last group that exist
  float* out;
  size_t out_stride;   // floats
  size_t ahead;        // elements from a line to the one prefetched with it
  uint32_t jump_pair;  // from this pair on, `ahead` grows by `jump`, over the groups that other streams of
                       // the block read
  size_t jump;
};

// f32 activations, weights widened to f32.
template <class I, class W>
struct FmaProduct {
  using Weight = W;
  using X = float;
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
  size_t ahead = panel.ahead;
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
      float* to = panel.out + r * panel.out_stride + 16 * g;
      if (lanes(g) == 16) {
        I::store(to, acc[r][g]);
      } else {
        I::store_n(to, acc[r][g], lanes(g));
      }
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

// A packet's rows and one column range of it.
template <class P>
struct LinearTask {
  const typename P::X* x;       // first row
  size_t x_stride;              // elements
  const typename P::Weight* w;  // the whole matrix
  uint32_t n_rows, k;
  float* out;         // first row, column 0
  size_t out_stride;  // floats
};

// Output columns [begin, end). Few rows: weights stream past them once. Many: a panel of weights stays in
// cache while all rows pass it.
template <class I, class P>
PLOW_DEVICE void linear_columns(const LinearTask<P>& task, uint32_t begin, uint32_t end) {
  using W = typename P::Weight;
  const uint32_t full_pairs = task.k / 2;
  const size_t group_stride = size_t{ceil_div(task.k, 2)} * kLineElements;
  const uint32_t row_block = min_u32(task.n_rows, I::kRowBlock);
  const uint32_t most_groups = groups_for<I>(row_block);
  uint32_t groups = most_groups;
  for (uint32_t column = begin; column < end; column += 16 * groups) {
    while (16 * (groups - 1) >= end - column) groups /= 2;
    const W* first = task.w + column / 16 * group_stride;
    const uint32_t panel_pairs = kPanelBytes / (kLineElements * static_cast<uint32_t>(sizeof(W)) * groups);
    const uint32_t pairs_at_once = task.n_rows > row_block ? panel_pairs : full_pairs;
    const uint32_t ahead_pairs =
        kLinearAheadBytes / (kLineElements * static_cast<uint32_t>(sizeof(W)) * groups);
    for (uint32_t pair = 0; pair < full_pairs || pair == 0; pair += pairs_at_once) {
      const uint32_t n_pairs = min_u32(pairs_at_once, full_pairs - pair);
      const bool last = pair + n_pairs == full_pairs;
      for (uint32_t row = 0; row < task.n_rows; row += row_block) {
        const LinearPanel panel{task.x_stride,
                                group_stride,
                                n_pairs,
                                last && task.k % 2 != 0,
                                pair > 0,
                                min_u32(16, end - column - 16 * (groups - 1)),
                                task.out + row * task.out_stride + column,
                                task.out_stride,
                                size_t{ahead_pairs} * kLineElements,
                                last && n_pairs > ahead_pairs ? n_pairs - ahead_pairs
                                : last                        ? 0
                                                              : n_pairs,
                                (groups - 1) * group_stride};
        linear_block_of<I, P, I::kRowBlock>(min_u32(row_block, task.n_rows - row), groups,
                                            task.x + row * task.x_stride + size_t{pair} * P::kXPerPair,
                                            first + size_t{pair} * kLineElements, panel);
      }
      if (last) break;
    }
  }
}

template <class I, class P>
PLOW_DEVICE void linear_packet(const BodyContext& ctx, const Packet& packet, Range rows,
                               const typename P::X* x, size_t x_stride, const typename P::Weight* w) {
  const TensorEntry& out = operand(ctx, packet, 2);
  const LinearTask<P> task{x,
                           x_stride,
                           w,
                           rows.end - rows.begin,
                           operand(ctx, packet, 0).cols,
                           arena_row(ctx, out, rows.begin),
                           out.row_stride / sizeof(float)};
  for_columns(packet, out.cols,
              [&](uint32_t begin, uint32_t end) { linear_columns<I, P>(task, begin, end); });
}

// Rows of activations as bf16 pairs in the worker's scratch; returns the pairs of a row.
template <class I>
PLOW_DEVICE uint32_t round_activations(const BodyContext& ctx, const TensorEntry& x, Range rows) {
  const uint32_t n_pairs = ceil_div(x.cols, 2);
  Bf16* to = reinterpret_cast<Bf16*>(ctx.scratch);
  for (uint32_t row = rows.begin; row < rows.end; ++row, to += 2 * n_pairs) {
    const float* from = arena_row(ctx, x, row);
    for_lanes(0, x.cols, [&](uint32_t c, uint32_t n) { I::store_n(to + c, load_lanes<I>(from + c, n), n); });
    if (x.cols % 2 != 0) to[x.cols] = Bf16{0};
  }
  return n_pairs;
}

template <class I>
PLOW_DEVICE void linear_body(const BodyContext& ctx, const Packet& packet, uint32_t row_tile) {
  const TensorEntry& x = operand(ctx, packet, 0);
  const Range rows = packet_rows(ctx, packet, row_tile);
  const float* first = arena_row(ctx, x, rows.begin);
  const size_t stride = x.row_stride / sizeof(float);
  with_tape_type(ctx, operand(ctx, packet, 1), [&]<class W>(const W* weights) {
    if constexpr (HasPairDot<I> && __is_same(W, Bf16)) {
      const uint32_t n_pairs = round_activations<I>(ctx, x, rows);
      linear_packet<I, PairProduct<I>>(ctx, packet, rows, reinterpret_cast<const uint32_t*>(ctx.scratch),
                                       n_pairs, weights);
    } else {
      linear_packet<I, FmaProduct<I, W>>(ctx, packet, rows, first, stride, weights);
    }
  });
}

}  // namespace plow::dev
