#include "ops/tile_rule.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <random>

namespace plow {
namespace {

struct Case {
  Op op;
  std::vector<OperandShape> operands;
  std::array<uint32_t, kPacketImmediates> attributes{};
};

constexpr OperandShape fixed(uint32_t rows, uint32_t cols) { return {Rows::kFixed, rows, cols}; }
constexpr OperandShape tokens(uint32_t cols) { return {Rows::kTokens, 0, cols}; }
constexpr OperandShape samples(uint32_t cols) { return {Rows::kSamples, 0, cols}; }

// One instance of every operator, of random sizes.
std::vector<Case> random_cases(std::mt19937& random) {
  const auto pick = [&](uint32_t least, uint32_t most) {
    return least + static_cast<uint32_t>(random() % (most - least + 1));
  };
  const uint32_t n = pick(1, 100), k = pick(1, 100), vocab = pick(1, 50);
  const uint32_t head_dim = 2 * pick(1, 20), kv_heads = pick(1, 4), heads = kv_heads * pick(1, 4);
  const uint32_t kv = kv_heads * head_dim, q = heads * head_dim;
  const uint32_t half = pick(1, head_dim / 2);
  const uint32_t parts = pick(1, 32), all_parts = heads * parts * (head_dim + 2);
  const uint32_t pairs = (k + 1) / 2, k_begin = 2 * pick(0, pairs - 1);
  const uint32_t k_end = std::min(k, k_begin + 2 * pick(1, pairs));
  return {
      {Op::kEmbed, {fixed(vocab, n), tokens(1), tokens(n)}},
      {Op::kScale, {tokens(n), tokens(n)}},
      {Op::kRmsNorm, {tokens(q), fixed(1, head_dim), tokens(q)}, {0, 0, head_dim}},
      {Op::kLinear, {tokens(k), fixed(n, k), tokens(n)}},
      {Op::kBiasAdd, {tokens(n), fixed(1, n), tokens(n)}},
      {Op::kRopeTable, {fixed(1, half), tokens(1), tokens(2 * half)}},
      {Op::kRope, {tokens(q), tokens(2 * half), tokens(q)}, {head_dim}},
      {Op::kKvAppend, {tokens(kv), tokens(kv), fixed(1, kv), fixed(1, kv)}, {head_dim}},
      {Op::kAttention, {tokens(q), fixed(1, kv), tokens(q)}, {head_dim}},
      {Op::kAdd, {samples(n), samples(n), samples(n)}},
      {Op::kGlu, {tokens(n), tokens(n), tokens(n)}},
      {Op::kGatherRows, {tokens(n), samples(1), samples(n)}},
      {Op::kSoftCap, {samples(n), samples(n)}},
      {Op::kSample, {samples(n), samples(1)}},
      {Op::kLinearAdd, {tokens(k), fixed(n, k), tokens(n), tokens(n)}, {k_begin, k_end}},
      {Op::kLinearPart, {tokens(k), fixed(n, k), tokens(n)}, {k_begin, k_end}},
      {Op::kNormLinear, {tokens(k), fixed(1, k), fixed(n, k), tokens(n)}},
      {Op::kGluLinear, {tokens(k), fixed(n, k), fixed(n, k), tokens(n)}},
      {Op::kNormGluLinear, {tokens(k), fixed(1, k), fixed(n, k), fixed(n, k), tokens(n)}},
      {Op::kLinearBias, {tokens(k), fixed(n, k), fixed(1, n), tokens(n)}},
      {Op::kNormLinearBias, {tokens(k), fixed(1, k), fixed(n, k), fixed(1, n), tokens(n)}},
      {Op::kNormRope, {tokens(q), fixed(1, head_dim), tokens(2 * half), tokens(q)}, {head_dim}},
      {Op::kRopeKvAppend, {tokens(kv), tokens(kv), tokens(2 * half), fixed(1, kv), fixed(1, kv)}, {head_dim}},
      {Op::kNormRopeKvAppend,
       {tokens(kv), fixed(1, head_dim), tokens(kv), tokens(2 * half), fixed(1, kv), fixed(1, kv)},
       {head_dim}},
      {Op::kRopeAttention, {samples(q), samples(2 * half), fixed(1, kv), samples(q)}, {head_dim}},
      {Op::kNormRopeAttention,
       {tokens(q), fixed(1, head_dim), tokens(2 * half), fixed(1, kv), tokens(q)},
       {head_dim}},
      {Op::kNormAdd, {tokens(n), fixed(1, n), tokens(n), tokens(n)}},
      {Op::kAttentionPart, {samples(q), fixed(1, kv), samples(all_parts)}, {head_dim, 0, 0, 0, parts}},
      {Op::kAttentionMerge, {tokens(all_parts), tokens(q)}, {head_dim, parts, heads / kv_heads}},
  };
}

OpInstance instance_of(const Case& c) { return {c.op, c.attributes, c.operands}; }

// The rows that a footprint may name by kTile: a tensor with the operator's rows, or the KV state, which is
// written by row.
bool has_tile_rows(const OpInstance& instance, const Access& access) {
  const OperandShape& operand = instance.operands[access.operand];
  return operand.row_kind == instance_rows(instance) || (appends_kv(instance.op) && access.writes);
}

void expect_inside(const OpInstance& instance, const Access& access) {
  ASSERT_LT(access.operand, instance.operands.size());
  const OperandShape& operand = instance.operands[access.operand];
  EXPECT_LT(access.col_begin, access.col_end);
  EXPECT_LE(access.col_end, operand.cols);
  if (access.rows == RowAccess::kTile) {
    EXPECT_TRUE(has_tile_rows(instance, access)) << op_name(instance.op);
  }
  if (access.rows == RowAccess::kFixed) {
    EXPECT_EQ(operand.row_kind, Rows::kFixed);
    EXPECT_LT(access.row_begin, access.row_end);
    EXPECT_LE(access.row_end, operand.rows);
  }
  EXPECT_EQ(access.writes, access.operand + 1u == instance.operands.size());
}

TEST(TileRules, EveryOperatorHasARuleOfItsOwnNumberAndNothingElseHas) {
#define PLOW_LEAF(number, Name, text) EXPECT_EQ(tile_rule(Op::k##Name), nullptr) << #text;
#define PLOW_PROTOCOL(number, Name, text) EXPECT_EQ(tile_rule(Op::k##Name), nullptr) << #text;
#define PLOW_OP(number, Name, text)           \
  ASSERT_NE(tile_rule(Op::k##Name), nullptr); \
  EXPECT_EQ(tile_rule(Op::k##Name)->op, Op::k##Name);
#include "abi/ops.def"
  EXPECT_EQ(tile_rule(static_cast<Op>(999)), nullptr);
}

TEST(TileRules, TilesOfAnyLegalWidthWriteEachColumnOnceAndStayInsideTheOperands) {
  std::mt19937 random(1);
  for (int round = 0; round < 300; ++round) {
    for (const Case& c : random_cases(random)) {
      const OpInstance instance = instance_of(c);
      const TileRule& rule = *tile_rule(c.op);
      ASSERT_EQ(rule.n_operands, c.operands.size()) << op_name(c.op);
      const uint32_t unit = rule.column_unit(instance);
      ASSERT_GT(unit, 0u) << op_name(c.op);
      const uint32_t cols = instance.output().cols;
      const uint32_t width = unit * (1 + static_cast<uint32_t>(random() % 3));
      std::vector<int> written(cols, 0);
      for (uint32_t begin = 0; begin < cols; begin += width) {
        std::vector<Access> accesses;
        rule.footprint(instance, begin, std::min(cols, begin + width), accesses);
        for (const Access& access : accesses) {
          expect_inside(instance, access);
          if (!access.writes) continue;
          for (uint32_t col = access.col_begin; col < access.col_end; ++col) ++written[col];
        }
      }
      EXPECT_EQ(std::count(written.begin(), written.end(), 1), cols) << op_name(c.op);
    }
  }
}

TEST(TileRules, AnInstanceWhoseShapesDoNotFitHasNoColumnUnit) {
  std::mt19937 random(2);
  for (const Case& good : random_cases(random)) {
    Case wide = good;
    wide.operands.front().cols += 1;
    EXPECT_TRUE(good.op == Op::kSample || tile_rule(good.op)->column_unit(instance_of(wide)) == 0)
        << op_name(good.op);
    Case empty = good;
    for (OperandShape& operand : empty.operands) operand.cols = 0;
    empty.attributes = {};
    const TileRule& rule = *tile_rule(good.op);
    const uint32_t unit = rule.column_unit(instance_of(empty));  // must not divide by zero
    EXPECT_TRUE(unit == 0 || instance_of(empty).output().cols == 0);
  }
}

// By hand: 2 KV heads of 2 query heads of 4 columns, in 3 parts. A part of a KV head has 2 * (4 + 2) columns.
TEST(TileRules, APartReadsItsKvHeadAndAMergeAllPartsOfIts) {
  const auto accesses_of = [](const Case& c, uint32_t begin, uint32_t end) {
    std::vector<Access> accesses;
    tile_rule(c.op)->footprint(instance_of(c), begin, end, accesses);
    return accesses;
  };
  const auto expect_columns = [](const Access& access, RowAccess rows, uint32_t begin, uint32_t end) {
    EXPECT_EQ(access.rows, rows);
    EXPECT_EQ(access.col_begin, begin);
    EXPECT_EQ(access.col_end, end);
  };
  const Case part{Op::kAttentionPart, {tokens(16), fixed(1, 8), tokens(72)}, {4, 0, 0, 0, 3}};
  EXPECT_EQ(tile_rule(part.op)->column_unit(instance_of(part)), 12u);
  const auto of_part = accesses_of(part, 48, 60);
  ASSERT_EQ(of_part.size(), 3u);
  expect_columns(of_part[0], RowAccess::kTile, 8, 16);
  expect_columns(of_part[1], RowAccess::kAll, 4, 8);
  expect_columns(of_part[2], RowAccess::kTile, 48, 60);

  const Case merge{Op::kAttentionMerge, {tokens(72), tokens(16)}, {4, 3, 2}};
  EXPECT_EQ(tile_rule(merge.op)->column_unit(instance_of(merge)), 4u);
  const auto of_merge = accesses_of(merge, 12, 16);  // the second head of the second KV head
  ASSERT_EQ(of_merge.size(), 2u);
  expect_columns(of_merge[0], RowAccess::kTile, 36, 72);
  expect_columns(of_merge[1], RowAccess::kTile, 12, 16);
  expect_columns(accesses_of(merge, 4, 12)[0], RowAccess::kTile, 0, 72);  // of both
}

}  // namespace
}  // namespace plow
