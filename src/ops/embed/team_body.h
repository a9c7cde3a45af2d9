// embed, for a team: row t of the output is row token_ids[t] of the table, which lies in atoms.
#pragma once

#include "abi/layout.h"
#include "interp/team.h"

namespace plow::dev {

// AtomShape::offset() without division of 64-bit numbers, which a GPU does by a long program.
PLOW_DEVICE uint64_t atom_byte(const AtomShape& shape, uint32_t row, uint32_t byte) {
  const uint32_t atom = byte / kAtomRowBytes, r = row % kAtomRows,
                 unit = byte % kAtomRowBytes / kAtomUnitBytes, chunk = atom / shape.chunk_atoms;
  return shape.chunk_offset(chunk, row / kAtomRows) + (atom - chunk * shape.chunk_atoms) * kAtomBytes +
         r * kAtomRowBytes + (unit ^ r) * kAtomUnitBytes + byte % kAtomUnitBytes;
}

template <class B>
PLOW_DEVICE_BODY void embed_team_body(const BodyContext& ctx, const Packet& packet, uint32_t row_tile) {
  const TensorEntry &table = operand(ctx, packet, 0), &out = operand(ctx, packet, 2);
  const ActivationRows to = activation_rows(ctx, out);
  with_tape_type(ctx, table, [&]<class W>(const W* data) {
    const AtomShape shape = atom_shape(table.rows, table.cols, sizeof(W));
    const auto* bytes = reinterpret_cast<const unsigned char*>(data);
    each_four<B>(
        ctx, packet, row_tile, out.cols,
        [&](uint32_t row, uint32_t c, uint32_t n) {
          const uint64_t at =
              atom_byte(shape, ctx.step->token_ids[row], c * static_cast<uint32_t>(sizeof(W)));
          return load_four(reinterpret_cast<const W*>(bytes + at), n);
        },
        [&](uint32_t row, uint32_t c, uint32_t n, const QuadOf<W>& loaded) {
          store_four(to.row(row) + c, map_four(loaded, [](float x) { return x; }), n);
        });
  });
}

}  // namespace plow::dev
