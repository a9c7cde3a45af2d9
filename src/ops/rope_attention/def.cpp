#include "ops/composition.h"

namespace plow {
namespace {

constexpr AttributeDef kAttributes[] = {{"head_dim", AttributeKind::kU32},
                                        {"window", AttributeKind::kU32},
                                        {"scale", AttributeKind::kF32},
                                        {"softcap", AttributeKind::kF32}};
constexpr size_t kHeadDim = 0;

std::vector<Stage> stages(std::span<const ValueType>, const Attributes& attributes) {
  return {{&kRopeDef, {0, 1}, {attributes[kHeadDim]}}, {&kAttentionDef, {3, 2}, attributes}};
}

}  // namespace

const OpDef kRopeAttentionDef = Composition<Op::kRopeAttention, stages>::def(3, kAttributes);

}  // namespace plow
