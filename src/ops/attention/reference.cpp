#include "ops/attention/reference.h"

#include <algorithm>

namespace plow {
namespace {

constexpr size_t kHeadDim = 0, kWindow = 1, kScale = 2, kSoftcap = 3;  // attributes

double score_of(const QueryHead& head, uint32_t position) {
  const double* key = head.keys + position * head.stride;
  double score = 0;
  for (uint32_t c = 0; c < head.head_dim; ++c) score += head.query[c] * key[c];
  score *= head.scale;
  return head.softcap > 0 ? head.softcap * std::tanh(score / head.softcap) : score;
}

}  // namespace

SoftmaxSums add_weighted_values(const QueryHead& head, PositionRange positions, double* out) {
  SoftmaxSums sums{-INFINITY, 0};
  std::vector<double> scores;
  for (uint32_t p = positions.begin; p < positions.end; ++p) {
    scores.push_back(score_of(head, p));
    sums.maximum = std::max(sums.maximum, scores.back());
  }
  for (uint32_t p = positions.begin; p < positions.end; ++p) {
    const double weight = std::exp(scores[p - positions.begin] - sums.maximum);
    const double* value = head.values + p * head.stride;
    for (uint32_t c = 0; c < head.head_dim; ++c) out[c] += weight * value[c];
    sums.sum += weight;
  }
  return sums;
}

void each_query_head(const EvalContext& context, NodeId node, const Matrix& q, const Attributes& attributes,
                     const std::function<void(const QueryHead&)>& f) {
  const OpGraph& graph = *context.graph;
  const NodeId append = graph.inputs_of(node).back();
  const NodeId state = graph.inputs_of(append).back();
  const EvalKv& kv = (*context.kv)[graph.node(state).leaf];
  const uint32_t head_dim = attributes[kHeadDim];
  const uint32_t window = attributes[kWindow];
  const uint32_t kv_cols = graph.node(state).shape.cols;
  const uint32_t heads_per_kv_head = q.cols / kv_cols;
  const bool sampled = graph.node(node).shape.row_kind == Rows::kSamples;
  for (uint32_t r = 0; r < q.rows; ++r) {
    const uint32_t row = sampled ? context.step->sample_rows[r] : r;  // of the step
    const uint32_t last = context.positions[row];
    const uint32_t first = window > 0 && last + 1 > window ? last + 1 - window : 0;
    const std::vector<double>& keys = kv.keys[context.row_slots[row]];
    PLOW_CHECK(keys.size() >= (size_t{last} + 1) * kv_cols,
               "row {} attends to positions that were never stored", r);
    for (uint32_t head = 0; head < q.cols / head_dim; ++head) {
      const uint32_t kv_begin = head / heads_per_kv_head * head_dim;
      f({r,
         head,
         {first, last + 1},
         q.row(r) + size_t{head} * head_dim,
         keys.data() + kv_begin,
         kv.values[context.row_slots[row]].data() + kv_begin,
         kv_cols,
         head_dim,
         attribute_f32(attributes, kScale),
         attribute_f32(attributes, kSoftcap)});
    }
  }
}

}  // namespace plow
