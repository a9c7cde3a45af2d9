#include "ops/def.h"

#include <array>

namespace plow {
namespace {

Result<ValueType> infer(std::span<const ValueType> in, const Attributes&) {
  const Shape& weight = in[1].shape;
  PLOW_TRY_STATUS(expect_activation(Op::kLinear, "x", in[0]));
  if (weight.rows == 0) return misfit(Op::kLinear, "the weight is empty: " + to_text(in[1]));
  PLOW_TRY_STATUS(expect_stored(Op::kLinear, "the weight", in[1], weight.rows, in[0].shape.cols));
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

// Eight partial sums, so that the compiler may use vectors: the order of the sum is fixed, but not left to
// right.
double dot(const double* a, const double* b, uint32_t n) {
  constexpr uint32_t kLanes = 8;
  std::array<double, kLanes> sums{};
  uint32_t i = 0;
  for (; i + kLanes <= n; i += kLanes) {
    for (uint32_t lane = 0; lane < kLanes; ++lane) sums[lane] += a[i + lane] * b[i + lane];
  }
  double total = 0;
  for (; i < n; ++i) total += a[i] * b[i];
  for (double sum : sums) total += sum;
  return total;
}

// A weight row is widened once and used by all rows of x: a real model's matrices come through the cache
// once.
Matrix reference(EvalContext&, NodeId, std::span<const Matrix* const> in, const Attributes&) {
  const Matrix& x = *in[0];
  const Matrix& weight = *in[1];
  Matrix out(x.rows, weight.rows);
  std::vector<double> row(weight.cols);
  for (uint32_t n = 0; n < weight.rows; ++n) {
    for (uint32_t c = 0; c < weight.cols; ++c) row[c] = weight.element(n, c);
    for (uint32_t r = 0; r < x.rows; ++r) out.row(r)[n] = dot(x.row(r), row.data(), weight.cols);
  }
  return out;
}

}  // namespace

const OpDef kLinearDef{Op::kLinear, 2, {}, infer, work, reference};

}  // namespace plow
