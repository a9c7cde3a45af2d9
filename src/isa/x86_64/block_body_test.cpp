// Products with matrices of blocks, and look-ups in them, against the values that the blocks stand for, in
// double. The bound is that of docs/numerics.md; fused operators are held to the bits of these in
// fused_bodies_test.cpp.
#include "isa/x86_64/block_rig.h"
#include "isa/x86_64/product_checks.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>

namespace plow {
namespace {

constexpr double kUlp = 0x1p-24;
constexpr DType kBlockDTypes[] = {DType::kQ8_0, DType::kQ4_0};

struct Columns {
  uint32_t begin, end;
};

struct Problem {
  uint32_t rows, k, n;
  DType dtype;
  std::vector<double> x;
  BlockMatrix w;

  Problem(uint32_t rows_, uint32_t k_, uint32_t n_, DType dtype_)
      : rows(rows_),
        k(k_),
        n(n_),
        dtype(dtype_),
        x(random_values(size_t{rows_} * k_, 1)),
        w(random_blocks(dtype_, n_, k_, 2)) {
    // Blocks of very different sizes, as activations have them.
    for (size_t i = 0; i < x.size(); ++i)
      x[i] =
          static_cast<double>(static_cast<float>(x[i] * std::exp2(static_cast<double>(i / 32 % 9 * 3) - 12)));
  }

  BodyRig rig(uint32_t row_tile) const {
    BodyRig rig(rows, 0, row_tile);
    rig.packet.body = static_cast<uint16_t>(Op::kLinear);
    rig.packet.operand[0] = rig.add_arena(rows, k, x);
    rig.packet.operand[1] = rig.add_blocks(dtype, n, k, w.packed);
    rig.packet.operand[2] = rig.add_arena(rows, n);
    rig.cover_columns(n, 16);
    return rig;
  }

