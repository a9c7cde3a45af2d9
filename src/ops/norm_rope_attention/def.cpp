#include "ops/composition.h"

namespace plow {
namespace {

constexpr AttributeDef kAttributes[] = {{"head_dim", AttributeKind::kU32},
                                        {"window", AttributeKind::kU32},
                                        {"scale", AttributeKind::kF32},
                                        {"softcap", AttributeKind::kF32},
                                        {"eps", AttributeKind::kF32}};
constexpr size_t kHeadDim = 0, kWindow = 1, kScale = 2, kSoftcap = 3, kEps = 4;

std::vector<Stage> stages(std::span<const ValueType>, const Attributes& attributes) {
  return {{&kRmsNormDef, {0, 1}, {attributes[kEps], attribute_bits(0.0f), attributes[kHeadDim]}},
          {&kRopeDef, {4, 2}, {attributes[kHeadDim]}},
          {&kAttentionDef,
           {5, 3},
           {attributes[kHeadDim], attributes[kWindow], attributes[kScale], attributes[kSoftcap]}}};
}

}  // namespace

const OpDef kNormRopeAttentionDef = Composition<Op::kNormRopeAttention, stages>::def(4, kAttributes);

}  // namespace plow
