#include "ops/def.h"

namespace plow {
namespace {

Result<ValueType> infer(std::span<const ValueType> in, const Attributes&) {
  const Shape& table = in[0].shape;
  if (table.rows == 0 || table.cols == 0) return misfit(Op::kEmbed, "the table is empty: " + to_text(in[0]));
  PLOW_TRY_STATUS(expect_matrix(Op::kEmbed, "the table", in[0], table.rows, table.cols));
  PLOW_TRY_STATUS(expect_column_of(Op::kEmbed, "the token ids", in[1], Rows::kTokens));
  return ValueType{DType::kF32, {Rows::kTokens, 1, table.cols}};
}

// One row of the table for each token, not the table.
Work work(std::span<const ValueType> in, const ValueType& out, const Attributes&, double tokens,
          double samples) {
  Work work;
  work.weight_bytes = tokens * in[0].shape.cols * bytes_per_value(in[0].dtype);
  work.activation_bytes = value_bytes(in[1], tokens, samples) + value_bytes(out, tokens, samples);
  return work;
}

Matrix reference(EvalContext&, NodeId, std::span<const Matrix* const> in, const Attributes&) {
  const Matrix& table = *in[0];
  Matrix out(in[1]->rows, table.cols);
  for (uint32_t r = 0; r < out.rows; ++r) {
    const auto token = static_cast<uint32_t>(in[1]->values[r]);
    PLOW_CHECK(token < table.rows, "token {} of row {} is not in a table of {}", token, r, table.rows);
    for (uint32_t c = 0; c < table.cols; ++c) out.row(r)[c] = table.element(token, c);
  }
  return out;
}

}  // namespace

const OpDef kEmbedDef{Op::kEmbed, 2, {}, infer, work, reference};

}  // namespace plow
