#include "ops/def.h"

#include "ops/sample/sample.h"

namespace plow {
namespace {

Result<ValueType> infer(std::span<const ValueType> in, const Attributes&) {
  PLOW_TRY_STATUS(expect_activation(Op::kSample, "logits", in[0]));
  if (in[0].shape.row_kind != Rows::kSamples)
    return misfit(Op::kSample, "logits must have S rows, found " + to_text(in[0]));
  return ValueType{DType::kU32, {Rows::kSamples, 1, 1}};
}

// Four passes over a row: the largest logit, the sum of exponentials, the cuts, the draw.
Work work(std::span<const ValueType> in, const ValueType& out, const Attributes&, double tokens,
          double samples) {
  Work work = element_wise_work(in, out, 0, tokens, samples);
  work.flops = 4 * samples * in[0].shape.cols;
  return work;
}

Matrix reference(EvalContext& context, NodeId, std::span<const Matrix* const> in, const Attributes&) {
  const Matrix& logits = *in[0];
  Matrix out(logits.rows, 1);
  for (uint32_t s = 0; s < logits.rows; ++s) {
    const uint32_t row = context.step->sample_rows[s];
    const std::vector<uint32_t>& tokens = (*context.history)[context.row_slots[row]];
    const std::span<const uint32_t> history(tokens.data(), size_t{context.positions[row]} + 1);
    out.values[s] = sample_reference({logits.row(s), logits.cols}, history, context.step->sampling[s]).token;
  }
  return out;
}

}  // namespace

const OpDef kSampleDef{Op::kSample, 1, {}, infer, work, reference};

}  // namespace plow
