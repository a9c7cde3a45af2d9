// kv_append, for a team, into Layout::kKvRows: in a block, for each KV head, K and then V, each as
// [block_tokens][head_dim].
#pragma once

#include "interp/team.h"
#include "ops/kv_append/body.h"

namespace plow::dev {

template <class B, class T>
PLOW_DEVICE void append_rows(const BodyContext& ctx, const Packet& packet, uint32_t row_tile) {
  const TensorEntry &k = operand(ctx, packet, 0), &v = operand(ctx, packet, 1),
                    &cache = operand(ctx, packet, 3);
  const uint32_t head_dim = packet.immediate[0];
  const uint32_t tokens = ctx.device->kv_groups[cache.kv_group].block_tokens;
  each_element<B>(ctx, packet, row_tile, cache.cols, [&](uint32_t row, uint32_t c) {
    const uint32_t position = ctx.step->positions[row];
    T* block = reinterpret_cast<T*>(kv_block(ctx, cache, ctx.step->row_slots[row], position));
    T* head = block + size_t{2} * (c / head_dim) * head_dim * tokens + size_t{position % tokens} * head_dim;
    round_to(arena_row(ctx, k, row)[c], head[c % head_dim]);
    round_to(arena_row(ctx, v, row)[c], head[size_t{tokens} * head_dim + c % head_dim]);
  });
}

template <class B>
PLOW_DEVICE_BODY void kv_append_team_body(const BodyContext& ctx, const Packet& packet, uint32_t row_tile) {
  if (operand(ctx, packet, 3).dtype == DType::kBf16) {
    append_rows<B, Bf16>(ctx, packet, row_tile);
  } else {
    append_rows<B, float>(ctx, packet, row_tile);
  }
}

}  // namespace plow::dev
