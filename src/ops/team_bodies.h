// The device bodies of workers that are teams of threads, by operator number: what the interpreter's loop
// calls on GPUs. PLOW_TEAM_BODY lists the operators that have one; loading refuses a bundle with others, by
// name.
#pragma once

#include "ops/add/team_body.h"
#include "ops/attention/team_body.h"
#include "ops/attention_merge/team_body.h"
#include "ops/attention_part/team_body.h"
#include "ops/bias_add/team_body.h"
#include "ops/embed/team_body.h"
#include "ops/gather_rows/team_body.h"
#include "ops/glu/team_body.h"
#include "ops/kv_append/team_body.h"
#include "ops/norm_add/team_body.h"
#include "ops/norm_rope/team_body.h"
#include "ops/norm_rope_kv_append/team_body.h"
#include "ops/product_team_body.h"
#include "ops/rms_norm/team_body.h"
#include "ops/rope/team_body.h"
#include "ops/rope_kv_append/team_body.h"
#include "ops/rope_table/team_body.h"
#include "ops/sample/team_body.h"
#include "ops/scale/team_body.h"
#include "ops/soft_cap/team_body.h"

namespace plow::dev {

struct TeamBodies {
  // REQUIRES a body of that operator, which loading a bundle checks; traps otherwise.
  template <class B>
  PLOW_DEVICE_MEMBER static void run(const BodyContext& ctx, const Packet& packet, uint32_t row_tile) {
    static_assert(IsTeam<B>);
    switch (static_cast<Op>(packet.body)) {
#define PLOW_TEAM_PRODUCT(Name, text)
#define PLOW_TEAM_ATTENTION(Name, text)                                                                  \
  case Op::k##Name:                                                                                      \
    if (attends_by_matrices<B>(ctx, packet)) attention_matrices_team_body<B>(ctx, packet, row_tile);     \
    return text##_team_body<B>(ctx, packet, row_tile);
#define PLOW_TEAM_BODY(Name, text) \
  case Op::k##Name:                \
    return text##_team_body<B>(ctx, packet, row_tile);
#include "ops/team_bodies.def"
      default:
        if (is_for_group<B>(ctx, packet)) return group_product_team_body<B>(ctx, packet, row_tile);
        product_team_body<B>(ctx, packet, row_tile);
    }
  }
};

}  // namespace plow::dev
