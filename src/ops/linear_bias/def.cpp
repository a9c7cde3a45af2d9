#include "ops/composition.h"

namespace plow {
namespace {

std::vector<Stage> stages(std::span<const ValueType>, const Attributes&) {
  return {{&kLinearDef, {0, 1}}, {&kBiasAddDef, {3, 2}}};
}

}  // namespace

const OpDef kLinearBiasDef = Composition<Op::kLinearBias, stages>::def(3);

}  // namespace plow
