// attention_part, for a team: attention's own body, over parts.
#pragma once

#include "ops/attention/team_body.h"

namespace plow::dev {

template <class B>
PLOW_DEVICE void attention_part_team_body(const BodyContext& ctx, const Packet& packet, uint32_t row_tile) {
  attention_team_body<B>(ctx, packet, row_tile);
}

}  // namespace plow::dev
