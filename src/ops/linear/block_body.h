// Products with matrices of blocks (Layout::kRows16Blocks): in integers within a block, in f32 between
// blocks.
//
// A block of 32 activations becomes 16-bit integers with a scale of their own, s = max |x| / 32767, so that
// each is off by at most half of s. The products of integers and their sums are exact, whatever adds them up
// in which order: 32 products of 8 and 16 bits stay below 2^27. So an output element is one chain of fused
// multiply-adds over the blocks in ascending order, and has the same bits on every instruction set.
// docs/numerics.md says how far it is from the product of the values that the blocks stand for.
#pragma once

#include "abi/layout.h"
#include "ops/linear/step_body.h"

namespace plow::dev {

// The words of a block of activations: 16 pairs of integers, the scale's bits, the sum of the integers.
constexpr uint32_t kBlockPairs = kBlockColumns / 2;
constexpr uint32_t kScaleWord = kBlockPairs, kSumWord = kBlockPairs + 1, kBlockWords = kBlockPairs + 2;
// What the largest activation of a block becomes.
constexpr float kMostActivation = 32767;
// Activations below are so small that 1 / s might not be a number: blocks of them get the scale of this one.
constexpr float kLeastActivation = 0x1p-100f;

// Words of a row's activations over the columns `k`, and over all columns of the blocks that they lie in.
PLOW_DEVICE uint32_t block_row_words(Range k) {
  return (ceil_div(k.end, kBlockColumns) - k.begin / kBlockColumns) * kBlockWords;
}

// x[column .. column + 16), and 0 for columns outside of k.
template <class I>
PLOW_DEVICE typename I::Vec columns_within(const float* x, uint32_t column, Range k) {
  if (column >= k.begin && column + 16 <= k.end) return I::load(x + column);
  float inside[16] = {};
  for (uint32_t i = 0; i < 16; ++i) {
    if (column + i >= k.begin && column + i < k.end) inside[i] = x[column + i];
  }
  return I::load(inside);
}

// The columns `k` of a row. A block with an infinity or a NaN gets a NaN as its scale.
template <class I>
PLOW_DEVICE void to_blocks(const float* x, Range k, uint32_t* to) {
  using Vec = typename I::Vec;
  for (uint32_t column = k.begin / kBlockColumns * kBlockColumns; column < k.end;
       column += kBlockColumns, to += kBlockWords) {
    const Vec low = columns_within<I>(x, column, k), high = columns_within<I>(x, column + 16, k);
    const float most = I::reduce_max(I::max(I::max(I::abs(low), I::abs(high)), I::set(kLeastActivation)));
    const float not_finite = I::reduce_add(I::add(I::mul(low, I::zero()), I::mul(high, I::zero())));
    const float scale = most / kMostActivation + not_finite;
    const Vec inverse = I::set(kMostActivation / most);
    I::store_words(to, I::mul(low, inverse), I::mul(high, inverse));
    int32_t sum = 0;
    for (uint32_t pair = 0; pair < kBlockPairs; ++pair)
      sum += static_cast<int16_t>(to[pair] & 0xffffu) + static_cast<int16_t>(to[pair] >> 16);
    __builtin_memcpy(to + kScaleWord, &scale, sizeof(scale));
    __builtin_memcpy(to + kSumWord, &sum, sizeof(sum));
  }
}

// Two pairs of 16 rows' columns, which lie in kTwoPairBytes, as 16-bit integers; and what each is too large
// by.
template <class I>
struct Q8Block {
  static constexpr DType kDType = DType::kQ8_0;
  static constexpr int32_t kExcess = 0;
  static constexpr uint32_t kTwoPairBytes = 2 * kBlockLineBytes;
  static typename I::Words words_of(const unsigned char* lines, uint32_t pair) {
    return I::load_bytes(lines + pair * kBlockLineBytes);
  }
};
template <class I>
struct Q4Block {
  static constexpr DType kDType = DType::kQ4_0;
  static constexpr int32_t kExcess = 8;
  static constexpr uint32_t kTwoPairBytes = kBlockLineBytes;
  static typename I::Words words_of(const unsigned char* line, uint32_t pair) {
    return pair == 0 ? I::load_low_halves(line) : I::load_high_halves(line);
  }
};

template <class I, class B>
struct BlockProduct {
  using Weight = unsigned char;
  using X = uint32_t;
  static constexpr ActivationForm kForm = ActivationForm::kBlocks;
  static constexpr uint32_t kStepColumns = kBlockColumns, kStepElements = row_block_bytes(B::kDType),
                            kXPerStep = kBlockWords, kRowBlock = I::kWordRowBlock;
  using Vec = typename I::Vec;
  using Words = typename I::Words;

  template <int R, int G>
  static void step(Vec (&acc)[R][G], const unsigned char* block, const uint32_t* x,
                   const LinearPanel& panel) {
    Words sums[R][G];
    for (int r = 0; r < R; ++r) {
      for (int g = 0; g < G; ++g)
        sums[r][g] = I::set_words(-B::kExcess * static_cast<int32_t>(x[r * panel.x_stride + kSumWord]));
    }
    const unsigned char* lines = block + kBlockScaleBytes;
    const uint32_t* pairs = x;
    for (uint32_t i = 0; i < kBlockPairs; i += 2, pairs += 2, lines += B::kTwoPairBytes) {
      for (uint32_t pair = 0; pair < 2; ++pair) {
        for (int g = 0; g < G; ++g) {
          const Words weights = B::words_of(lines + g * panel.group_stride, pair);
          for (int r = 0; r < R; ++r)
            sums[r][g] = I::dot_words(sums[r][g], weights, pairs[r * panel.x_stride + pair]);
        }
      }
    }
    for (int g = 0; g < G; ++g) {
      const Vec scales = I::load(reinterpret_cast<const F16*>(block + g * panel.group_stride));
      for (int r = 0; r < R; ++r) {
        const Vec scale = I::mul(scales, I::set(bits_to<float>(x[r * panel.x_stride + kScaleWord])));
        acc[r][g] = I::fma(I::words_to_floats(sums[r][g]), scale, acc[r][g]);
      }
    }
  }
};

}  // namespace plow::dev
