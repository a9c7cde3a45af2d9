// Row-wise bodies for teams, one packet at a time, in odd shapes: against the operators' definitions in
// double, with the error that each step may make; fused ones against the bits of the bodies that they stand
// for.
#include "runtime/testing/team_rig.h"

#include <gtest/gtest.h>

#include <cmath>
#include <functional>

namespace plow {
namespace {

constexpr double kUlp = 0x1p-24;
constexpr float kEps = 1e-5f, kOffset = 1.0f;
constexpr DType kStored[] = {DType::kF32, DType::kBf16, DType::kF16};
constexpr uint32_t kRows[] = {1, 3, 16};

uint32_t row_tile_of(uint32_t rows) { return rows == 16 ? 5 : rows; }

template <class Team>
class TeamBodiesOn : public testing::Test {
 protected:
  using Rig = TeamRig<Team>;

  // `out` holds the operator's value of the inputs, within allowed(value); nothing is behind its rows.
  static void expect_near(Rig& rig, Op op, const std::vector<Matrix>& inputs, const Attributes& attributes,
                          uint16_t out, const std::function<double(double, uint32_t, uint32_t)>& allowed) {
    const OpGraph graph;
    const EvalStep step;
    EvalContext context{&graph, &step, rig.row_slots, rig.positions, nullptr, nullptr};
    std::vector<const Matrix*> pointers;
    for (const Matrix& input : inputs) pointers.push_back(&input);
    const Matrix expected = op_def(op).reference(context, NodeId(0), pointers, attributes);
    const Matrix found = rig.matrix(out);
    for (uint32_t r = 0; r < found.rows; ++r) {
      for (uint32_t c = 0; c < found.cols; ++c) {
        const double value = expected.row(r)[c];
        ASSERT_NEAR(found.row(r)[c], value, allowed(value, r, c)) << "row " << r << ", column " << c;
      }
      ASSERT_EQ(rig.row(out, r)[found.cols], BodyRig::kUntouched) << "behind row " << r;
    }
  }

