#include "ops/composition.h"

namespace plow {
namespace {

constexpr AttributeDef kAttributes[] = {
    {"head_dim", AttributeKind::kU32}, {"eps", AttributeKind::kF32}, {"offset", AttributeKind::kF32}};
constexpr size_t kHeadDim = 0, kEps = 1, kOffset = 2;

std::vector<Stage> stages(std::span<const ValueType>, const Attributes& attributes) {
  return {{&kRmsNormDef, {0, 1}, {attributes[kEps], attributes[kOffset], attributes[kHeadDim]}},
          {&kRopeDef, {5, 3}, {attributes[kHeadDim]}},
          {&kKvAppendDef, {6, 2, 4}, {attributes[kHeadDim]}}};
}

}  // namespace

const OpDef kNormRopeKvAppendDef = Composition<Op::kNormRopeKvAppend, stages>::def(5, kAttributes);

}  // namespace plow
