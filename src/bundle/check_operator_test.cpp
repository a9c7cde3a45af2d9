// Packets of fused operators: what fits is taken, and every operand and attribute that does not is refused.
#include "bundle/check.h"
#include "bundle/testing/tables.h"

#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <string>

namespace plow {
namespace {

constexpr uint32_t kRows = 4, kK = 24, kN = 32, kHeadDim = 8, kKv = 16, kQ = 48, kAngles = 6, kParts = 4;

TensorEntry rows_of(Rows kind, uint32_t cols) { return matrix(Space::kArena, 0, kind, kRows, cols); }
TensorEntry stored(uint32_t rows, uint32_t cols) { return matrix(Space::kTape, 0, Rows::kFixed, rows, cols); }
TensorEntry cache() {
  TensorEntry entry = matrix(Space::kKv, 0, Rows::kFixed, 1, kKv);
  entry.layout = Layout::kKvBlocks;
  return entry;
}

enum class Kind { kWord, kHeadSize, kFloat };

struct Case {
  Op op;
  std::vector<TensorEntry> tensors;  // the output last
  std::vector<uint32_t> immediates;
  std::vector<Kind> kinds;  // of the immediates
};

std::vector<Case> cases() {
  using enum Kind;
  const TensorEntry x = rows_of(Rows::kTokens, kK), out = rows_of(Rows::kTokens, kN), w = stored(kN, kK);
  const TensorEntry gain = stored(1, kK), bias = stored(1, kN), head_gain = stored(1, kHeadDim);
  const TensorEntry q = rows_of(Rows::kTokens, kQ), kv = rows_of(Rows::kTokens, kKv);
  const TensorEntry angles = rows_of(Rows::kTokens, kAngles);
  const TensorEntry sampled_q = rows_of(Rows::kSamples, kQ), sampled = rows_of(Rows::kSamples, kAngles);
  const TensorEntry sampled_parts =
      rows_of(Rows::kSamples, kKv / kHeadDim * kParts * (kQ / kKv) * (kHeadDim + 2));
  const uint32_t one = std::bit_cast<uint32_t>(1.0f);
  const std::vector<uint32_t> attention{kHeadDim, 0, one, one};
  const std::vector<Kind> attention_kinds{kHeadSize, kWord, kFloat, kFloat};
  return {
      {Op::kLinearAdd, {x, w, out, out}, {2, kK}, {kWord, kWord}},
      {Op::kLinearPart, {x, w, out}, {0, 10}, {kWord, kWord}},
      {Op::kNormLinear, {x, gain, w, out}, {one, one}, {kFloat, kFloat}},
      {Op::kGluLinear, {x, w, w, out}, {2}, {kWord}},
      {Op::kNormGluLinear, {x, gain, w, w, out}, {one, one, 0}, {kFloat, kFloat, kWord}},
      {Op::kLinearBias, {x, w, bias, out}, {}, {}},
      {Op::kNormLinearBias, {x, gain, w, bias, out}, {one, one}, {kFloat, kFloat}},
      {Op::kNormRope, {q, head_gain, angles, q}, {kHeadDim, one, one}, {kHeadSize, kFloat, kFloat}},
      {Op::kRopeKvAppend, {kv, kv, angles, cache(), cache()}, {kHeadDim}, {kHeadSize}},
      {Op::kNormRopeKvAppend,
       {kv, head_gain, kv, angles, cache(), cache()},
       {kHeadDim, one, one},
       {kHeadSize, kFloat, kFloat}},
      {Op::kAttention, {sampled_q, cache(), sampled_q}, attention, attention_kinds},
      {Op::kRopeAttention, {sampled_q, sampled, cache(), sampled_q}, attention, attention_kinds},
      {Op::kNormRopeAttention,
       {q, head_gain, angles, cache(), q},
       {kHeadDim, 0, one, one, one},
       {kHeadSize, kWord, kFloat, kFloat, kFloat}},
      {Op::kNormAdd, {out, bias, out, out}, {one, one}, {kFloat, kFloat}},
      {Op::kAttentionPart,
       {sampled_q, cache(), sampled_parts},
       {kHeadDim, 0, one, one, kParts},
       {kHeadSize, kWord, kFloat, kFloat, kWord}},
      {Op::kAttentionMerge,
       {sampled_parts, sampled_q},
       {kHeadDim, kParts, kQ / kKv},
       {kHeadSize, kWord, kWord}},
  };
}

Status check(const Case& c) {
  const bool appends = c.tensors.back().space == Space::kKv;
  std::vector<uint16_t> operands;
  for (size_t i = 0; i < c.tensors.size(); ++i) operands.push_back(static_cast<uint16_t>(i));
  // All columns as one tile.
  const Rows rows = appends ? c.tensors.front().row_kind : c.tensors.back().row_kind;
  Packet packet = operation(c.op, rows, operands, c.tensors.back().cols, 0, 1);
  std::copy(c.immediates.begin(), c.immediates.end(), packet.immediate);
  BundleHeader header{};
  header.vocab = 1;
  BundleParts parts;
  parts.header = &header;
  ProgramView program;
  program.tensors = c.tensors;
  return check_operator(parts, program, packet);
}

TEST(CheckOperator, FusedOperatorsTakeWhatFitsTheirDefinition) {
  for (const Case& c : cases()) {
    const Status status = check(c);
    EXPECT_TRUE(status.ok()) << op_name(c.op) << ": " << (status.ok() ? "" : status.error().message);
  }
}

TEST(CheckOperator, AFusedOperatorWithAnOperandOfOtherRowsColumnsOrMemoryIsRefused) {
  for (const Case& good : cases()) {
    for (size_t i = 0; i < good.tensors.size(); ++i) {
      const auto refuse = [&](const char* what, auto change) {
        Case bad = good;
        change(bad.tensors[i]);
        EXPECT_FALSE(check(bad).ok()) << op_name(good.op) << ": operand " << i << " of other " << what;
      };
      const TensorEntry& tensor = good.tensors[i];
      refuse("columns", [](TensorEntry& t) { t.cols += 1; });
      if (tensor.space == Space::kTape) refuse("rows", [](TensorEntry& t) { t.rows += 1; });
      if (tensor.space != Space::kKv) {
        refuse("row kind", [](TensorEntry& t) {
          t.row_kind = t.row_kind == Rows::kTokens ? Rows::kSamples : Rows::kTokens;
        });
      } else {
        refuse("memory", [](TensorEntry& t) { t.space = Space::kArena; });
      }
    }
  }
}

TEST(CheckOperator, AFusedOperatorWithAnAttributeOutOfRangeIsRefused) {
  const uint32_t nan = std::bit_cast<uint32_t>(std::nanf(""));
  for (const Case& good : cases()) {
    for (size_t i = 0; i < good.immediates.size(); ++i) {
      Case bad = good;
      bad.immediates[i] = good.kinds[i] == Kind::kFloat ? nan : good.kinds[i] == Kind::kHeadSize ? 5u : 1001u;
      const bool is_window = attends(good.op) && i == 1;  // any number is one
      EXPECT_EQ(check(bad).ok(), is_window) << op_name(good.op) << ": attribute " << i;
    }
  }
}

}  // namespace
}  // namespace plow
