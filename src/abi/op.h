// Operator numbers. See ops.def.
#pragma once

#include <stdint.h>

namespace plow {

enum class Op : uint16_t {
#define PLOW_LEAF(number, Name, text) k##Name = number,
#define PLOW_OP(number, Name, text) k##Name = number,
#define PLOW_PROTOCOL(number, Name, text) k##Name = number,
#include "abi/ops.def"
};

// The operator's name in texts; null for a number that is not in the table.
constexpr const char* op_name(Op op) {
  switch (op) {
#define PLOW_LEAF(number, Name, text) \
  case Op::k##Name: return #text;
#define PLOW_OP(number, Name, text) \
  case Op::k##Name: return #text;
#define PLOW_PROTOCOL(number, Name, text) \
  case Op::k##Name: return #text;
#include "abi/ops.def"
  }
  return nullptr;
}

// Made by the rewriter and by nothing else.
constexpr bool is_fused(Op op) {
  switch (op) {
#define PLOW_FUSED(number, Name, text) case Op::k##Name:
#include "abi/ops.def"
    return true;
    default: return false;
  }
}

// Operators whose value is the KV state after the step. The state before it is their last input, head_dim their first attribute.
constexpr bool appends_kv(Op op) { return op == Op::kKvAppend || op == Op::kRopeKvAppend || op == Op::kNormRopeKvAppend; }

// Operators that attend to a KV state, their last input. Their first attributes are head_dim, window, scale and softcap.
constexpr bool attends(Op op) {
  return op == Op::kAttention || op == Op::kRopeAttention || op == Op::kNormRopeAttention || op == Op::kAttentionPart;
}

// The inputs that are matrices, as bits: they lie in the tape as a product reads them (Layout::kRows16Pairs).
constexpr uint32_t matrix_inputs(Op op) {
  switch (op) {
    case Op::kEmbed: return 1u << 0;
    case Op::kLinear:
    case Op::kLinearAdd:
    case Op::kLinearPart:
    case Op::kLinearBias: return 1u << 1;
    case Op::kNormLinear:
    case Op::kNormLinearBias: return 1u << 2;
    case Op::kGluLinear: return 1u << 1 | 1u << 2;
    case Op::kNormGluLinear: return 1u << 2 | 1u << 3;
    default: return 0;
  }
}

// Operators whose time is that of a product with their matrices.
constexpr bool is_product(Op op) { return op != Op::kEmbed && matrix_inputs(op) != 0; }

constexpr bool is_leaf(Op op) { return static_cast<uint16_t>(op) < 16; }
constexpr bool is_protocol(Op op) { return static_cast<uint16_t>(op) >= 240; }

}  // namespace plow
