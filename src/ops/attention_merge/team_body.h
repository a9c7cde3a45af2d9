// attention_merge, for a team: a wave makes as many columns of a query head as it has lanes. The lanes first share out the
// parts, each making one's factor; then each has a column, sixteen of whose parts are under way at once.
#pragma once

#include "abi/attention_parts.h"
#include "interp/team.h"
#include "interp/vector_math.h"

namespace plow::dev {

constexpr uint32_t kPartsAtOnce = 16;  // as many as 132 workers have for each of 8 KV heads

// By what each part counts, in the team's memory, by wave.
struct MergeMemory {
  float factor[kMostAttentionParts];
};

// Lane l < n's column `c` + l of a query; `tile` is part 0's. Every lane of the wave must call.
template <class B>
PLOW_DEVICE float merged_column(const AttentionParts& layout, const float* tile, uint32_t query, uint32_t c, uint32_t n,
                                MergeMemory& memory) {
  static_assert(B::kLanes >= kMostAttentionParts);
  const uint32_t next = static_cast<uint32_t>(layout.tile_cols()), l = lane<B>(), last = layout.parts - 1;
  const float* of_lane = tile + min_u32(l, last) * next;
  const float maximum = l <= last ? of_lane[layout.maximum(query)] : -__builtin_inff(), sum = of_lane[layout.sum(query)];
  const float* column = tile + layout.output(query) + c + min_u32(l, n - 1);
  float value[kPartsAtOnce];
  const auto load = [&](uint32_t first) {  // beyond the last part it is the last once more
    PLOW_UNROLL
    for (uint32_t i = 0; i < kPartsAtOnce; ++i) value[i] = column[min_u32(first + i, last) * next];
  };
  load(0);
  const float largest = reduce_lanes<B>(maximum, B::kLanes, Largest{});
  // A part without positions has a maximum of -infinity, so a factor of 0.
  const float factor = exp<B>(B::sub(maximum, largest));
  if (l < kMostAttentionParts) memory.factor[l] = factor;
  const float whole_sum = reduce_lanes<B>(l <= last ? B::mul(sum, factor) : 0.0f, B::kLanes, Sum{});
  B::settle_wave();
  float whole = 0;
  PLOW_UNROLL_BY(1)
  for (uint32_t first = 0;;) {
    PLOW_UNROLL
    for (uint32_t i = 0; i < kPartsAtOnce; ++i) whole = B::fma(value[i], memory.factor[first + i], whole);
    first += kPartsAtOnce;
    if (first > last) break;
    load(first);
  }
  B::settle_wave();
  return B::div(whole, whole_sum);
}

// Where a column of the output comes from.
struct MergedColumn {
  const float* kv_head;  // tile of part 0
  uint32_t query, c;
};
PLOW_DEVICE MergedColumn column_of(const BodyContext& ctx, const Packet& packet, const AttentionParts& layout, uint32_t row, uint32_t column) {
  const uint32_t head = column / layout.head_dim;
  return {arena_row(ctx, operand(ctx, packet, 0), row) + head / layout.queries * layout.cols(1), head % layout.queries,
          column % layout.head_dim};
}

// Columns whose query part `whole_at` has whole are copied, and the others left. False: the calling thread met others.
template <class B>
PLOW_DEVICE bool copy_whole_columns(const BodyContext& ctx, const Packet& packet, const AttentionParts& layout, Range rows, uint64_t whole_at) {
  constexpr uint32_t kAtOnce = 8;  // 16 loads under way
  struct Whole {
    float maximum, value;
  };
  bool all = true;
  const TensorEntry& out = operand(ctx, packet, 1);
  for_columns(packet, out.cols, [&](uint32_t begin, uint32_t end) {
    each_piece<B, kAtOnce>(
        rows.end - rows.begin, end - begin,
        [&](uint32_t run, uint32_t piece) {
          const MergedColumn from = column_of(ctx, packet, layout, rows.begin + run, begin + piece);
          const float* whole = from.kv_head + whole_at;
          return Whole{whole[layout.maximum(from.query)], whole[layout.output(from.query) + from.c]};
        },
        [&](uint32_t run, uint32_t piece, const Whole& whole) {
          if (whole.maximum == kWholeInOnePart) {
            arena_row(ctx, out, rows.begin + run)[begin + piece] = whole.value;
          } else {
            all = false;
          }
        });
  });
  return all;
}

template <class B>
PLOW_DEVICE_BODY void attention_merge_team_body(const BodyContext& ctx, const Packet& packet,
                                                uint32_t row_tile) {
  const AttentionParts layout{packet.immediate[0], packet.immediate[1], packet.immediate[2]};
  const TensorEntry& out = operand(ctx, packet, 1);
  const Range rows = packet_rows(ctx, packet, row_tile);
  const bool many = has_many_rows(*ctx.program, packet);
  const uint64_t whole_at = layout.part_of_whole(row_tile) * layout.tile_cols();
  if (many && B::all(copy_whole_columns<B>(ctx, packet, layout, rows, whole_at))) return;
  MergeMemory& memory = reinterpret_cast<MergeMemory*>(ctx.shared)[wave<B>()];
  const uint32_t of_head = ceil_div(layout.head_dim, B::kLanes);
  for_columns(packet, out.cols, [&](uint32_t begin, uint32_t end) {
    const uint32_t of_row = (end - begin) / layout.head_dim * of_head;
    PLOW_UNROLL_BY(1)
    for (uint32_t i = wave<B>(); i < (rows.end - rows.begin) * of_row; i += n_waves<B>()) {
      const uint32_t row = rows.begin + i / of_row, in_row = i % of_row, c = in_row % of_head * B::kLanes;
      const uint32_t column = begin + in_row / of_head * layout.head_dim;
      const MergedColumn from = column_of(ctx, packet, layout, row, column);
      if (many && from.kv_head[whole_at + layout.maximum(from.query)] == kWholeInOnePart) continue;
      const uint32_t n = min_u32(layout.head_dim - c, B::kLanes);
      const float merged = merged_column<B>(layout, from.kv_head, from.query, c, n, memory);
      if (lane<B>() < n) arena_row(ctx, out, row)[column + c + lane<B>()] = merged;
    }
  });
}

}  // namespace plow::dev
