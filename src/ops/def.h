// For the operators' def.cpp: the definitions' names and the checks that shape rules share.
#pragma once

#include "graph/eval_context.h"
#include "graph/op_def.h"

#include <cmath>

namespace plow {

// One definition a line of ops.def, in src/ops/<op>/def.cpp: a folder without one does not link.
#define PLOW_OP(number, Name, text) extern const OpDef k##Name##Def;
#include "abi/ops.def"

// Checks of operands. Errors (kVerification) begin with the operator's name and quote the type that does not
// fit.
inline Error misfit(Op op, const std::string& what) {
  return verification_error(fmt::format("{}: {}", op_name(op), what));
}

// A value of the arena: f32, T or S rows, at least one column.
inline Status expect_activation(Op op, const char* what, const ValueType& type) {
  if (type.dtype == DType::kF32 && type.shape.row_kind != Rows::kFixed && type.shape.cols > 0) return {};
  return misfit(op, fmt::format("{} must be f32 with T or S rows, found {}", what, to_text(type)));
}

inline bool is_stored_float(DType dtype) {
  return dtype == DType::kF32 || dtype == DType::kBf16 || dtype == DType::kF16;
}

// Stored floats: [rows, cols] with fixed rows.
inline Status expect_stored(Op op, const char* what, const ValueType& type, uint32_t rows, uint32_t cols) {
  if (is_stored_float(type.dtype) && type.shape == Shape{Rows::kFixed, rows, cols}) return {};
  return misfit(
      op, fmt::format("{} must be f32, bf16 or f16 [{}, {}], found {}", what, rows, cols, to_text(type)));
}

// The same of a matrix, which may be of blocks.
inline Status expect_matrix(Op op, const char* what, const ValueType& type, uint32_t rows, uint32_t cols) {
  const bool stored = is_stored_float(type.dtype) || is_of_blocks(type.dtype);
  if (stored && type.shape == Shape{Rows::kFixed, rows, cols}) return {};
  return misfit(op, fmt::format("{} must be f32, bf16, f16, q8_0 or q4_0 [{}, {}], found {}", what, rows,
                                cols, to_text(type)));
}

inline Status expect_same(Op op, const char* what, const ValueType& type, const ValueType& expected) {
  if (type == expected) return {};
  return misfit(op, fmt::format("{} must be {}, found {}", what, to_text(expected), to_text(type)));
}

inline Status expect_column_of(Op op, const char* what, const ValueType& type, Rows rows) {
  return expect_same(op, what, type, {DType::kU32, {rows, 1, 1}});
}

// A whole number of heads: head_dim divides the columns.
inline Status expect_heads(Op op, const char* what, const ValueType& type, uint32_t head_dim) {
  if (head_dim > 0 && type.shape.cols > 0 && type.shape.cols % head_dim == 0) return {};
  return misfit(op, fmt::format("{} must have a multiple of head_dim={} columns, found {}", what, head_dim,
                                to_text(type)));
}

inline Status expect_finite(Op op, const char* what, float value, bool above_zero) {
  if (std::isfinite(value) && (!above_zero || value > 0)) return {};
  return misfit(
      op, fmt::format("{} must be a finite number{}, found {}", what, above_zero ? " above 0" : "", value));
}

// The number of rows of a shape in a step.
inline double rows_in_step(const Shape& shape, double tokens, double samples) {
  if (shape.row_kind == Rows::kTokens) return tokens;
  return shape.row_kind == Rows::kSamples ? samples : shape.rows;
}

// Bytes of a value in a step.
inline double value_bytes(const ValueType& type, double tokens, double samples) {
  return rows_in_step(type.shape, tokens, samples) * type.shape.cols * bytes_per_value(type.dtype);
}

// Operators that read each input and write the output once, element by element; inputs with fixed rows come
// from the tape.
inline Work element_wise_work(std::span<const ValueType> inputs, const ValueType& output,
                              double flops_per_element, double tokens, double samples) {
  Work work;
  work.flops = flops_per_element * rows_in_step(output.shape, tokens, samples) * output.shape.cols;
  for (const ValueType& input : inputs) {
    const double bytes = value_bytes(input, tokens, samples);
    (input.shape.row_kind == Rows::kFixed ? work.weight_bytes : work.activation_bytes) += bytes;
  }
  work.activation_bytes += value_bytes(output, tokens, samples);
  return work;
}

}  // namespace plow
