#include "ops/def.h"

namespace plow {
namespace {

constexpr AttributeDef kAttributes[] = {{"head_dim", AttributeKind::kU32}};

Result<ValueType> infer(std::span<const ValueType> in, const Attributes& attributes) {
  const uint32_t head_dim = attributes[0];
  PLOW_TRY_STATUS(expect_activation(Op::kRope, "x", in[0]));
  PLOW_TRY_STATUS(expect_activation(Op::kRope, "the table", in[1]));
  PLOW_TRY_STATUS(expect_heads(Op::kRope, "x", in[0], head_dim));
  const uint32_t table_cols = in[1].shape.cols;
  if (in[0].shape.row_kind != in[1].shape.row_kind || table_cols % 2 != 0 || table_cols > head_dim) {
    return misfit(
        Op::kRope,
        fmt::format(
            "the table must have the rows of x and an even number of columns up to head_dim={}; found "
            "table {} and x {}",
            head_dim, to_text(in[1]), to_text(in[0])));
  }
  return in[0];
}

Work work(std::span<const ValueType> in, const ValueType& out, const Attributes&, double tokens,
          double samples) {
  return element_wise_work(in, out, 3, tokens, samples);
}

Matrix reference(EvalContext&, NodeId, std::span<const Matrix* const> in, const Attributes& attributes) {
  const Matrix& table = *in[1];
  const uint32_t head_dim = attributes[0];
  const uint32_t half = table.cols / 2;
  Matrix out = *in[0];
  for (uint32_t r = 0; r < out.rows; ++r) {
    const double* cosines = table.row(r);
    const double* sines = cosines + half;
    for (uint32_t begin = 0; begin < out.cols; begin += head_dim) {
      double* head = out.row(r) + begin;
      for (uint32_t j = 0; j < half; ++j) {
        const double first = head[j];
        const double second = head[j + half];
        head[j] = first * cosines[j] - second * sines[j];
        head[j + half] = second * cosines[j] + first * sines[j];
      }
    }
  }
  return out;
}

}  // namespace

const OpDef kRopeDef{Op::kRope, 2, kAttributes, infer, work, reference};

}  // namespace plow
