// kv_append: the keys and values of row t go to position positions[t] of slot row_slots[t]. In a block, for
// each KV head, K lies as [head_dim][block_tokens], then V as [block_tokens][head_dim].
#pragma once

#include "ops/rope/body.h"

namespace plow::dev {

PLOW_DEVICE void round_to(float x, float& out) { out = x; }
PLOW_DEVICE void round_to(float x, Bf16& out) {
  uint32_t bits;
  __builtin_memcpy(&bits, &x, sizeof(bits));
  if ((bits & 0x7fffffffu) > 0x7f800000u) {
    out.bits = static_cast<uint16_t>((bits >> 16) | 0x40u);  // NaN stays one
  } else {
    out.bits = static_cast<uint16_t>((bits + 0x7fffu + ((bits >> 16) & 1u)) >> 16);
  }
}

// One head of one row: `token` is the row's place in its block, `head` where the head's K begins there.
template <class T>
PLOW_DEVICE void append_head(const float* k, const float* v, uint32_t head_dim, uint32_t block_tokens,
                             uint32_t token, T* head) {
  T* values = head + size_t{head_dim} * block_tokens + size_t{token} * head_dim;
  for (uint32_t d = 0; d < head_dim; ++d) round_to(k[d], head[size_t{d} * block_tokens + token]);
  for (uint32_t d = 0; d < head_dim; ++d) round_to(v[d], values[d]);
}

// The packet's heads to the cache: key(row, column) is where the head's K is.
template <class F>
PLOW_DEVICE void append_heads(const BodyContext& ctx, const Packet& packet, uint32_t row_tile,
                              const TensorEntry& v, const TensorEntry& cache, const F& key) {
  const uint32_t head_dim = packet.immediate[0];
  const uint32_t block_tokens = ctx.device->kv_groups[cache.kv_group].block_tokens;
  for_heads(ctx, packet, row_tile, cache.cols, head_dim, [&](uint32_t row, uint32_t c) {
    const uint32_t position = ctx.step->positions[row], token = position % block_tokens;
    unsigned char* block = kv_block(ctx, cache, ctx.step->row_slots[row], position);
    const float* k = key(row, c);
    const float* value = arena_row(ctx, v, row) + c;
    // K and V of the heads before: 2 * c * block_tokens elements.
    const size_t first = size_t{2} * c * block_tokens;
    if (cache.dtype == DType::kBf16) {
      append_head(k, value, head_dim, block_tokens, token, reinterpret_cast<Bf16*>(block) + first);
    } else {
      append_head(k, value, head_dim, block_tokens, token, reinterpret_cast<float*>(block) + first);
    }
  });
}

template <class I>
PLOW_DEVICE void kv_append_body(const BodyContext& ctx, const Packet& packet, uint32_t row_tile) {
  const TensorEntry& k = operand(ctx, packet, 0);
  append_heads(ctx, packet, row_tile, operand(ctx, packet, 1), operand(ctx, packet, 3),
               [&](uint32_t row, uint32_t c) { return arena_row(ctx, k, row) + c; });
}

}  // namespace plow::dev
