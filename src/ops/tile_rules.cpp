#include "ops/tile_access.h"

namespace plow {

const TileRule* tile_rule(Op op) {
  switch (op) {
#define PLOW_OP(number, Name, text) \
  case Op::k##Name:                 \
    return &k##Name##TileRule;
#include "abi/ops.def"
    default:
      return nullptr;
  }
}

}  // namespace plow