  // Whether `b` has the bits of `a` in the columns that mine() picks, and is untouched elsewhere.
  static void expect_same(
      Rig& rig, uint16_t a, uint16_t b,
      const std::function<bool(uint32_t)>& mine = [](uint32_t) { return true; }) {
    for (uint32_t r = 0; r < rig.tensors[a].rows; ++r) {
      for (uint32_t c = 0; c < rig.tensors[a].cols; ++c) {
        const float expected = mine(c) ? rig.row(a, r)[c] : BodyRig::kUntouched;
        ASSERT_EQ(std::bit_cast<uint32_t>(rig.row(b, r)[c]), std::bit_cast<uint32_t>(expected))
            << "row " << r << ", column " << c;
      }
    }
  }
};
using Teams = testing::Types<emulated::EmulatedTeam<32>, emulated::EmulatedTeam<64>>;
TYPED_TEST_SUITE(TeamBodiesOn, Teams);

// Calls f(rows, columns) for shapes that threads and fours do not divide.
template <class F>
void each_shape(const F& f) {
  for (const uint32_t rows : kRows) {
    for (const uint32_t cols : {1u, 3u, 5u, 17u, 100u, 1031u}) {
      SCOPED_TRACE("rows " + std::to_string(rows) + " columns " + std::to_string(cols));
      f(rows, cols);
      if (testing::Test::HasFatalFailure()) return;
    }
  }
}

TYPED_TEST(TeamBodiesOn, ElementByElementAllColumnsAndSomeAreWhatTheOperatorSays) {
  each_shape([](uint32_t rows, uint32_t cols) {
    TeamRig<TypeParam> rig(rows, 0, row_tile_of(rows));
    const size_t n = size_t{rows} * cols;
    const uint16_t x = rig.add_rows(rows, cols, random_values(n, 1, 3)),
                   y = rig.add_rows(rows, cols, random_values(n, 2, 3)),
                   bias = rig.add_row_of_tape(kStored[cols % 3], random_values(cols, 3));
    struct Case {
      Op op;
      std::vector<uint16_t> inputs;
      std::vector<uint32_t> attributes;
      double ulps;
    };
    const uint32_t factor = attribute_bits(-1.7f), cap = attribute_bits(2.5f);
    for (const Case& one : {Case{Op::kAdd, {x, y}, {}, 1},
                            {Op::kBiasAdd, {x, bias}, {}, 1},
                            {Op::kScale, {x}, {factor}, 1},
                            {Op::kSoftCap, {x}, {cap}, 8},
                            {Op::kGlu, {x, y}, {0}, 12},
                            {Op::kGlu, {x, y}, {1}, 40},
                            {Op::kGlu, {x, y}, {2}, 24}}) {
      SCOPED_TRACE(op_name(one.op));
      const auto run = [&](const TileColumns& columns) {
        std::vector<uint16_t> operands = one.inputs;
        operands.push_back(rig.add_rows(rows, cols));
        rig.call(one.op, operands, one.attributes, columns);
        return operands.back();
      };
      const uint16_t all = run({16});
      std::vector<Matrix> inputs;
      for (const uint16_t input : one.inputs) inputs.push_back(rig.matrix(input));
      Attributes attributes{};
      std::copy(one.attributes.begin(), one.attributes.end(), attributes.begin());
      TestFixture::expect_near(rig, one.op, inputs, attributes, all, [&](double value, uint32_t, uint32_t) {
        return one.ulps * kUlp * std::abs(value) + 1e-9;
      });
      if (cols < 100) continue;
      const uint16_t some = run({.tile_cols = 32, .first = 1, .count = 2, .stride = 2});
      TestFixture::expect_same(rig, all, some, [](uint32_t c) { return c / 32 == 1 || c / 32 == 3; });
      if (testing::Test::HasFatalFailure()) return;
    }
  });
}

TYPED_TEST(TeamBodiesOn, RowsAreGatheredAndEmbeddedWhole) {
  each_shape([](uint32_t rows, uint32_t cols) {
    TeamRig<TypeParam> rig(19, rows, row_tile_of(rows));
    const uint16_t x = rig.add_rows(19, cols, random_values(size_t{19} * cols, 1));
    for (uint32_t s = 0; s < rows; ++s) rig.sample_rows[s] = (s * 7 + 18) % 19;
    const uint16_t out = rig.add_rows(rows, cols);
    rig.call(Op::kGatherRows, {x, rig.add_step(StepColumn::kSampleRows), out}, {}, {16}, Rows::kSamples);
    for (uint32_t s = 0; s < rows; ++s) {
      for (uint32_t c = 0; c < cols; ++c) ASSERT_EQ(rig.row(out, s)[c], rig.row(x, rig.sample_rows[s])[c]);
    }
    for (const DType dtype : kStored) {
      TeamRig<TypeParam> embed(rows, 0, row_tile_of(rows));
      constexpr uint32_t kVocab = 37;
      const auto values = random_values(size_t{kVocab} * cols, 2);
      for (uint32_t t = 0; t < rows; ++t) embed.token_ids[t] = (t * 11 + 36) % kVocab;
      const uint16_t table = embed.add_tape(dtype, Layout::kAtoms8x128, kVocab, cols, values),
                     rows_of = embed.add_rows(rows, cols);
      embed.call(Op::kEmbed, {table, embed.add_step(StepColumn::kTokenIds), rows_of}, {}, {16});
      for (uint32_t t = 0; t < rows; ++t) {
        for (uint32_t c = 0; c < cols; ++c)
          ASSERT_EQ(static_cast<double>(embed.row(rows_of, t)[c]),
                    rounded(dtype, values[size_t{embed.token_ids[t]} * cols + c]))
              << dtype_name(dtype);
      }
    }
  });
}

// Groups by a wave and by the team, narrower than a wave, no multiples of four, wider than what registers
// hold.
TYPED_TEST(TeamBodiesOn, ANormIsWhatTheOperatorSaysAndNormAddHasTheBitsOfNormAndSum) {
  struct Shape {
    uint32_t group, groups;
  };
  for (const uint32_t rows : kRows) {
    for (const Shape shape : {Shape{1, 1},
                              {6, 4},
                              {7, 1},
                              {10, 3},
                              {20, 2},
                              {64, 3},
                              {128, 2},
                              {257, 1},
                              {1030, 1},
                              {2048, 2},
                              {5001, 1}}) {
      SCOPED_TRACE("rows " + std::to_string(rows) + " groups of " + std::to_string(shape.group));
      TeamRig<TypeParam> rig(rows, 0, row_tile_of(rows));
      const uint32_t cols = shape.group * shape.groups;
      const size_t n = size_t{rows} * cols;
      const uint16_t x = rig.add_rows(rows, cols, random_values(n, 1, 3)),
                     gain = rig.add_row_of_tape(kStored[shape.group % 3], random_values(shape.group, 2)),
                     out = rig.add_rows(rows, cols);
      const std::vector<uint32_t> immediates{attribute_bits(kEps), attribute_bits(kOffset), shape.group};
      rig.call(Op::kRmsNorm, {x, gain, out}, immediates, {shape.group});
      const Matrix in = rig.matrix(x);
      TestFixture::expect_near(
          rig, Op::kRmsNorm, {in, rig.matrix(gain)},
          {attribute_bits(kEps), attribute_bits(kOffset), shape.group}, out,
          [&](double value, uint32_t r, uint32_t c) {
            // A thread's chain of squares and the tree above it, then five roundings; and the rounding of a
            // gain that cancels the offset, of a value that is not beyond the root of its group.
            const double chain = shape.group / 32.0 + 20;
            return kUlp * (chain * std::abs(value) + std::abs(in.row(r)[c]) * std::sqrt(shape.group));
          });
      if (shape.groups > 1) {
        const uint16_t some = rig.add_rows(rows, cols);
        rig.call(Op::kRmsNorm, {x, gain, some}, immediates,
                 {.tile_cols = shape.group, .first = 1, .count = 1});
        TestFixture::expect_same(rig, out, some, [&](uint32_t c) { return c / shape.group == 1; });
        continue;
      }
      const uint16_t residual = rig.add_rows(rows, cols, random_values(n, 4, 100)),
                     sum = rig.add_rows(rows, cols), fused = rig.add_rows(rows, cols);
      rig.call(Op::kAdd, {residual, out, sum}, {}, {16});
      rig.call(Op::kNormAdd, {x, gain, residual, fused}, {immediates[0], immediates[1]}, {cols});
      TestFixture::expect_same(rig, sum, fused);
      if (testing::Test::HasFatalFailure()) return;
    }
  }
}

// Heads, their gain and table, and a cache of two slots with something in it.
template <class Team>
struct TeamHeads {
  static constexpr uint32_t kKvHeads = 3, kPositions = 192;
  uint32_t rows, head_dim, half;
  DType dtype;
  TeamRig<Team> rig;
  uint16_t x, v, gain, table, cache;

