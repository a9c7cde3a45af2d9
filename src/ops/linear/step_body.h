// The innermost products of linear maps: what they take of weights and activations in a step. Of matrices of
// floats here, of those of blocks in block_body.h.
#pragma once

#include "interp/packet_view.h"
#include "interp/prims.h"

namespace plow::dev {

// Elements of a line: 16 rows, 2 columns.
constexpr uint32_t kLineElements = 32;

// How a product reads its activations. kFloats: as they are. kBf16Pairs: rounded to bf16, two in a word.
// kBlocks: see block_body.h.
enum class ActivationForm : uint8_t { kFloats, kBf16Pairs, kBlocks };

// One call of the innermost block: R rows of activations, G row groups of weights, a run of steps. A step is
// what a product takes of each at once: a pair of columns, or a block of them.
struct LinearPanel {
  size_t x_stride;      // elements between rows of activations
  size_t group_stride;  // elements between row groups
  uint32_t n_steps;
  bool half_step;       // one column more
  bool accumulate;      // go on from what `out` holds
  uint32_t last_lanes;  // outputs of the last group that exist
  float* out;
  size_t out_stride;   // floats
  const float* added;  // to the sums, when they are complete; else null
  size_t added_stride;
  size_t ahead;        // elements from a step to the one prefetched with it
  uint32_t jump_step;  // from this step on, `ahead` grows by `jump`: to where the next block begins
  ptrdiff_t jump;
};

// f32 activations, weights widened to f32.
template <class I, class W>
struct FmaProduct {
  using Weight = W;
  using X = float;
  using Element = float;
  static constexpr ActivationForm kForm = ActivationForm::kFloats;
  static constexpr uint32_t kStepColumns = 2, kStepElements = kLineElements, kXPerStep = 2,
                            kRowBlock = I::kRowBlock;
  using Vec = typename I::Vec;

  template <int R, int G>
  static void step(Vec (&acc)[R][G], const W* line, const float* x, const LinearPanel& panel) {
    half_step(acc, line, x, panel);
    Vec odd[G];
    for (int g = 0; g < G; ++g) odd[g] = I::load_odd(line + g * panel.group_stride);
    add_column(acc, odd, x + 1, panel);
  }
  // The last column when their number is odd: the weights of the other are padding, and x ends.
  template <int R, int G>
  static void half_step(Vec (&acc)[R][G], const W* line, const float* x, const LinearPanel& panel) {
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
  static constexpr ActivationForm kForm = ActivationForm::kBf16Pairs;
  static constexpr uint32_t kStepColumns = 2, kStepElements = kLineElements, kXPerStep = 1,
                            kRowBlock = I::kRowBlock;
  using Vec = typename I::Vec;

  template <int R, int G>
  static void step(Vec (&acc)[R][G], const Bf16* line, const uint32_t* x, const LinearPanel& panel) {
    for (int r = 0; r < R; ++r) {
      for (int g = 0; g < G; ++g)
        acc[r][g] = I::dot_pair(acc[r][g], line + g * panel.group_stride, x[r * panel.x_stride]);
    }
  }
  template <int R, int G>
  static void half_step(Vec (&acc)[R][G], const Bf16* line, const uint32_t* x, const LinearPanel& panel) {
    step(acc, line, x, panel);
  }
};

}  // namespace plow::dev
