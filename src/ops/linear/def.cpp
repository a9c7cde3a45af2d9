#include "ops/linear/reference.h"

namespace plow {
namespace {

Result<ValueType> infer(std::span<const ValueType> in, const Attributes&) {
  const Shape& weight = in[1].shape;
  PLOW_TRY_STATUS(expect_activation(Op::kLinear, "x", in[0]));
  if (weight.rows == 0) return misfit(Op::kLinear, "the weight is empty: " + to_text(in[1]));
  PLOW_TRY_STATUS(expect_matrix(Op::kLinear, "the weight", in[1], weight.rows, in[0].shape.cols));
  return ValueType{DType::kF32, {in[0].shape.row_kind, in[0].shape.rows, weight.rows}};
}

Work work(std::span<const ValueType> in, const ValueType& out, const Attributes&, double tokens,
          double samples) {
  Work work;
  work.flops = 2.0 * rows_in_step(out.shape, tokens, samples) * out.shape.cols * in[0].shape.cols;
  work.weight_bytes = value_bytes(in[1], tokens, samples);
  work.activation_bytes = value_bytes(in[0], tokens, samples) + value_bytes(out, tokens, samples);
  return work;
}

Matrix reference(EvalContext&, NodeId, std::span<const Matrix* const> in, const Attributes&) {
  return product(*in[0], *in[1], 0, in[0]->cols);
}

}  // namespace

const OpDef kLinearDef{Op::kLinear, 2, {}, infer, work, reference};

}  // namespace plow
