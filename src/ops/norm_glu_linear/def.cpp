#include "ops/composition.h"

namespace plow {
namespace {

constexpr AttributeDef kAttributes[] = {
    {"eps", AttributeKind::kF32}, {"offset", AttributeKind::kF32}, {"activation", AttributeKind::kU32}};
constexpr size_t kEps = 0, kOffset = 1, kActivation = 2;

std::vector<Stage> stages(std::span<const ValueType> in, const Attributes& attributes) {
  return {{&kRmsNormDef, {0, 1}, {attributes[kEps], attributes[kOffset], in[0].shape.cols}},
          {&kLinearDef, {4, 2}},
          {&kLinearDef, {4, 3}},
          {&kGluDef, {5, 6}, {attributes[kActivation]}}};
}

}  // namespace

const OpDef kNormGluLinearDef = GatedComposition<Op::kNormGluLinear, stages, 2>::def(4, kAttributes);

}  // namespace plow
