// All device bodies, by operator number: what the interpreter's loop calls. A new operator's body is found
// here through abi/ops.def and its file's name.
#pragma once

#include "ops/add/body.h"
#include "ops/attention/body.h"
#include "ops/attention_merge/body.h"
#include "ops/attention_part/body.h"
#include "ops/bias_add/body.h"
#include "ops/embed/body.h"
#include "ops/gather_rows/body.h"
#include "ops/glu/body.h"
#include "ops/glu_linear/body.h"
#include "ops/kv_append/body.h"
#include "ops/linear/body.h"
#include "ops/linear_add/body.h"
#include "ops/linear_bias/body.h"
#include "ops/linear_part/body.h"
#include "ops/norm_add/body.h"
#include "ops/norm_glu_linear/body.h"
#include "ops/norm_linear/body.h"
#include "ops/norm_linear_bias/body.h"
#include "ops/norm_rope/body.h"
#include "ops/norm_rope_attention/body.h"
#include "ops/norm_rope_kv_append/body.h"
#include "ops/rms_norm/body.h"
#include "ops/rope/body.h"
#include "ops/rope_attention/body.h"
#include "ops/rope_kv_append/body.h"
#include "ops/rope_table/body.h"
#include "ops/sample/body.h"
#include "ops/scale/body.h"
#include "ops/soft_cap/body.h"

namespace plow::dev {

struct Bodies {
  // REQUIRES a body of that operator and variant, which loading a bundle checks; traps otherwise.
  template <class I>
  static void run(const BodyContext& ctx, const Packet& packet, uint32_t row_tile) {
    switch (static_cast<Op>(packet.body)) {
#define PLOW_OP(number, Name, text) \
  case Op::k##Name:                 \
    return text##_body<I>(ctx, packet, row_tile);
#include "abi/ops.def"
      default:
        __builtin_trap();
    }
  }
};

}  // namespace plow::dev
