// What the kernel calls for a packet: one function an operator that is no product, one for all that are, and one each for what
// rows of many do another way, so that few rows pay nothing for it.
// Each is compiled by itself (body.cu) and linked: in one compilation ptxas gives out registers over kernel and bodies
// together, and a body that has enough of them alone spills.
#pragma once

#include "interp/context.h"

#include <stdint.h>

namespace plow::nvidia {

#define PLOW_LINKED_BODY(text) \
  PLOW_KEEPS_FEW_REGISTERS     \
  __device__ void text##_body(const BodyContext& ctx, const Packet& packet, uint32_t row_tile);
#define PLOW_TEAM_PRODUCT(Name, text)
#define PLOW_TEAM_BODY(Name, text) PLOW_LINKED_BODY(text)
#include "ops/team_bodies.def"
PLOW_LINKED_BODY(product)
PLOW_LINKED_BODY(group_product)
PLOW_LINKED_BODY(attention_matrices)
#undef PLOW_LINKED_BODY

}  // namespace plow::nvidia
