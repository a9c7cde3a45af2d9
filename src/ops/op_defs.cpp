#include "ops/def.h"

namespace plow {

const OpDef& op_def(Op op) {
  switch (op) {
#define PLOW_OP(number, Name, text) \
  case Op::k##Name:                 \
    return k##Name##Def;
#include "abi/ops.def"
    default:
      break;
  }
  PLOW_CHECK(false, "operator {} has no definition", static_cast<unsigned>(op));
  __builtin_unreachable();
}

}  // namespace plow
