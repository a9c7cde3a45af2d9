#include "ops/def.h"

#include <algorithm>

namespace plow {
namespace {

Result<ValueType> infer(std::span<const ValueType> in, const Attributes&) {
  PLOW_TRY_STATUS(expect_activation(Op::kGatherRows, "x", in[0]));
  if (in[0].shape.row_kind != Rows::kTokens)
    return misfit(Op::kGatherRows, "x must have T rows, found " + to_text(in[0]));
  PLOW_TRY_STATUS(expect_column_of(Op::kGatherRows, "the sampled rows", in[1], Rows::kSamples));
  return ValueType{DType::kF32, {Rows::kSamples, 1, in[0].shape.cols}};
}

// Of x only the rows that are gathered.
Work work(std::span<const ValueType> in, const ValueType& out, const Attributes&, double tokens,
          double samples) {
  Work work;
  work.activation_bytes = 2 * value_bytes(out, tokens, samples) + value_bytes(in[1], tokens, samples);
  return work;
}

Matrix reference(EvalContext&, NodeId, std::span<const Matrix* const> in, const Attributes&) {
  Matrix out(in[1]->rows, in[0]->cols);
  for (uint32_t r = 0; r < out.rows; ++r) {
    std::copy_n(in[0]->row(static_cast<uint32_t>(in[1]->values[r])), out.cols, out.row(r));
  }
  return out;
}

}  // namespace

const OpDef kGatherRowsDef{Op::kGatherRows, 2, {}, infer, work, reference};

}  // namespace plow
