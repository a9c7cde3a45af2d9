#include "ops/linear/reference.h"

namespace plow {
namespace {

constexpr AttributeDef kAttributes[] = {{"k_begin", AttributeKind::kU32}, {"k_end", AttributeKind::kU32}};
constexpr size_t kBegin = 0, kEnd = 1;

Result<ValueType> infer(std::span<const ValueType> in, const Attributes& attributes) {
  const Result<ValueType> type = kLinearDef.infer(in, {});
  if (!type.ok()) return misfit(Op::kLinearPart, type.error().message);
  const uint32_t begin = attributes[kBegin], end = attributes[kEnd], k = in[0].shape.cols;
  if (begin >= end || end > k || begin % 2 != 0 || (end % 2 != 0 && end != k)) {
    return misfit(
        Op::kLinearPart,
        fmt::format("k_begin={} to k_end={} must be a range of pairs of the columns of x, which is {}", begin,
                    end, to_text(in[0])));
  }
  return type;
}

Work work(std::span<const ValueType> in, const ValueType& out, const Attributes& attributes, double tokens,
          double samples) {
  const double share = static_cast<double>(attributes[kEnd] - attributes[kBegin]) / in[0].shape.cols;
  Work work = kLinearDef.work(in, out, {}, tokens, samples);
  work.flops *= share;
  work.weight_bytes *= share;
  work.activation_bytes -= (1 - share) * value_bytes(in[0], tokens, samples);
  return work;
}

Matrix reference(EvalContext&, NodeId, std::span<const Matrix* const> in, const Attributes& attributes) {
  return product(*in[0], *in[1], attributes[kBegin], attributes[kEnd]);
}

}  // namespace

const OpDef kLinearPartDef{Op::kLinearPart, 2, kAttributes, infer, work, reference};

}  // namespace plow
