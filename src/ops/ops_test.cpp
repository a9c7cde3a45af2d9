#include "abi/attention_parts.h"
#include "ops/test_instance.h"

#include <gtest/gtest.h>

namespace plow {
namespace {

TEST(OpDefs, EveryOperatorIsDefinedUnderItsOwnNumberWithAsManyOperandsAsItsTileRuleSays) {
#define PLOW_OP(number, Name, text)                                                         \
  EXPECT_EQ(op_def(Op::k##Name).op, Op::k##Name) << #text;                                  \
  EXPECT_EQ(op_def(Op::k##Name).n_inputs + 1, tile_rule(Op::k##Name)->n_operands) << #text; \
  EXPECT_LE(op_def(Op::k##Name).n_inputs + 1, kPacketOperands) << #text;                    \
  EXPECT_LE(op_def(Op::k##Name).attributes.size(), kPacketImmediates) << #text;
#include "abi/ops.def"
}

TEST(OpDefs, AnInputOfAnotherTypeIsRefusedByAnErrorThatNamesTheOperator) {
  std::mt19937 random(5);
  for (const TestInstance& good : random_instances(random)) {
    ASSERT_TRUE(op_def(good.op).infer(good.inputs, good.attributes).ok()) << op_name(good.op);
    const auto refused = [&](const std::vector<ValueType>& inputs, const Attributes& attributes) {
      const Result<ValueType> type = op_def(good.op).infer(inputs, attributes);
      EXPECT_FALSE(type.ok()) << op_name(good.op);
      if (type.ok()) return;
      EXPECT_TRUE(type.error().message.starts_with(op_name(good.op))) << type.error().message;
    };
    for (size_t i = 0; i < good.inputs.size(); ++i) {
      std::vector<ValueType> inputs = good.inputs;
      inputs[i].dtype = good.inputs[i].dtype == DType::kU32 ? DType::kF32 : DType::kU32;
      refused(inputs, good.attributes);
      inputs = good.inputs;
      inputs[i].shape.cols = 0;
      refused(inputs, good.attributes);
      inputs = good.inputs;
      inputs[i].shape.row_kind = good.inputs[i].shape.row_kind == Rows::kFixed ? Rows::kTokens : Rows::kFixed;
      refused(inputs, good.attributes);
    }
  }
}

TEST(OpDefs, AttributesOutOfRangeAreRefused) {
  std::mt19937 random(6);
  const uint32_t nan = attribute_bits(std::numeric_limits<float>::quiet_NaN());
  const uint32_t negative = attribute_bits(-1.0f);
  struct Bad {
    Op op;
    size_t index;
    uint32_t bits;
  };
  const Bad cases[] = {{Op::kScale, 0, nan},
                       {Op::kRmsNorm, 0, nan},
                       {Op::kRmsNorm, 0, negative},
                       {Op::kRmsNorm, 1, nan},
                       {Op::kRmsNorm, 2, 0},
                       {Op::kRopeTable, 0, negative},
                       {Op::kRope, 0, 0},
                       {Op::kKvAppend, 0, 0},
                       {Op::kAttention, 0, 0},
                       {Op::kAttention, 2, nan},
                       {Op::kAttention, 3, nan},
                       {Op::kAttention, 3, negative},
                       {Op::kGlu, 0, 3},
                       {Op::kSoftCap, 0, negative},
                       {Op::kSoftCap, 0, 0},
                       {Op::kLinearAdd, 0, 1},
                       {Op::kLinearAdd, 0, 1000},
                       {Op::kLinearAdd, 1, 1000},
                       {Op::kLinearPart, 1, 0},
                       {Op::kLinearPart, 0, 1},
                       {Op::kNormLinear, 0, nan},
                       {Op::kNormLinear, 1, nan},
                       {Op::kGluLinear, 0, 3},
                       {Op::kNormGluLinear, 0, negative},
                       {Op::kNormGluLinear, 2, 3},
                       {Op::kNormLinearBias, 0, nan},
                       {Op::kNormRope, 0, 0},
                       {Op::kNormRope, 1, nan},
                       {Op::kRopeKvAppend, 0, 0},
                       {Op::kNormRopeKvAppend, 0, 0},
                       {Op::kNormRopeKvAppend, 1, nan},
                       {Op::kRopeAttention, 0, 0},
                       {Op::kRopeAttention, 2, nan},
                       {Op::kNormRopeAttention, 0, 0},
                       {Op::kNormRopeAttention, 3, negative},
                       {Op::kNormRopeAttention, 4, nan},
                       {Op::kNormAdd, 0, nan},
                       {Op::kNormAdd, 1, nan},
                       {Op::kAttentionPart, 0, 0},
                       {Op::kAttentionPart, 2, nan},
                       {Op::kAttentionPart, 3, negative},
                       {Op::kAttentionPart, 4, 0},
                       {Op::kAttentionPart, 4, kMostAttentionParts + 1},
                       {Op::kAttentionMerge, 0, 0},
                       {Op::kAttentionMerge, 1, 0},
                       {Op::kAttentionMerge, 1, kMostAttentionParts + 1},
                       {Op::kAttentionMerge, 2, 0}};
  for (TestInstance& instance : random_instances(random)) {
    for (const Bad& bad : cases) {
      if (bad.op != instance.op) continue;
      Attributes attributes = instance.attributes;
      attributes[bad.index] = bad.bits;
      EXPECT_FALSE(op_def(bad.op).infer(instance.inputs, attributes).ok())
          << op_name(bad.op) << " " << bad.index;
    }
  }
}

// By hand: 3 rows of 8 columns through a bf16 matrix of 5 rows.
TEST(OpDefs, WorkOfALinearCountsProductsWeightsAndActivations) {
  const std::vector<ValueType> inputs = {{DType::kF32, {Rows::kTokens, 1, 8}},
                                         {DType::kBf16, {Rows::kFixed, 5, 8}}};
  const OpDef& def = op_def(Op::kLinear);
  const Work work = def.work(inputs, *def.infer(inputs, {}), {}, 3, 1);
  EXPECT_EQ(work.flops, 2 * 3 * 8 * 5);
  EXPECT_EQ(work.weight_bytes, 5 * 8 * 2);
  EXPECT_EQ(work.activation_bytes, 3 * 8 * 4 + 3 * 5 * 4);
}

// The row of activations is read once, and what the stages hand to each other is not stored. By hand, as
// above.
TEST(OpDefs, WorkOfAFusedOperatorLeavesOutWhatItSaves) {
  const ValueType x{DType::kF32, {Rows::kTokens, 1, 8}}, w{DType::kBf16, {Rows::kFixed, 5, 8}};
  const ValueType gain{DType::kF32, {Rows::kFixed, 1, 8}}, out{DType::kF32, {Rows::kTokens, 1, 5}};
  const auto work = [](Op op, const std::vector<ValueType>& inputs, const Attributes& attributes) {
    return op_def(op).work(inputs, *op_def(op).infer(inputs, attributes), attributes, 3, 1);
  };
  const Work glu = work(Op::kNormGluLinear, {x, gain, w, w}, {});
  EXPECT_EQ(glu.flops, 4 * 3 * 8 + 2 * (2 * 3 * 8 * 5) + 22 * 3 * 5);
  EXPECT_EQ(glu.weight_bytes, 8 * 4 + 2 * (5 * 8 * 2));
  EXPECT_EQ(glu.activation_bytes, 3 * 8 * 4 + 3 * 5 * 4);
  const Work part = work(Op::kLinearAdd, {x, w, out}, {2, 4});
  EXPECT_EQ(part.flops, 2 * 3 * 2 * 5 + 3 * 5);
  EXPECT_EQ(part.weight_bytes, 5 * 2 * 2);
  EXPECT_EQ(part.activation_bytes, 3 * 2 * 4 + 2 * (3 * 5 * 4));
}

TEST(OpDefs, WorkIsFiniteAndGrowsWithTheRows) {
  std::mt19937 random(7);
  for (const TestInstance& instance : random_instances(random)) {
    const OpDef& def = op_def(instance.op);
    const Work few = def.work(instance.inputs, instance.output(), instance.attributes, 1, 1);
    const Work many = def.work(instance.inputs, instance.output(), instance.attributes, 64, 64);
    EXPECT_GT(few.activation_bytes, 0) << op_name(instance.op);
    EXPECT_GT(many.activation_bytes, few.activation_bytes) << op_name(instance.op);
    EXPECT_GE(many.flops, few.flops) << op_name(instance.op);
  }
}

}  // namespace
}  // namespace plow
