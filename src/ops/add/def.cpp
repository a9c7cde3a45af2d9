#include "ops/def.h"

namespace plow {
namespace {

Result<ValueType> infer(std::span<const ValueType> in, const Attributes&) {
  PLOW_TRY_STATUS(expect_activation(Op::kAdd, "x", in[0]));
  PLOW_TRY_STATUS(expect_same(Op::kAdd, "y", in[1], in[0]));
  return in[0];
}

Work work(std::span<const ValueType> in, const ValueType& out, const Attributes&, double tokens,
          double samples) {
  return element_wise_work(in, out, 1, tokens, samples);
}

Matrix reference(EvalContext&, NodeId, std::span<const Matrix* const> in, const Attributes&) {
  Matrix out = *in[0];
  for (size_t i = 0; i < out.values.size(); ++i) out.values[i] += in[1]->values[i];
  return out;
}

}  // namespace

const OpDef kAddDef{Op::kAdd, 2, {}, infer, work, reference};

}  // namespace plow
