// What the kernel calls for a packet, one function an operator that is no product and one for all that are.
// Each is compiled by itself (body.cu) and linked: in one compilation ptxas gives out registers over kernel and bodies
// together, and a body that has enough of them alone spills.
#pragma once

#include "interp/context.h"

#include <stdint.h>

namespace plow::nvidia {

#define PLOW_TEAM_PRODUCT(Name, text)
#define PLOW_TEAM_BODY(Name, text) \
  PLOW_KEEPS_FEW_REGISTERS         \
  __device__ void text##_body(const BodyContext& ctx, const Packet& packet, uint32_t row_tile);
#include "ops/team_bodies.def"
PLOW_KEEPS_FEW_REGISTERS
__device__ void product_body(const BodyContext& ctx, const Packet& packet, uint32_t row_tile);

// As dev::TeamBodies, which says what is required.
struct LinkedBodies {
  template <class B>
  static __device__ void run(const BodyContext& ctx, const Packet& packet, uint32_t row_tile) {
    switch (static_cast<Op>(packet.body)) {
#define PLOW_TEAM_PRODUCT(Name, text)
#define PLOW_TEAM_BODY(Name, text) \
  case Op::k##Name:                \
    return text##_body(ctx, packet, row_tile);
#include "ops/team_bodies.def"
      default:
        product_body(ctx, packet, row_tile);
    }
  }
};

}  // namespace plow::nvidia
