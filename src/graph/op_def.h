// What the compiler knows of an operator, as a table of functions: no virtual nodes, no visitors. The table
// itself is filled in ops/ (one folder an operator) and handed to those who need it; graph/ knows no
// particular operator.
#pragma once

#include "abi/op.h"
#include "base/error.h"
#include "graph/graph.h"

#include <fmt/format.h>

#include <cstdint>
#include <span>
#include <string>
#include <vector>

namespace plow {

enum class AttributeKind : uint8_t { kU32, kF32 };

struct AttributeDef {
  const char* name;
  AttributeKind kind;
};

// What a shape rule says of a node.
struct ValueType {
  DType dtype = DType::kF32;
  Shape shape;
  bool operator==(const ValueType&) const = default;
};

// "f32[T, 576]"
inline std::string to_text(const ValueType& type) {
  const Shape& shape = type.shape;
  const std::string rows =
      shape.row_kind == Rows::kFixed ? fmt::to_string(shape.rows) : rows_name(shape.row_kind);
  return fmt::format("{}[{}, {}]", dtype_name(type.dtype), rows, shape.cols);
}

// The work of a node in a step with `tokens` rows T and `samples` rows S, for the cost model. Bytes that are
// read or written once.
struct Work {
  double flops = 0;
  double weight_bytes = 0;           // of the tape
  double activation_bytes = 0;       // of the arena, read and written
  double kv_bytes_per_position = 0;  // of the cache, for each earlier position that a row attends to
};

// A value in the float64 evaluator: [rows, cols], row-major. A weight of more than one row is held in
// `floats`, which have its exact values in half of the memory, and then `values` is empty: only operators of
// matrix_inputs() (abi/op.h) take such.
struct Matrix {
  uint32_t rows = 0;
  uint32_t cols = 0;
  std::vector<double> values;
  std::vector<float> floats;

  Matrix() = default;
  Matrix(uint32_t r, uint32_t c) : rows(r), cols(c), values(size_t{r} * c, 0.0) {}
  double element(uint32_t r, uint32_t c) const {
    const size_t i = size_t{r} * cols + c;
    return values.empty() ? double{floats[i]} : values[i];
  }
  double* row(uint32_t r) { return values.data() + size_t{r} * cols; }
  const double* row(uint32_t r) const { return values.data() + size_t{r} * cols; }
};

struct EvalContext;  // eval_context.h

struct OpDef {
  Op op;
  uint32_t n_inputs;
  std::span<const AttributeDef> attributes;  // at most kPacketImmediates
  // The value's type from the inputs' types and the attributes. REQUIRES n_inputs inputs. Errors
  // (kVerification) say what does not fit.
  Result<ValueType> (*infer)(std::span<const ValueType> inputs, const Attributes& attributes);
  Work (*work)(std::span<const ValueType> inputs, const ValueType& output, const Attributes& attributes,
               double tokens, double samples);
  // The float64 reference: the definition of the operator. REQUIRES inputs of the types that infer() took.
  Matrix (*reference)(EvalContext& context, NodeId node, std::span<const Matrix* const> inputs,
                      const Attributes& attributes);
};

// The definition of an operator that is not a leaf; aborts for a number without one (ops/ fills the table; a
// test walks ops.def). Defined in ops/, declared here because printing and verifying need the attributes'
// names.
const OpDef& op_def(Op op);

inline float attribute_f32(const Attributes& attributes, size_t index) {
  float value;
  static_assert(sizeof(value) == sizeof(attributes[index]));
  __builtin_memcpy(&value, &attributes[index], sizeof(value));
  return value;
}
inline uint32_t attribute_bits(float value) {
  uint32_t bits;
  __builtin_memcpy(&bits, &value, sizeof(bits));
  return bits;
}

}  // namespace plow
