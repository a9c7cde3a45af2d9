#include "ops/composition.h"

namespace plow {
namespace {

constexpr AttributeDef kAttributes[] = {
    {"head_dim", AttributeKind::kU32}, {"eps", AttributeKind::kF32}, {"offset", AttributeKind::kF32}};
constexpr size_t kHeadDim = 0, kEps = 1, kOffset = 2;

std::vector<Stage> stages(std::span<const ValueType>, const Attributes& attributes) {
  return {{&kRmsNormDef, {0, 1}, {attributes[kEps], attributes[kOffset], attributes[kHeadDim]}},
          {&kRopeDef, {3, 2}, {attributes[kHeadDim]}}};
}

}  // namespace

const OpDef kNormRopeDef = Composition<Op::kNormRope, stages>::def(3, kAttributes);

}  // namespace plow
