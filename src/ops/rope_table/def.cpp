#include "ops/def.h"

namespace plow {
namespace {

constexpr AttributeDef kAttributes[] = {{"attention_factor", AttributeKind::kF32}};

Result<ValueType> infer(std::span<const ValueType> in, const Attributes& attributes) {
  const uint32_t half = in[0].shape.cols;
  if (half == 0 || half > UINT32_MAX / 2) return misfit(Op::kRopeTable, "no frequencies: " + to_text(in[0]));
  PLOW_TRY_STATUS(
      expect_same(Op::kRopeTable, "the inverse frequencies", in[0], {DType::kF64, {Rows::kFixed, 1, half}}));
  PLOW_TRY_STATUS(expect_column_of(Op::kRopeTable, "the positions", in[1], Rows::kTokens));
  PLOW_TRY_STATUS(expect_finite(Op::kRopeTable, "attention_factor", attribute_f32(attributes, 0), true));
  return ValueType{DType::kF32, {Rows::kTokens, 1, 2 * half}};
}

// A sine and a cosine in double count as 40 operations each: what a polynomial of degree 13 with range
// reduction takes.
Work work(std::span<const ValueType> in, const ValueType& out, const Attributes&, double tokens,
          double samples) {
  return element_wise_work(in, out, 40, tokens, samples);
}

Matrix reference(EvalContext&, NodeId, std::span<const Matrix* const> in, const Attributes& attributes) {
  const Matrix& inverse_frequencies = *in[0];
  const Matrix& positions = *in[1];
  const double factor = attribute_f32(attributes, 0);
  const uint32_t half = inverse_frequencies.cols;
  Matrix out(positions.rows, 2 * half);
  for (uint32_t r = 0; r < out.rows; ++r) {
    for (uint32_t j = 0; j < half; ++j) {
      const double angle = positions.values[r] * inverse_frequencies.values[j];
      out.row(r)[j] = std::cos(angle) * factor;
      out.row(r)[half + j] = std::sin(angle) * factor;
    }
  }
  return out;
}

}  // namespace

const OpDef kRopeTableDef{Op::kRopeTable, 2, kAttributes, infer, work, reference};

}  // namespace plow
