#include "ops/def.h"

#include <algorithm>

namespace plow {
namespace {

constexpr AttributeDef kAttributes[] = {{"head_dim", AttributeKind::kU32}};

Result<ValueType> infer(std::span<const ValueType> in, const Attributes& attributes) {
  PLOW_TRY_STATUS(expect_activation(Op::kKvAppend, "k", in[0]));
  PLOW_TRY_STATUS(expect_heads(Op::kKvAppend, "k", in[0], attributes[0]));
  if (in[0].shape.row_kind != Rows::kTokens)
    return misfit(Op::kKvAppend, "k must have T rows, found " + to_text(in[0]));
  PLOW_TRY_STATUS(expect_same(Op::kKvAppend, "v", in[1], in[0]));
  PLOW_TRY_STATUS(expect_stored(Op::kKvAppend, "the state", in[2], 1, in[0].shape.cols));
  return in[2];
}

Work work(std::span<const ValueType> in, const ValueType& out, const Attributes&, double tokens,
          double samples) {
  Work work;
  const double written = 2.0 * tokens * out.shape.cols * dtype_bytes(out.dtype);
  work.activation_bytes = value_bytes(in[0], tokens, samples) + value_bytes(in[1], tokens, samples) + written;
  return work;
}

void store(std::vector<double>& cache, uint32_t position, const double* row, uint32_t cols) {
  const size_t begin = size_t{position} * cols;
  if (cache.size() < begin + cols) cache.resize(begin + cols);
  std::copy_n(row, cols, cache.begin() + static_cast<std::ptrdiff_t>(begin));
}

// The value of the node stays empty: attention looks into the context.
Matrix reference(EvalContext& context, NodeId node, std::span<const Matrix* const> in, const Attributes&) {
  const NodeId state = context.graph->inputs_of(node).back();
  EvalKv& kv = (*context.kv)[context.graph->node(state).leaf];
  for (uint32_t r = 0; r < in[0]->rows; ++r) {
    store(kv.keys[context.row_slots[r]], context.positions[r], in[0]->row(r), in[0]->cols);
    store(kv.values[context.row_slots[r]], context.positions[r], in[1]->row(r), in[1]->cols);
  }
  return {};
}

}  // namespace

const OpDef kKvAppendDef{Op::kKvAppend, 3, kAttributes, infer, work, reference};

}  // namespace plow
