#include "ops/composition.h"

namespace plow {
namespace {

constexpr AttributeDef kAttributes[] = {{"head_dim", AttributeKind::kU32}};

std::vector<Stage> stages(std::span<const ValueType>, const Attributes& attributes) {
  return {{&kRopeDef, {0, 2}, attributes}, {&kKvAppendDef, {4, 1, 3}, attributes}};
}

}  // namespace

const OpDef kRopeKvAppendDef = Composition<Op::kRopeKvAppend, stages>::def(4, kAttributes);

}  // namespace plow
