#include "ops/def.h"

namespace plow {
namespace {

constexpr AttributeDef kAttributes[] = {{"factor", AttributeKind::kF32}};

Result<ValueType> infer(std::span<const ValueType> in, const Attributes& attributes) {
  PLOW_TRY_STATUS(expect_activation(Op::kScale, "x", in[0]));
  PLOW_TRY_STATUS(expect_finite(Op::kScale, "factor", attribute_f32(attributes, 0), false));
  return in[0];
}

Work work(std::span<const ValueType> in, const ValueType& out, const Attributes&, double tokens,
          double samples) {
  return element_wise_work(in, out, 1, tokens, samples);
}

Matrix reference(EvalContext&, NodeId, std::span<const Matrix* const> in, const Attributes& attributes) {
  const double factor = attribute_f32(attributes, 0);
  Matrix out = *in[0];
  for (double& x : out.values) x *= factor;
  return out;
}

}  // namespace

const OpDef kScaleDef{Op::kScale, 1, kAttributes, infer, work, reference};

}  // namespace plow
