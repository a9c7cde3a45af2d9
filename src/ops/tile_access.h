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

// What fused operators demand of their operands, by number.
// x[R,k], W[n,k] with n the columns of the output
inline bool is_product_of(const OpInstance& instance, uint32_t x, uint32_t matrix) {
  const OperandShape& weight = instance.operands[matrix];
  return weight.row_kind == Rows::kFixed && weight.rows == instance.output().cols &&
         weight.cols == instance.operands[x].cols;
}
// A gain or bias: one row of the tape.
inline bool is_vector(const OpInstance& instance, uint32_t operand, uint32_t cols) {
  const OperandShape& vector = instance.operands[operand];
  return vector.row_kind == Rows::kFixed && vector.rows == 1 && vector.cols == cols;
}
// Heads of head_dim columns, turned by a table of 2h <= head_dim.
inline bool is_rope_of(const OpInstance& instance, uint32_t x, uint32_t table, uint32_t head_dim) {
  const uint32_t table_cols = instance.operands[table].cols;
  return head_dim > 0 && instance.operands[x].cols % head_dim == 0 && table_cols % 2 == 0 &&
         table_cols <= head_dim;
}
// Whether whole query heads share each whole head of the cache.
inline bool share_kv_heads(uint32_t head_dim, uint32_t q_cols, uint32_t kv_cols) {
  return head_dim > 0 && kv_cols > 0 && kv_cols % head_dim == 0 && q_cols > 0 && q_cols % kv_cols == 0;
}
// q[R,heads*head_dim] attends to a cache of kv_heads*head_dim columns, the last input. A tile has all query
// heads of a kv head, so that keys and values are read once; 0 when the shapes do not fit.
inline uint32_t attention_unit(const OpInstance& instance, uint32_t head_dim) {
  const uint32_t q_cols = instance.output().cols;
  const uint32_t kv_cols = instance.operands[instance.operands.size() - 2].cols;
  const bool fits = instance.operands[0].cols == q_cols && share_kv_heads(head_dim, q_cols, kv_cols);
  return fits ? head_dim * (q_cols / kv_cols) : 0;
}
inline Access read_cache(const OpInstance& instance, uint32_t col_begin, uint32_t col_end) {
  const auto cache = static_cast<uint32_t>(instance.operands.size() - 2);
  const uint32_t heads_per_kv_head = instance.output().cols / instance.operands[cache].cols;
  return read_all_rows(cache, col_begin / heads_per_kv_head, col_end / heads_per_kv_head);
}
// All columns of an operand.
inline Access read_whole_rows(const OpInstance& instance, uint32_t operand) {
  return read_tile_rows(operand, 0, instance.operands[operand].cols);
}
inline Access read_vector(const OpInstance& instance, uint32_t operand) {
  return read_fixed_rows(operand, 0, 1, 0, instance.operands[operand].cols);
}
// The rows of a matrix that make the output's columns [col_begin, col_end).
inline Access read_matrix(const OpInstance& instance, uint32_t operand, uint32_t col_begin,
                          uint32_t col_end) {
  return read_fixed_rows(operand, col_begin, col_end, 0, instance.operands[operand].cols);
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
