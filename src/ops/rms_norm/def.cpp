#include "ops/def.h"

namespace plow {
namespace {

constexpr AttributeDef kAttributes[] = {
    {"eps", AttributeKind::kF32}, {"offset", AttributeKind::kF32}, {"group", AttributeKind::kU32}};
constexpr size_t kEps = 0, kOffset = 1, kGroup = 2;

Result<ValueType> infer(std::span<const ValueType> in, const Attributes& attributes) {
  const uint32_t group = attributes[kGroup];
  const float eps = attribute_f32(attributes, kEps);
  PLOW_TRY_STATUS(expect_activation(Op::kRmsNorm, "x", in[0]));
  if (group == 0 || in[0].shape.cols % group != 0) {
    return misfit(Op::kRmsNorm,
                  fmt::format("group={} must divide the columns of x, which is {}", group, to_text(in[0])));
  }
  PLOW_TRY_STATUS(expect_stored(Op::kRmsNorm, "the gain", in[1], 1, group));
  PLOW_TRY_STATUS(expect_finite(Op::kRmsNorm, "offset", attribute_f32(attributes, kOffset), false));
  if (!(eps >= 0) || !std::isfinite(eps))
    return misfit(Op::kRmsNorm, fmt::format("eps must be at least 0, found {}", eps));
  return in[0];
}

// Square, add, two products an element; the root and the division of a group count nothing.
Work work(std::span<const ValueType> in, const ValueType& out, const Attributes&, double tokens,
          double samples) {
  return element_wise_work(in, out, 4, tokens, samples);
}

Matrix reference(EvalContext&, NodeId, std::span<const Matrix* const> in, const Attributes& attributes) {
  const Matrix& x = *in[0];
  const Matrix& gain = *in[1];
  const double eps = attribute_f32(attributes, kEps);
  const double offset = attribute_f32(attributes, kOffset);
  const uint32_t group = attributes[kGroup];
  Matrix out(x.rows, x.cols);
  for (uint32_t r = 0; r < x.rows; ++r) {
    for (uint32_t begin = 0; begin < x.cols; begin += group) {
      const double* from = x.row(r) + begin;
      double squares = 0;
      for (uint32_t c = 0; c < group; ++c) squares += from[c] * from[c];
      const double factor = 1.0 / std::sqrt(squares / group + eps);
      for (uint32_t c = 0; c < group; ++c)
        out.row(r)[begin + c] = from[c] * factor * (gain.values[c] + offset);
    }
  }
  return out;
}

}  // namespace

const OpDef kRmsNormDef{Op::kRmsNorm, 2, kAttributes, infer, work, reference};

}  // namespace plow
