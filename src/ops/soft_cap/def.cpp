#include "ops/def.h"

namespace plow {
namespace {

constexpr AttributeDef kAttributes[] = {{"cap", AttributeKind::kF32}};

Result<ValueType> infer(std::span<const ValueType> in, const Attributes& attributes) {
  PLOW_TRY_STATUS(expect_activation(Op::kSoftCap, "x", in[0]));
  PLOW_TRY_STATUS(expect_finite(Op::kSoftCap, "cap", attribute_f32(attributes, 0), true));
  return in[0];
}

// A tanh counts as 20 operations.
Work work(std::span<const ValueType> in, const ValueType& out, const Attributes&, double tokens,
          double samples) {
  return element_wise_work(in, out, 22, tokens, samples);
}

Matrix reference(EvalContext&, NodeId, std::span<const Matrix* const> in, const Attributes& attributes) {
  const double cap = attribute_f32(attributes, 0);
  Matrix out = *in[0];
  for (double& x : out.values) x = cap * std::tanh(x / cap);
  return out;
}

}  // namespace

const OpDef kSoftCapDef{Op::kSoftCap, 1, kAttributes, infer, work, reference};

}  // namespace plow
