#include "ops/def.h"

namespace plow {
namespace {

Result<ValueType> infer(std::span<const ValueType> in, const Attributes&) {
  PLOW_TRY_STATUS(expect_activation(Op::kBiasAdd, "x", in[0]));
  PLOW_TRY_STATUS(expect_stored(Op::kBiasAdd, "the bias", in[1], 1, in[0].shape.cols));
  return in[0];
}

Work work(std::span<const ValueType> in, const ValueType& out, const Attributes&, double tokens,
          double samples) {
  return element_wise_work(in, out, 1, tokens, samples);
}

Matrix reference(EvalContext&, NodeId, std::span<const Matrix* const> in, const Attributes&) {
  Matrix out = *in[0];
  for (uint32_t r = 0; r < out.rows; ++r) {
    for (uint32_t c = 0; c < out.cols; ++c) out.row(r)[c] += in[1]->values[c];
  }
  return out;
}

}  // namespace

const OpDef kBiasAddDef{Op::kBiasAdd, 2, {}, infer, work, reference};

}  // namespace plow
