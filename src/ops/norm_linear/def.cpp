#include "ops/composition.h"

namespace plow {
namespace {

constexpr AttributeDef kAttributes[] = {{"eps", AttributeKind::kF32}, {"offset", AttributeKind::kF32}};
constexpr size_t kEps = 0, kOffset = 1;

std::vector<Stage> stages(std::span<const ValueType> in, const Attributes& attributes) {
  return {{&kRmsNormDef, {0, 1}, {attributes[kEps], attributes[kOffset], in[0].shape.cols}},
          {&kLinearDef, {3, 2}}};
}

}  // namespace

const OpDef kNormLinearDef = Composition<Op::kNormLinear, stages>::def(3, kAttributes);

}  // namespace plow
