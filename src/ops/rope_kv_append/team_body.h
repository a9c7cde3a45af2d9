// rope_kv_append, for a team: keys are rotated on their way to the cache.
#pragma once

#include "ops/kv_append/team_body.h"

namespace plow::dev {

template <class B>
PLOW_DEVICE_BODY void rope_kv_append_team_body(const BodyContext& ctx, const Packet& packet,
                                               uint32_t row_tile) {
  const TensorEntry& table = operand(ctx, packet, 2);
  append_rows<B>(ctx, packet, row_tile, operand(ctx, packet, 1), activation_rows(ctx, table), table.cols / 2,
                 4);
}

}  // namespace plow::dev
