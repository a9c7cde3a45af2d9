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

constexpr bool is_leaf(Op op) { return static_cast<uint16_t>(op) < 16; }
constexpr bool is_protocol(Op op) { return static_cast<uint16_t>(op) >= 240; }

}  // namespace plow
