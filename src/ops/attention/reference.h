// The float64 softmax over positions that the definitions of attention and of its parts share.
#pragma once

#include "abi/attention_parts.h"
#include "ops/def.h"

#include <functional>

namespace plow {

// One query head of one row: its query, and the keys and values of its KV head.
struct QueryHead {
  uint32_t row;  // of the operator's rows
  uint32_t head;
  PositionRange positions;  // that the row attends to
  const double* query;
  const double* keys;  // at position 0
  const double* values;
  size_t stride;  // doubles from a position to the next
  uint32_t head_dim;
  double scale, softcap;
};

struct SoftmaxSums {
  double maximum;  // of the scores; -infinity without positions
  double sum;      // of e^(score - maximum)
};

// Adds the values of `positions` to `out`, each times e^(score - maximum).
SoftmaxSums add_weighted_values(const QueryHead& head, PositionRange positions, double* out);

// Calls f for every query head of every row of q, the first input. `attributes` begin with those of
// attention.
void each_query_head(const EvalContext& context, NodeId node, const Matrix& q, const Attributes& attributes,
                     const std::function<void(const QueryHead&)>& f);

}  // namespace plow
