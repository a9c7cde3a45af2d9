#include "ops/attention/reference.h"

namespace plow {
namespace {

constexpr AttributeDef kAttributes[] = {{"head_dim", AttributeKind::kU32},
                                        {"window", AttributeKind::kU32},
                                        {"scale", AttributeKind::kF32},
                                        {"softcap", AttributeKind::kF32},
                                        {"parts", AttributeKind::kU32}};
constexpr size_t kHeadDim = 0, kParts = 4;

Attributes of_attention(const Attributes& attributes) {
  Attributes four = attributes;
  four[kParts] = 0;
  return four;
}

AttentionParts layout(uint32_t q_cols, uint32_t kv_cols, const Attributes& attributes) {
  return {attributes[kHeadDim], attributes[kParts], q_cols / kv_cols};
}

Result<ValueType> infer(std::span<const ValueType> in, const Attributes& attributes) {
  Result<ValueType> type = kAttentionDef.infer(in, of_attention(attributes));
  if (!type.ok()) return misfit(Op::kAttentionPart, type.error().message);
  const uint32_t kv_heads = in[1].shape.cols / attributes[kHeadDim];
  const uint64_t cols = layout(in[0].shape.cols, in[1].shape.cols, attributes).cols(kv_heads);
  if (attributes[kParts] == 0 || attributes[kParts] > kMostAttentionParts || cols > UINT32_MAX) {
    return misfit(Op::kAttentionPart,
                  fmt::format("parts must be 1 to {}, found {}", kMostAttentionParts, attributes[kParts]));
  }
  type->shape.cols = static_cast<uint32_t>(cols);
  return type;
}

// The cache is read once by all parts together.
Work work(std::span<const ValueType> in, const ValueType& out, const Attributes& attributes, double tokens,
          double samples) {
  return kAttentionDef.work(in, out, of_attention(attributes), tokens, samples);
}

Matrix reference(EvalContext& context, NodeId node, std::span<const Matrix* const> in,
                 const Attributes& attributes) {
  const uint32_t kv_cols = context.graph->node(context.graph->inputs_of(node).back()).shape.cols;
  const AttentionParts parts = layout(in[0]->cols, kv_cols, attributes);
  Matrix out(in[0]->rows, static_cast<uint32_t>(parts.cols(kv_cols / parts.head_dim)));
  each_query_head(context, node, *in[0], attributes, [&](const QueryHead& head) {
    const uint32_t kv_head = head.head / parts.queries, query = head.head % parts.queries;
    for (uint32_t part = 0; part < parts.parts; ++part) {
      double* tile = out.row(head.row) + (size_t{kv_head} * parts.parts + part) * parts.tile_cols();
      const PositionRange positions = positions_of_part(head.positions, part, parts.parts);
      const SoftmaxSums sums = add_weighted_values(head, positions, tile + parts.output(query));
      tile[parts.maximum(query)] = sums.maximum;
      tile[parts.sum(query)] = sums.sum;
    }
  });
  return out;
}

}  // namespace

const OpDef kAttentionPartDef{Op::kAttentionPart, 2, kAttributes, infer, work, reference};

}  // namespace plow
