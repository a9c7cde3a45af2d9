#include "ops/def.h"

#include <algorithm>

namespace plow {
namespace {

constexpr AttributeDef kAttributes[] = {{"head_dim", AttributeKind::kU32},
                                        {"window", AttributeKind::kU32},
                                        {"scale", AttributeKind::kF32},
                                        {"softcap", AttributeKind::kF32}};
constexpr size_t kHeadDim = 0, kWindow = 1, kScale = 2, kSoftcap = 3;

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

// One query head of one row over positions [first, last]; scores is scratch of at least that many.
struct Head {
  const double* keys;    // of its KV head at position 0
  const double* values;  // likewise
  size_t stride;         // doubles from a position to the next
  uint32_t head_dim;
  double scale;
  double softcap;
};

void attend(const Head& head, const double* query, uint32_t first, uint32_t last, std::vector<double>& scores,
            double* out) {
  double most = -INFINITY;
  for (uint32_t p = first; p <= last; ++p) {
    const double* key = head.keys + p * head.stride;
    double score = 0;
    for (uint32_t c = 0; c < head.head_dim; ++c) score += query[c] * key[c];
    score *= head.scale;
    if (head.softcap > 0) score = head.softcap * std::tanh(score / head.softcap);
    scores[p - first] = score;
    most = std::max(most, score);
  }
  double total = 0;
  for (uint32_t p = first; p <= last; ++p) {
    const double weight = std::exp(scores[p - first] - most);
    const double* value = head.values + p * head.stride;
    for (uint32_t c = 0; c < head.head_dim; ++c) out[c] += weight * value[c];
    total += weight;
  }
  for (uint32_t c = 0; c < head.head_dim; ++c) out[c] /= total;
}

Matrix reference(EvalContext& context, NodeId node, std::span<const Matrix* const> in,
                 const Attributes& attributes) {
  const OpGraph& graph = *context.graph;
  const NodeId append = graph.inputs_of(node).back();
  const NodeId state = graph.inputs_of(append).back();
  const EvalKv& kv = (*context.kv)[graph.node(state).leaf];
  const Matrix& q = *in[0];
  const uint32_t head_dim = attributes[kHeadDim];
  const uint32_t window = attributes[kWindow];
  const uint32_t kv_cols = graph.node(state).shape.cols;
  const uint32_t heads_per_kv_head = q.cols / kv_cols;
  Matrix out(q.rows, q.cols);
  std::vector<double> scores;
  const bool sampled = graph.node(node).shape.row_kind == Rows::kSamples;
  for (uint32_t r = 0; r < q.rows; ++r) {
    const uint32_t row = sampled ? context.step->sample_rows[r] : r;  // of the step
    const uint32_t last = context.positions[row];
    const uint32_t first = window > 0 && last + 1 > window ? last + 1 - window : 0;
    const std::vector<double>& keys = kv.keys[context.row_slots[row]];
    PLOW_CHECK(keys.size() >= (size_t{last} + 1) * kv_cols,
               "row {} attends to positions that were never stored", r);
    scores.resize(last - first + 1);
    for (uint32_t begin = 0; begin < q.cols; begin += head_dim) {
      const uint32_t kv_begin = begin / head_dim / heads_per_kv_head * head_dim;
      const Head head{keys.data() + kv_begin,
                      kv.values[context.row_slots[row]].data() + kv_begin,
                      kv_cols,
                      head_dim,
                      attribute_f32(attributes, kScale),
                      attribute_f32(attributes, kSoftcap)};
      attend(head, q.row(r) + begin, first, last, scores, out.row(r) + begin);
    }
  }
  return out;
}

}  // namespace

const OpDef kAttentionDef{Op::kAttention, 2, kAttributes, infer, work, reference};

}  // namespace plow
