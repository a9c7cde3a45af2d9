#include "ops/composition.h"

namespace plow {
namespace {

constexpr AttributeDef kAttributes[] = {{"activation", AttributeKind::kU32}};

std::vector<Stage> stages(std::span<const ValueType>, const Attributes& attributes) {
  return {{&kLinearDef, {0, 1}}, {&kLinearDef, {0, 2}}, {&kGluDef, {3, 4}, {attributes[0]}}};
}

using Whole = Composition<Op::kGluLinear, stages>;

Result<ValueType> infer(std::span<const ValueType> in, const Attributes& attributes) {
  PLOW_TRY_STATUS(expect_one_dtype(Op::kGluLinear, in[1], in[2]));
  return Whole::infer(in, attributes);
}

constexpr OpDef definition() {
  OpDef def = Whole::def(3, kAttributes);
  def.infer = infer;
  return def;
}

}  // namespace

const OpDef kGluLinearDef = definition();

}  // namespace plow