  // The product over a range of columns, and how far from it the body may be: half of a block's scale for
  // each activation, and a rounding of each partial sum, of its term and of the term's factors.
  void exact(uint32_t r, uint32_t c, Columns range, double& value, double& bound) const {
    value = bound = 0;
    const double roundings = (range.end - range.begin) / 32 + 5;
    for (uint32_t block = range.begin / 32; block * 32 < range.end; ++block) {
      double most = 0x1p-100, weights = 0, terms = 0;
      for (uint32_t i = std::max(block * 32, range.begin); i < std::min(block * 32 + 32, range.end); ++i) {
        const double term = x[size_t{r} * k + i] * w.values[size_t{c} * k + i];
        value += term;
        terms += std::abs(term);
        weights += std::abs(w.values[size_t{c} * k + i]);
        most = std::max(most, std::abs(x[size_t{r} * k + i]));
      }
      const double scale = most / 32767;
      bound += (0.5 + 0x1p-7) * scale * weights + roundings * kUlp * (terms + scale * weights);
    }
  }
};

void expect_product(const Problem& problem, BodyRig& rig, Columns range, const std::vector<float>& before) {
  expect_near(problem, rig, before, [&](uint32_t r, uint32_t c, double& value, double& bound) {
    problem.exact(r, c, range, value, bound);
  });
}

struct Shape {
  uint32_t k, n;
};

TEST(BlockBody, IsTheProductOfTheBlocksValuesWithinTheDerivedBound) {
  for (IsaLevel level : available_isa_levels()) {
    for (DType dtype : kBlockDTypes) {
      for (const Shape shape :
           {Shape{32, 1}, Shape{32, 16}, Shape{64, 48}, Shape{96, 100}, Shape{576, 80}, Shape{1024, 35}}) {
        for (uint32_t rows : {1u, 2u, 3u, 4u, 5u, 6u, 7u, 8u, 16u, 17u, 33u}) {
          SCOPED_TRACE(std::string(isa_level_name(level)) + " " + dtype_name(dtype) + " rows " +
                       std::to_string(rows) + " k " + std::to_string(shape.k) + " n " +
                       std::to_string(shape.n));
          const Problem problem(rows, shape.k, shape.n, dtype);
          BodyRig rig = problem.rig(rows > 16 ? 16 : rows);
          ASSERT_EQ(unsupported_reason(rig.packet, rig.tensors.data()), "");
          const std::vector<float> before = rig.arena;
          rig.run(level);
          expect_product(problem, rig, {0, shape.k}, before);
        }
      }
    }
  }
}

TEST(BlockBody, APartMayBeginAndEndWithinABlock) {
  for (IsaLevel level : available_isa_levels()) {
    for (DType dtype : kBlockDTypes) {
      for (const Columns range :
           {Columns{0, 32}, Columns{32, 128}, Columns{10, 70}, Columns{34, 36}, Columns{2, 128}}) {
        for (uint32_t rows : {1u, 7u}) {
          SCOPED_TRACE(std::string(dtype_name(dtype)) + " columns " + std::to_string(range.begin) + " to " +
                       std::to_string(range.end));
          const Problem problem(rows, 128, 40, dtype);
          BodyRig rig = problem.rig(rows);
          rig.packet.body = static_cast<uint16_t>(Op::kLinearPart);
          rig.packet.immediate[0] = range.begin;
          rig.packet.immediate[1] = range.end;
          const std::vector<float> before = rig.arena;
          rig.run(level);
          expect_product(problem, rig, range, before);
        }
      }
    }
  }
}

TEST(BlockBody, ARowHasTheSameBitsWhateverSharesItsTile) {
  for (DType dtype : kBlockDTypes) expect_same_in_any_tile(Problem(33, 1024, 83, dtype));
}

TEST(BlockBody, EveryLevelGivesTheSameBits) {
  for (DType dtype : kBlockDTypes) {
    const Problem problem(19, 1024, 83, dtype);
    BodyRig first = problem.rig(64);
    first.run(IsaLevel::kAvx2);
    for (IsaLevel level : available_isa_levels()) {
      BodyRig other = problem.rig(64);
      other.run(level);
      EXPECT_EQ(std::memcmp(first.arena.data(), other.arena.data(), first.arena.size() * sizeof(float)), 0)
          << dtype_name(dtype) << " " << isa_level_name(level);
    }
  }
}

// All integers at their ends, of both signs: what could leave 32 bits, or 16.
TEST(BlockBody, TheLargestIntegersDoNotOverflow) {
  for (IsaLevel level : available_isa_levels()) {
    for (DType dtype : kBlockDTypes) {
      for (const double sign : {1.0, -1.0}) {
        Problem problem(2, 64, 16, dtype);
        std::fill(problem.x.begin(), problem.x.end(), sign * 0x1p10);
        const uint16_t one = double_to_f16(1);
        const size_t block_bytes = problem.w.packed.size() / 2;
        for (size_t i = 0; i < problem.w.packed.size(); ++i)
          problem.w.packed[i] = static_cast<unsigned char>(dtype == DType::kQ8_0 ? 0x80 : 0);
        for (size_t i = 0; i < 32; i += 2) {
          std::memcpy(problem.w.packed.data() + i, &one, 2);
          std::memcpy(problem.w.packed.data() + block_bytes + i, &one, 2);
        }
        std::fill(problem.w.values.begin(), problem.w.values.end(), dtype == DType::kQ8_0 ? -128 : -8);
        BodyRig rig = problem.rig(2);
        const std::vector<float> before = rig.arena;
        rig.run(level);
        expect_product(problem, rig, {0, 64}, before);
      }
    }
  }
}

TEST(BlockBody, ActivationsOfAnySizeGiveNumbersAndOthersGiveNone) {
  constexpr float kInfinity = std::numeric_limits<float>::infinity();
  for (IsaLevel level : available_isa_levels()) {
    for (DType dtype : kBlockDTypes) {
      for (const double size : {0.0, 1e-45, 1e-38, 1e-30, 1e30}) {
        Problem problem(3, 96, 20, dtype);
        for (double& x : problem.x) x = static_cast<double>(static_cast<float>(x * size));
        BodyRig rig = problem.rig(3);
        const std::vector<float> before = rig.arena;
        rig.run(level);
        expect_product(problem, rig, {0, 96}, before);
      }
      for (const float bad : {kInfinity, -kInfinity, std::numeric_limits<float>::quiet_NaN()}) {
        const Problem problem(3, 96, 20, dtype);
        BodyRig rig = problem.rig(3);
        rig.row(rig.packet.operand[0], 1)[40] = bad;
        rig.run(level);
        for (uint32_t c = 0; c < 20; ++c) {
          EXPECT_TRUE(std::isfinite(rig.row(rig.packet.operand[2], 0)[c]));
          EXPECT_FALSE(std::isfinite(rig.row(rig.packet.operand[2], 1)[c])) << bad;
        }
      }
    }
  }
}

TEST(BlockBody, EmbedGivesTheBlocksValuesExactly) {
  constexpr uint32_t kVocab = 37, kCols = 96, kRows = 9;
  for (IsaLevel level : available_isa_levels()) {
    for (DType dtype : kBlockDTypes) {
      const BlockMatrix table = random_blocks(dtype, kVocab, kCols, 3);
      BodyRig rig(kRows, 0, 5);
      for (uint32_t r = 0; r < kRows; ++r) rig.token_ids[r] = (7 * r + 36) % kVocab;
      rig.packet.body = static_cast<uint16_t>(Op::kEmbed);
      rig.packet.operand[0] = rig.add_blocks(dtype, kVocab, kCols, table.packed);
      rig.packet.operand[1] = rig.add_step(StepColumn::kTokenIds);
      rig.packet.operand[2] = rig.add_arena(kRows, kCols);
      rig.cover_columns(kCols, 16);
      ASSERT_EQ(unsupported_reason(rig.packet, rig.tensors.data()), "");
      rig.run(level);
      for (uint32_t r = 0; r < kRows; ++r) {
        for (uint32_t c = 0; c < kCols; ++c) {
          ASSERT_EQ(static_cast<double>(rig.row(rig.packet.operand[2], r)[c]),
                    table.values[rig.token_ids[r] * kCols + c])
              << "row " << r << ", column " << c;
        }
      }
    }
  }
}

TEST(BlockBody, BlocksAreReadInTheirOwnLayoutOnlyAndGatesAreAlike) {
  const Problem problem(1, 64, 16, DType::kQ8_0);
  BodyRig rig = problem.rig(1);
  rig.tensors[rig.packet.operand[1]].layout = Layout::kRows16Pairs;
  EXPECT_NE(unsupported_reason(rig.packet, rig.tensors.data()), "");
  rig.tensors[rig.packet.operand[1]].layout = Layout::kRows16Blocks;
  EXPECT_EQ(unsupported_reason(rig.packet, rig.tensors.data()), "");
  rig.packet.body = static_cast<uint16_t>(Op::kGluLinear);
  rig.packet.operand[3] = rig.packet.operand[2];
  rig.packet.operand[2] = rig.add_blocks(DType::kQ8_0, 16, 64, problem.w.packed);
  EXPECT_EQ(unsupported_reason(rig.packet, rig.tensors.data()), "");
  rig.tensors[rig.packet.operand[2]].dtype = DType::kQ4_0;
  EXPECT_EQ(unsupported_reason(rig.packet, rig.tensors.data()),
            "glu_linear: operands 1 and 2 must have one dtype");
}

}  // namespace
}  // namespace plow