  TeamHeads(uint32_t rows_, uint32_t head_dim_, uint32_t half_, DType dtype_)
      : rows(rows_),
        head_dim(head_dim_),
        half(half_),
        dtype(dtype_),
        rig(rows, 0, row_tile_of(rows)),
        x(rig.add_rows(rows, kKvHeads * head_dim, random_values(size_t{rows} * kKvHeads * head_dim, 1, 3))),
        v(rig.add_rows(rows, kKvHeads * head_dim, random_values(size_t{rows} * kKvHeads * head_dim, 2))),
        gain(rig.add_row_of_tape(dtype, random_values(head_dim, 3))),
        table(rig.add_rows(rows, 2 * half, random_values(size_t{rows} * 2 * half, 4))),
        cache(rig.add_cache(dtype, kKvHeads, head_dim, 64, Layout::kKvRows)) {
    rig.table_width = kPositions / gpu::kKvBlockTokens;
    rig.kv_group.block_bytes = 64 + rig.tensors[cache].bytes;
    rig.block_table = {4, 0, 5, 2, 1, 3};
    rig.pool.assign(6 * rig.kv_group.block_bytes, 0xab);
    for (uint32_t r = 0; r < rows; ++r) {
      rig.row_slots[r] = r < rows / 2 ? 0 : 1;
      rig.positions[r] = 60 + r;
    }
  }

  // What the pool is to be when these keys have been appended, by the layout's definition.
  std::vector<unsigned char> pool_with(uint16_t keys) {
    std::vector<unsigned char> pool = rig.pool;
    const uint32_t bytes = dtype_bytes(dtype), tokens = gpu::kKvBlockTokens;
    for (uint32_t r = 0; r < rows; ++r) {
      const uint32_t block = rig.block_table[rig.row_slots[r] * rig.table_width + rig.positions[r] / tokens];
      for (uint32_t c = 0; c < kKvHeads * head_dim; ++c) {
        const size_t head = c / head_dim, token = rig.positions[r] % tokens;
        const size_t element = (2 * head * tokens + token) * head_dim + c % head_dim;
        unsigned char* at = pool.data() + block * rig.kv_group.block_bytes + 64;
        TapeBytes::write(dtype, static_cast<double>(rig.row(keys, r)[c]), at + element * bytes);
        TapeBytes::write(dtype, static_cast<double>(rig.row(v, r)[c]),
                         at + (element + size_t{tokens} * head_dim) * bytes);
      }
    }
    return pool;
  }

