// The operators that are products, and what each multiplies.
#pragma once

#include "ops/glu_linear/body.h"
#include "ops/linear/body.h"
#include "ops/linear_add/body.h"
#include "ops/linear_bias/body.h"
#include "ops/linear_part/body.h"
#include "ops/norm_glu_linear/body.h"
#include "ops/norm_linear/body.h"
#include "ops/norm_linear_bias/body.h"

namespace plow::dev {

// False when the packet's operator is no product.
PLOW_DEVICE bool product_of(const Packet& packet, const TensorEntry* tensors, Product& product) {
  switch (static_cast<Op>(packet.body)) {
#define PLOW_TEAM_BODY(Name, text)
#define PLOW_TEAM_PRODUCT(Name, text)              \
  case Op::k##Name:                                \
    product = text##_product(packet, tensors);     \
    return true;
#include "ops/team_bodies.def"
    default:
      return false;
  }
}

}  // namespace plow::dev
