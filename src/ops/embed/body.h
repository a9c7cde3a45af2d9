// embed: row t of the output is row token_ids[t] of the table, which lies row-major or as a weight matrix
// does (a head that is tied to it), of floats or of blocks.
#pragma once

#include "abi/layout.h"
#include "ops/row_wise_body.h"

namespace plow::dev {

// Columns [begin, end) of a row of a table of blocks; an integer times its scale is exact.
PLOW_DEVICE void embed_blocks(const TensorEntry& table, const unsigned char* data, uint32_t token,
                              Range columns, float* to) {
  for (uint32_t c = columns.begin; c < columns.end; ++c) {
    const unsigned char* block = data + row_block_offset(table.dtype, table.cols, token, c);
    const F16 scale = reinterpret_cast<const F16*>(block)[token % kBlockRows];
    const unsigned char byte = block[in_block_offset(table.dtype, token, c)];
    to[c] = static_cast<float>(block_integer(table.dtype, byte, c)) * to_float(scale);
  }
}

template <class I>
PLOW_DEVICE void embed_body(const BodyContext& ctx, const Packet& packet, uint32_t row_tile) {
  const TensorEntry& table = operand(ctx, packet, 0);
  const TensorEntry& out = operand(ctx, packet, 2);
  const Range rows = packet_rows(ctx, packet, row_tile);
  const size_t pairs = ceil_div(table.cols, 2);
  if (is_of_blocks(table.dtype)) {
    for (uint32_t row = rows.begin; row < rows.end; ++row) {
      for_columns(packet, out.cols, [&](uint32_t begin, uint32_t end) {
        embed_blocks(table, tape_data<unsigned char>(ctx, table), ctx.step->token_ids[row], {begin, end},
                     arena_row(ctx, out, row));
      });
    }
    return;
  }
  with_tape_type(ctx, table, [&](const auto* data) {
    for (uint32_t row = rows.begin; row < rows.end; ++row) {
      const uint32_t token = ctx.step->token_ids[row];
      float* to = arena_row(ctx, out, row);
      for_columns(packet, out.cols, [&](uint32_t begin, uint32_t end) {
        if (table.layout == Layout::kRowMajor) {
          const auto* from = data + size_t{token} * table.cols;
          for (uint32_t c = begin; c < end; ++c) to[c] = to_float(from[c]);
        } else {
          // [row group][pair][row in group][2]: the row's pairs are 32 elements apart.
          const auto* from = data + (token / 16 * pairs * 16 + token % 16) * 2;
          for (uint32_t c = begin; c < end; ++c) to[c] = to_float(from[size_t{c / 2} * 32 + c % 2]);
        }
      });
    }
  });
}

}  // namespace plow::dev
