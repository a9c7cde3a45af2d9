#include "ops/def.h"

#include "ops/glu/glu.h"

#include <numbers>

namespace plow {
namespace {

constexpr AttributeDef kAttributes[] = {{"activation", AttributeKind::kU32}};

Result<ValueType> infer(std::span<const ValueType> in, const Attributes& attributes) {
  PLOW_TRY_STATUS(expect_activation(Op::kGlu, "gate", in[0]));
  PLOW_TRY_STATUS(expect_same(Op::kGlu, "up", in[1], in[0]));
  if (attributes[0] > static_cast<uint32_t>(Activation::kGeluErf)) {
    return misfit(Op::kGlu, fmt::format("activation={} is not 0 (silu), 1 (gelu, tanh form) or 2 (gelu, erf)",
                                        attributes[0]));
  }
  return in[0];
}

// An exponential or a tanh counts as 20 operations.
Work work(std::span<const ValueType> in, const ValueType& out, const Attributes&, double tokens,
          double samples) {
  return element_wise_work(in, out, 22, tokens, samples);
}

double activate(Activation activation, double x) {
  switch (activation) {
    case Activation::kSilu:
      return x / (1.0 + std::exp(-x));
    case Activation::kGeluTanh:
      return 0.5 * x *
             (1.0 + std::tanh(std::numbers::sqrt2 * std::numbers::inv_sqrtpi * (x + 0.044715 * x * x * x)));
    case Activation::kGeluErf:
      return 0.5 * x * (1.0 + std::erf(x / std::numbers::sqrt2));
  }
  return 0;
}

Matrix reference(EvalContext&, NodeId, std::span<const Matrix* const> in, const Attributes& attributes) {
  const auto activation = static_cast<Activation>(attributes[0]);
  Matrix out = *in[1];
  for (size_t i = 0; i < out.values.size(); ++i) out.values[i] *= activate(activation, in[0]->values[i]);
  return out;
}

}  // namespace

const OpDef kGluDef{Op::kGlu, 2, kAttributes, infer, work, reference};

}  // namespace plow
