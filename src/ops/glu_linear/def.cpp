#include "ops/composition.h"

namespace plow {
namespace {

constexpr AttributeDef kAttributes[] = {{"activation", AttributeKind::kU32}};

std::vector<Stage> stages(std::span<const ValueType>, const Attributes& attributes) {
  return {{&kLinearDef, {0, 1}}, {&kLinearDef, {0, 2}}, {&kGluDef, {3, 4}, {attributes[0]}}};
}

}  // namespace

const OpDef kGluLinearDef = GatedComposition<Op::kGluLinear, stages, 1>::def(3, kAttributes);

}  // namespace plow
