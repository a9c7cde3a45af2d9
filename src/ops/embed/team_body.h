// embed, for a team: row t of the output is row token_ids[t] of the table, which lies row-major or in atoms.
#pragma once

#include "abi/layout.h"
#include "interp/team.h"

namespace plow::dev {

template <class B>
PLOW_DEVICE_BODY void embed_team_body(const BodyContext& ctx, const Packet& packet, uint32_t row_tile) {
  const TensorEntry &table = operand(ctx, packet, 0), &out = operand(ctx, packet, 2);
  with_tape_type(ctx, table, [&]<class W>(const W* data) {
    const AtomShape shape = atom_shape(table.rows, table.cols, sizeof(W));
    const bool row_major = table.layout == Layout::kRowMajor;
    each_element<B>(ctx, packet, row_tile, out.cols, [&](uint32_t row, uint32_t c) {
      const uint32_t token = ctx.step->token_ids[row];
      const uint64_t at = row_major ? (uint64_t{token} * table.cols + c) * sizeof(W)
                                    : shape.offset(token, uint64_t{c} * sizeof(W));
      arena_row(ctx, out, row)[c] =
          to_float(*reinterpret_cast<const W*>(reinterpret_cast<const unsigned char*>(data) + at));
    });
  });
}

}  // namespace plow::dev