  uint16_t out() { return rig.add_rows(rows, kKvHeads * head_dim); }
};

template <class Team, class F>
void each_head(const F& f) {
  for (const uint32_t rows : kRows) {
    for (const DType dtype : {DType::kF32, DType::kBf16}) {
      for (const auto& [head_dim, half] :
           {std::pair{2u, 1u}, {6u, 2u}, {10u, 5u}, {20u, 10u}, {48u, 8u}, {64u, 32u}, {256u, 128u}}) {
        SCOPED_TRACE("rows " + std::to_string(rows) + " " + dtype_name(dtype) + " head_dim " +
                     std::to_string(head_dim));
        TeamHeads<Team> heads(rows, head_dim, half, dtype);
        f(heads);
        if (testing::Test::HasFatalFailure()) return;
      }
    }
  }
}

TYPED_TEST(TeamBodiesOn, HeadsAreRotatedAsTheOperatorSays) {
  each_head<TypeParam>([](TeamHeads<TypeParam>& h) {
    const uint16_t out = h.out(), some = h.out();
    h.rig.call(Op::kRope, {h.x, h.table, out}, {h.head_dim}, {h.head_dim});
    // Two products of numbers up to 3 and their sum, each rounded.
    TestFixture::expect_near(h.rig, Op::kRope, {h.rig.matrix(h.x), h.rig.matrix(h.table)}, {h.head_dim}, out,
                             [](double, uint32_t, uint32_t) { return 12 * kUlp; });
    h.rig.call(Op::kRope, {h.x, h.table, some}, {h.head_dim},
               {.tile_cols = h.head_dim, .first = 0, .count = 2, .stride = 2});
    TestFixture::expect_same(h.rig, out, some, [&](uint32_t c) { return c / h.head_dim != 1; });
  });
}

TYPED_TEST(TeamBodiesOn, NormRopeHasTheBitsOfNormAndRope) {
  each_head<TypeParam>([](TeamHeads<TypeParam>& h) {
    const std::vector<uint32_t> norm{attribute_bits(kEps), attribute_bits(kOffset), h.head_dim};
    const uint16_t normalised = h.out(), expected = h.out(), out = h.out(), some = h.out();
    h.rig.call(Op::kRmsNorm, {h.x, h.gain, normalised}, norm, {h.head_dim});
    h.rig.call(Op::kRope, {normalised, h.table, expected}, {h.head_dim}, {h.head_dim});
    h.rig.call(Op::kNormRope, {h.x, h.gain, h.table, out}, {h.head_dim, norm[0], norm[1]}, {h.head_dim});
    TestFixture::expect_same(h.rig, expected, out);
    h.rig.call(Op::kNormRope, {h.x, h.gain, h.table, some}, {h.head_dim, norm[0], norm[1]},
               {.tile_cols = h.head_dim, .first = 1, .count = 1});
    TestFixture::expect_same(h.rig, expected, some, [&](uint32_t c) { return c / h.head_dim == 1; });
  });
}

TYPED_TEST(TeamBodiesOn, KeysAndValuesGoToTheCacheAsTheyAreOrTurned) {
  each_head<TypeParam>([](TeamHeads<TypeParam>& h) {
    const std::vector<uint32_t> norm{attribute_bits(kEps), attribute_bits(kOffset), h.head_dim};
    const uint16_t rotated = h.out(), normalised = h.out(), turned = h.out();
    h.rig.call(Op::kRope, {h.x, h.table, rotated}, {h.head_dim}, {h.head_dim});
    h.rig.call(Op::kRmsNorm, {h.x, h.gain, normalised}, norm, {h.head_dim});
    h.rig.call(Op::kRope, {normalised, h.table, turned}, {h.head_dim}, {h.head_dim});
    const std::vector<unsigned char> before = h.rig.pool;
    const auto expect_pool = [&](uint16_t keys, Op op, const std::vector<uint16_t>& operands,
                                 const std::vector<uint32_t>& immediates) {
      h.rig.pool = before;
      const std::vector<unsigned char> expected = h.pool_with(keys);
      EXPECT_NE(expected, before);
      h.rig.call(op, operands, immediates, {h.head_dim});
      EXPECT_TRUE(h.rig.pool == expected) << op_name(op);
    };
    expect_pool(h.x, Op::kKvAppend, {h.x, h.v, h.cache, h.cache}, {h.head_dim});
    expect_pool(rotated, Op::kRopeKvAppend, {h.x, h.v, h.table, h.cache, h.cache}, {h.head_dim});
    expect_pool(turned, Op::kNormRopeKvAppend, {h.x, h.gain, h.v, h.table, h.cache, h.cache},
                {h.head_dim, norm[0], norm[1]});
  });
}

TEST(TeamBodies, WhatABodyCannotTakeIsSaid) {
  using Rig = TeamRig<emulated::EmulatedTeam<32>>;
  Rig rig(1, 0, 1);
  const uint16_t fine = rig.add_rows(1, 8), skewed = rig.add_arena(2, 8, {}, 3);
  rig.packet.body = static_cast<uint16_t>(Op::kScale);
  rig.packet.operand[0] = skewed;
  rig.packet.operand[1] = fine;
  EXPECT_NE(gpu::unsupported_reason(rig.packet, rig.tensors.data()).find("scale: operand 0 must be an f32"),
            std::string::npos);
  rig.packet.operand[0] = fine;
  EXPECT_EQ(gpu::unsupported_reason(rig.packet, rig.tensors.data()), "");
  rig.packet.body = static_cast<uint16_t>(Op::kNormRope);
  rig.packet.immediate[0] = 514;
  EXPECT_NE(gpu::unsupported_reason(rig.packet, rig.tensors.data()).find("514 columns"), std::string::npos);
}

}  // namespace
}  // namespace plow
