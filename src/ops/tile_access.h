// For the operators' tile.cpp: the rules' names, short forms for accesses, and the rule that operators which
// work element by element share.
#pragma once

#include "ops/tile_rule.h"

namespace plow {

// One rule a line of ops.def, defined in src/ops/<op>/tile.cpp: a folder without one does not link.
#define PLOW_OP(number, Name, text) extern const TileRule k##Name##TileRule;
#include "abi/ops.def"

// A cache line of float outputs, and the row group of the weights' layout (Layout::kRows16Pairs).
constexpr uint32_t kColumnUnit = 16;

inline Access read_tile_rows(uint32_t operand, uint32_t col_begin, uint32_t col_end) {
  return {static_cast<uint8_t>(operand), false, RowAccess::kTile, 0, 0, col_begin, col_end};
}
inline Access read_all_rows(uint32_t operand, uint32_t col_begin, uint32_t col_end) {
  return {static_cast<uint8_t>(operand), false, RowAccess::kAll, 0, 0, col_begin, col_end};
}
inline Access read_fixed_rows(uint32_t operand, uint32_t row_begin, uint32_t row_end, uint32_t col_begin,
                              uint32_t col_end) {
  return {static_cast<uint8_t>(operand), false, RowAccess::kFixed, row_begin, row_end, col_begin, col_end};
}
// Of the output.
inline Access write_tile_rows(const OpInstance& instance, uint32_t col_begin, uint32_t col_end) {
  return {
      static_cast<uint8_t>(instance.operands.size() - 1), true, RowAccess::kTile, 0, 0, col_begin, col_end};
}

// Operators whose inputs all have the shape of the output, each output element made of the input elements in
// its place.
inline uint32_t element_wise_unit(const OpInstance& instance) {
  for (const OperandShape& operand : instance.operands) {
    if (operand.cols != instance.output().cols) return 0;
  }
  return kColumnUnit;
}
inline void element_wise_footprint(const OpInstance& instance, uint32_t col_begin, uint32_t col_end,
                                   std::vector<Access>& out) {
  for (uint32_t input = 0; input + 1 < instance.operands.size(); ++input) {
    out.push_back(read_tile_rows(input, col_begin, col_end));
  }
  out.push_back(write_tile_rows(instance, col_begin, col_end));
}

}  // namespace plow
