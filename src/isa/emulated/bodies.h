// The bodies of the teams of an emulated GPU (interp/testing/emulated_team.h), compiled once for all tests: what its kernel calls for a packet, as
// dev::TeamBodies, which says what is required. A team is compiled by a file of its own, where a new one is added.
#pragma once

#include "interp/context.h"

namespace plow::emulated {

struct Bodies {
  template <class B>
  static void run(const BodyContext& ctx, const Packet& packet, uint32_t row_tile);
};

}  // namespace plow::emulated
