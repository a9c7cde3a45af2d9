// linear against the product in double: every dtype, rows around the row block, odd and short k, n that is no
// multiple of 16.
#include "isa/x86_64/product_checks.h"

#include <gtest/gtest.h>

#include <cmath>

namespace plow {
namespace {

constexpr double kUlp = 0x1p-24;

struct Problem {
  uint32_t rows, k, n;
  DType dtype;
  std::vector<double> x, w;

  Problem(uint32_t rows_, uint32_t k_, uint32_t n_, DType dtype_)
      : rows(rows_),
        k(k_),
        n(n_),
        dtype(dtype_),
        x(random_values(size_t{rows_} * k_, 1)),
        w(random_values(size_t{n_} * k_, 2)) {}

  BodyRig rig(uint32_t row_tile) const {
    BodyRig rig(rows, 0, row_tile);
    rig.packet.body = static_cast<uint16_t>(Op::kLinear);
    rig.packet.operand[0] = rig.add_arena(rows, k, x);
    rig.packet.operand[1] = rig.add_tape(dtype, Layout::kRows16Pairs, n, k, w);
    rig.packet.operand[2] = rig.add_arena(rows, n);
    rig.cover_columns(n, 16);
    return rig;
  }

  // The product and the sum of magnitudes that its error is measured by.
  void exact(uint32_t r, uint32_t c, double& value, double& magnitude) const {
    value = magnitude = 0;
    for (uint32_t i = 0; i < k; ++i) {
      const double term =
          static_cast<double>(static_cast<float>(x[r * k + i])) * rounded(dtype, w[c * k + i]);
      value += term;
      magnitude += std::abs(term);
    }
  }
};

bool rounds_activations(IsaLevel level, DType dtype) {
  return level == IsaLevel::kAvx512Bf16 && dtype == DType::kBf16;
}

void expect_product(const Problem& problem, BodyRig& rig, IsaLevel level, const std::vector<float>& before) {
  expect_near(problem, rig, before, [&](uint32_t r, uint32_t c, double& value, double& bound) {
    double magnitude;
    problem.exact(r, c, value, magnitude);
    // A chain of k roundings, each of a partial sum; bf16 has 8 bits, so that activations are off by up to
    // 2^-8 of themselves.
    bound = magnitude * (problem.k * kUlp + (rounds_activations(level, problem.dtype) ? 0x1p-8 : 0));
  });
}

TEST(LinearBody, IsTheProductForEveryShapeAndDtype) {
  struct Shape {
    uint32_t k, n;
  };
  for (IsaLevel level : available_isa_levels()) {
    for (DType dtype : {DType::kF32, DType::kBf16, DType::kF16}) {
      for (const Shape shape : {Shape{1, 1}, Shape{2, 16}, Shape{7, 5}, Shape{64, 48}, Shape{129, 100},
                                Shape{576, 80}, Shape{1031, 35}}) {
        for (uint32_t rows : {1u, 2u, 3u, 4u, 5u, 6u, 7u, 16u, 17u, 33u}) {
          SCOPED_TRACE(std::string(isa_level_name(level)) + " " + dtype_name(dtype) + " rows " +
                       std::to_string(rows) + " k " + std::to_string(shape.k) + " n " +
                       std::to_string(shape.n));
          const Problem problem(rows, shape.k, shape.n, dtype);
          BodyRig rig = problem.rig(rows > 16 ? 16 : rows);
          ASSERT_EQ(unsupported_reason(rig.packet, rig.tensors.data()), "");
          const std::vector<float> before = rig.arena;
          rig.run(level);
          expect_product(problem, rig, level, before);
        }
      }
    }
  }
}

TEST(LinearBody, WritesOnlyItsOwnColumnTiles) {
  const Problem problem(3, 70, 150, DType::kBf16);
  for (IsaLevel level : available_isa_levels()) {
    BodyRig whole = problem.rig(8), part = problem.rig(8);
    whole.run(level);
    part.packet.tile_cols = 32;  // tiles 1 and 3 of 5: columns 32 .. 63 and 96 .. 127
    part.packet.col_first = 1;
    part.packet.col_count = 2;
    part.packet.col_stride = 2;
    part.run(level);
    for (uint32_t r = 0; r < 3; ++r) {
      for (uint32_t c = 0; c < 150; ++c) {
        const bool mine = c / 32 == 1 || c / 32 == 3;
        const uint16_t out = part.packet.operand[2];
        EXPECT_EQ(part.row(out, r)[c], mine ? whole.row(out, r)[c] : BodyRig::kUntouched) << "column " << c;
      }
    }
  }
}

TEST(LinearBody, ARowHasTheSameBitsWhateverSharesItsTile) {
  expect_same_in_any_tile(Problem(33, 1031, 83, DType::kBf16));
}

TEST(LinearBody, Avx2AndAvx512GiveTheSameBits) {
  const auto levels = available_isa_levels();
  if (std::find(levels.begin(), levels.end(), IsaLevel::kAvx512) == levels.end())
    GTEST_SKIP() << "no AVX-512 on this processor";
  for (DType dtype : {DType::kF32, DType::kBf16, DType::kF16}) {
    const Problem problem(19, 1031, 83, dtype);
    BodyRig narrow = problem.rig(64), wide = problem.rig(64);
    narrow.run(IsaLevel::kAvx2);
    wide.run(IsaLevel::kAvx512);
    EXPECT_EQ(std::memcmp(narrow.arena.data(), wide.arena.data(), narrow.arena.size() * sizeof(float)), 0)
        << dtype_name(dtype);
  }
}

}  // namespace
}  // namespace plow
