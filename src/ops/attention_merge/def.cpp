#include "ops/def.h"

#include "abi/attention_parts.h"

#include <algorithm>

namespace plow {
namespace {

constexpr AttributeDef kAttributes[] = {
    {"head_dim", AttributeKind::kU32}, {"parts", AttributeKind::kU32}, {"queries", AttributeKind::kU32}};

AttentionParts layout(const Attributes& attributes) { return {attributes[0], attributes[1], attributes[2]}; }

Result<ValueType> infer(std::span<const ValueType> in, const Attributes& attributes) {
  PLOW_TRY_STATUS(expect_activation(Op::kAttentionMerge, "the parts", in[0]));
  const AttentionParts parts = layout(attributes);
  const bool fits = parts.head_dim > 0 && parts.queries > 0 && parts.parts > 0 &&
                    parts.parts <= kMostAttentionParts && parts.tile_cols() <= in[0].shape.cols &&
                    in[0].shape.cols % parts.cols(1) == 0;
  if (!fits) {
    return misfit(
        Op::kAttentionMerge,
        fmt::format("head_dim={}, parts={} (1 to {}) and queries={} do not divide the columns of {}",
                    parts.head_dim, parts.parts, kMostAttentionParts, parts.queries, to_text(in[0])));
  }
  ValueType out = in[0];
  out.shape.cols = static_cast<uint32_t>(in[0].shape.cols / parts.cols(1) * parts.queries * parts.head_dim);
  return out;
}

// An exponential, some 20 operations, for each part of a query; two operations a column.
Work work(std::span<const ValueType> in, const ValueType& out, const Attributes& attributes, double tokens,
          double samples) {
  constexpr double kExponential = 20;
  const AttentionParts parts = layout(attributes);
  return element_wise_work(in, out, parts.parts * (2 + kExponential / parts.head_dim), tokens, samples);
}

// One query head; its tile of part 0 and the columns from one part's tile to the next. A part without
// positions adds nothing.
void merge(const AttentionParts& parts, const double* tile, uint32_t query, double* out) {
  double maximum = -INFINITY, sum = 0;
  for (uint32_t p = 0; p < parts.parts; ++p)
    maximum = std::max(maximum, tile[p * parts.tile_cols() + parts.maximum(query)]);
  for (uint32_t p = 0; p < parts.parts; ++p, tile += parts.tile_cols()) {
    const double factor = std::exp(tile[parts.maximum(query)] - maximum);
    sum += factor * tile[parts.sum(query)];
    for (uint32_t c = 0; c < parts.head_dim; ++c) out[c] += factor * tile[parts.output(query) + c];
  }
  for (uint32_t c = 0; c < parts.head_dim; ++c) out[c] /= sum;
}

Matrix reference(EvalContext&, NodeId, std::span<const Matrix* const> in, const Attributes& attributes) {
  const AttentionParts parts = layout(attributes);
  const auto kv_heads = static_cast<uint32_t>(in[0]->cols / parts.cols(1));
  Matrix out(in[0]->rows, kv_heads * parts.queries * parts.head_dim);
  for (uint32_t r = 0; r < out.rows; ++r) {
    for (uint32_t head = 0; head < kv_heads * parts.queries; ++head) {
      const double* tile = in[0]->row(r) + head / parts.queries * parts.cols(1);
      merge(parts, tile, head % parts.queries, out.row(r) + size_t{head} * parts.head_dim);
    }
  }
  return out;
}

}  // namespace

const OpDef kAttentionMergeDef{Op::kAttentionMerge, 1, kAttributes, infer, work, reference};

}  // namespace plow
