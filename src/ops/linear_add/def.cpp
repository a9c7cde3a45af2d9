#include "ops/composition.h"

namespace plow {
namespace {

constexpr AttributeDef kAttributes[] = {{"k_begin", AttributeKind::kU32}, {"k_end", AttributeKind::kU32}};

std::vector<Stage> stages(std::span<const ValueType>, const Attributes& attributes) {
  return {{&kLinearPartDef, {0, 1}, attributes}, {&kAddDef, {2, 3}}};
}

}  // namespace

const OpDef kLinearAddDef = Composition<Op::kLinearAdd, stages>::def(3, kAttributes);

}  // namespace plow
