// What the bodies can run, and the scratch that they need: kept beside them, and asked when a bundle is made
// and when it is loaded.
#include "isa/x86_64/geometry.h"
#include "isa/x86_64/interpreter.h"
#include "ops/bodies.h"

#include <fmt/format.h>

#include <algorithm>

namespace plow {
namespace {

// Kinds of operand. Everything in the arena is f32, row-major.
enum class Kind { kArena, kVector, kMatrix, kTable, kFrequencies, kCache, kStepColumn };

const char* kind_text(Kind kind) {
  switch (kind) {
    case Kind::kArena:
      return "an f32 activation, row-major in the arena";
    case Kind::kVector:
      return "an f32, bf16 or f16 row of the tape";
    case Kind::kMatrix:
      return "an f32, bf16 or f16 matrix of the tape in rows16-pairs layout, or one of blocks in "
             "rows16-blocks";
    case Kind::kTable:
      return "an f32, bf16 or f16 matrix of the tape, row-major or in rows16-pairs layout, or one of blocks "
             "in "
             "rows16-blocks";
    case Kind::kFrequencies:
      return "an f64 row of the tape";
    case Kind::kCache:
      return "an f32 or bf16 tensor of the KV pool";
    case Kind::kStepColumn:
      return "a column of the step";
  }
  return "";
}

bool weight_dtype(DType dtype) {
  return dtype == DType::kF32 || dtype == DType::kBf16 || dtype == DType::kF16;
}

bool fits(Kind kind, const TensorEntry& t) {
  const bool tape = t.space == Space::kTape, row_major = t.layout == Layout::kRowMajor;
  const bool matrix = tape && weight_dtype(t.dtype);
  const bool pairs = matrix && t.layout == Layout::kRows16Pairs;
  const bool blocks = tape && is_of_blocks(t.dtype) && t.layout == Layout::kRows16Blocks;
  switch (kind) {
    case Kind::kArena:
      return t.space == Space::kArena && t.dtype == DType::kF32 && row_major &&
             t.row_stride % sizeof(float) == 0;
    case Kind::kVector:
      return matrix && row_major;
    case Kind::kMatrix:
      return pairs || blocks;
    case Kind::kTable:
      return (matrix && row_major) || pairs || blocks;
    case Kind::kFrequencies:
      return tape && t.dtype == DType::kF64 && row_major;
    case Kind::kCache:
      return t.space == Space::kKv && t.layout == Layout::kKvBlocks &&
             (t.dtype == DType::kF32 || t.dtype == DType::kBf16);
    case Kind::kStepColumn:
      return t.space == Space::kStep;
  }
  return false;
}

struct OperandKinds {
  uint32_t n = 0;
  Kind kinds[kPacketOperands] = {};
};

OperandKinds operand_kinds(Op op) {
  using enum Kind;
  switch (op) {
    case Op::kEmbed:
      return {3, {kTable, kStepColumn, kArena}};
    case Op::kScale:
    case Op::kSoftCap:
    case Op::kAttentionMerge:
      return {2, {kArena, kArena}};
    case Op::kRmsNorm:
    case Op::kBiasAdd:
      return {3, {kArena, kVector, kArena}};
    case Op::kLinear:
    case Op::kLinearPart:
      return {3, {kArena, kMatrix, kArena}};
    case Op::kLinearAdd:
      return {4, {kArena, kMatrix, kArena, kArena}};
    case Op::kLinearBias:
      return {4, {kArena, kMatrix, kVector, kArena}};
    case Op::kGluLinear:
      return {4, {kArena, kMatrix, kMatrix, kArena}};
    case Op::kNormLinear:
      return {4, {kArena, kVector, kMatrix, kArena}};
    case Op::kNormLinearBias:
      return {5, {kArena, kVector, kMatrix, kVector, kArena}};
    case Op::kNormGluLinear:
      return {5, {kArena, kVector, kMatrix, kMatrix, kArena}};
    case Op::kRopeTable:
      return {3, {kFrequencies, kStepColumn, kArena}};
    case Op::kRope:
    case Op::kAdd:
    case Op::kGlu:
      return {3, {kArena, kArena, kArena}};
    case Op::kNormRope:
    case Op::kNormAdd:
      return {4, {kArena, kVector, kArena, kArena}};
    case Op::kKvAppend:
      return {4, {kArena, kArena, kCache, kCache}};
    case Op::kRopeKvAppend:
      return {5, {kArena, kArena, kArena, kCache, kCache}};
    case Op::kNormRopeKvAppend:
      return {6, {kArena, kVector, kArena, kArena, kCache, kCache}};
    case Op::kAttention:
    case Op::kAttentionPart:
      return {3, {kArena, kCache, kArena}};
    case Op::kRopeAttention:
      return {4, {kArena, kArena, kCache, kArena}};
    case Op::kNormRopeAttention:
      return {5, {kArena, kVector, kArena, kCache, kArena}};
    case Op::kGatherRows:
      return {3, {kArena, kStepColumn, kArena}};
    case Op::kSample:
      return {2, {kArena, kStepColumn}};
    default:
      return {};
  }
}

}  // namespace

std::string unsupported_reason(const Packet& packet, const TensorEntry* tensors) {
  const Op op = static_cast<Op>(packet.body);
  const char* name = op_name(op);
  if (name == nullptr || is_leaf(op)) return fmt::format("no body has number {}", packet.body);
  if (packet.variant != 0) return fmt::format("{} has no variant {}", name, packet.variant);
  if (is_protocol(op)) return {};
  const OperandKinds expected = operand_kinds(op);
  for (uint32_t i = 0; i < expected.n; ++i) {
    if (packet.operand[i] != kNoTensor && fits(expected.kinds[i], tensors[packet.operand[i]])) continue;
    return fmt::format("{}: operand {} must be {}", name, i, kind_text(expected.kinds[i]));
  }
  const uint32_t gate = op == Op::kGluLinear ? 1 : op == Op::kNormGluLinear ? 2 : 0;
  if (gate != 0 && tensors[packet.operand[gate]].dtype != tensors[packet.operand[gate + 1]].dtype) {
    return fmt::format("{}: operands {} and {} must have one dtype", name, gate, gate + 1);
  }
  if (attends(op) && (packet.immediate[0] % 2 != 0 || packet.immediate[0] > x86_64::kMaxHeadDim)) {
    return fmt::format("{}: a head has {} columns; even numbers up to {} are supported", name,
                       packet.immediate[0], x86_64::kMaxHeadDim);
  }
  return {};
}

uint64_t body_scratch_bytes(const Packet& packet, const TensorEntry* tensors, uint32_t row_tile) {
  // Of whichever level runs: one of them rounds the activations of products with bf16 matrices.
  const auto product = [&](const dev::Product& p) {
    using enum dev::ActivationForm;
    const auto end = [&](dev::ActivationForm form) { return dev::product_scratch(p, form, row_tile).end; };
    if (is_of_blocks(p.matrix->dtype)) return end(kBlocks);
    return std::max(end(kFloats), p.matrix->dtype == DType::kBf16 ? end(kBf16Pairs) : 0);
  };
  switch (static_cast<Op>(packet.body)) {
    case Op::kLinear:
      return product(dev::linear_product(packet, tensors));
    case Op::kLinearAdd:
      return product(dev::linear_add_product(packet, tensors));
    case Op::kLinearPart:
      return product(dev::linear_part_product(packet, tensors));
    case Op::kNormLinear:
      return product(dev::norm_linear_product(packet, tensors));
    case Op::kGluLinear:
      return product(dev::glu_linear_product(packet, tensors));
    case Op::kNormGluLinear:
      return product(dev::norm_glu_linear_product(packet, tensors));
    case Op::kLinearBias:
      return product(dev::linear_bias_product(packet, tensors));
    case Op::kNormLinearBias:
      return product(dev::norm_linear_bias_product(packet, tensors));
    case Op::kRopeKvAppend:
    case Op::kNormRopeKvAppend:  // one key
      return packet.immediate[0] * sizeof(float);
    case Op::kAttention:
    case Op::kRopeAttention:
    case Op::kNormRopeAttention:
    case Op::kAttentionPart:
      return dev::attention_scratch_bytes(packet.immediate[0]);
    case Op::kSample:
      return dev::sample_scratch_bytes(tensors[packet.operand[0]].cols);
    default:
      return 0;
  }
}

}  // namespace plow
