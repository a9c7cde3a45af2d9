#include "ops/attention/reference.h"

namespace plow {
namespace {

constexpr AttributeDef kAttributes[] = {{"head_dim", AttributeKind::kU32},
                                        {"window", AttributeKind::kU32},
                                        {"scale", AttributeKind::kF32},
                                        {"softcap", AttributeKind::kF32}};
constexpr size_t kHeadDim = 0, kScale = 2, kSoftcap = 3;

Result<ValueType> infer(std::span<const ValueType> in, const Attributes& attributes) {
  const uint32_t head_dim = attributes[kHeadDim];
  const float softcap = attribute_f32(attributes, kSoftcap);
  PLOW_TRY_STATUS(expect_activation(Op::kAttention, "q", in[0]));
  PLOW_TRY_STATUS(expect_heads(Op::kAttention, "q", in[0], head_dim));
  PLOW_TRY_STATUS(expect_stored(Op::kAttention, "the cache", in[1], 1, in[1].shape.cols));
  PLOW_TRY_STATUS(expect_heads(Op::kAttention, "the cache", in[1], head_dim));
  if (in[0].shape.cols % in[1].shape.cols != 0) {
    return misfit(Op::kAttention,
                  fmt::format("the query heads must be a multiple of the KV heads, found q {} and cache {}",
                              to_text(in[0]), to_text(in[1])));
  }
  PLOW_TRY_STATUS(expect_finite(Op::kAttention, "scale", attribute_f32(attributes, kScale), false));
  if (!(softcap >= 0) || !std::isfinite(softcap)) {
    return misfit(Op::kAttention, fmt::format("softcap must be at least 0, found {}", softcap));
  }
  return in[0];
}

// The products with the cache depend on its length, which the cost model multiplies by kv_bytes_per_position.
Work work(std::span<const ValueType> in, const ValueType& out, const Attributes&, double tokens,
          double samples) {
  Work work;
  work.activation_bytes = value_bytes(in[0], tokens, samples) + value_bytes(out, tokens, samples);
  work.kv_bytes_per_position = 2.0 * in[1].shape.cols * dtype_bytes(in[1].dtype);
  return work;
}

Matrix reference(EvalContext& context, NodeId node, std::span<const Matrix* const> in,
                 const Attributes& attributes) {
  Matrix out(in[0]->rows, in[0]->cols);
  each_query_head(context, node, *in[0], attributes, [&](const QueryHead& head) {
    double* to = out.row(head.row) + size_t{head.head} * head.head_dim;
    const SoftmaxSums sums = add_weighted_values(head, head.positions, to);
    for (uint32_t c = 0; c < head.head_dim; ++c) to[c] /= sums.sum;
  });
  return out;
}

}  // namespace

const OpDef kAttentionDef{Op::kAttention, 2, kAttributes, infer, work, reference};

}  // namespace plow
