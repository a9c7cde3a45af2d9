// kv_append, for a team, into Layout::kKvRows: in a block, for each KV head, K and then V, each as
// [block_tokens][head_dim].
#pragma once

#include "ops/kv_append/body.h"
#include "ops/rope/team_body.h"

namespace plow::dev {

// Where a layer's cache keeps the step's rows.
template <class T>
struct CacheRows {
  const BodyContext& ctx;
  const TensorEntry& cache;
  uint32_t head_dim, tokens;

  // Of the head that begins at `column`; its V lies `tokens` rows of a head further.
  PLOW_DEVICE_MEMBER T* keys(uint32_t row, uint32_t column) const {
    const uint32_t position = ctx.step->positions[row];
    T* block = reinterpret_cast<T*>(kv_block(ctx, cache, ctx.step->row_slots[row], position));
    return block + size_t{2} * column * tokens + size_t{position % tokens} * head_dim;
  }
  PLOW_DEVICE_MEMBER T* values(uint32_t row, uint32_t column) const {
    return keys(row, column) + size_t{tokens} * head_dim;
  }
};

// f(cache) with the CacheRows of the packet's output, which is operand `output`.
template <class F>
PLOW_DEVICE void with_cache_rows(const BodyContext& ctx, const Packet& packet, uint32_t output, const F& f) {
  const TensorEntry& cache = operand(ctx, packet, output);
  const uint32_t tokens = ctx.device->kv_groups[cache.kv_group].block_tokens;
  if (cache.dtype == DType::kBf16) {
    f(CacheRows<Bf16>{ctx, cache, packet.immediate[0], tokens});
  } else {
    f(CacheRows<float>{ctx, cache, packet.immediate[0], tokens});
  }
}

template <class T>
PLOW_DEVICE void store_rounded(T* to, const Quad& four, uint32_t n) {
  QuadOf<T> rounded;
  PLOW_UNROLL
  for (uint32_t i = 0; i < 4; ++i) round_to(four.value[i], rounded.value[i]);
  store_four(to, rounded, n);
}

// Keys of the packet's first operand, rotated by the table's 2 * half columns, and values, to the cache.
template <class B>
PLOW_DEVICE void append_rows(const BodyContext& ctx, const Packet& packet, uint32_t row_tile,
                             const TensorEntry& value, const ActivationRows& table, uint32_t half,
                             uint32_t output) {
  constexpr uint32_t kAtOnce = 2;
  const ActivationRows k = activation_rows(ctx, operand(ctx, packet, 0)), v = activation_rows(ctx, value);
  with_cache_rows(ctx, packet, output, [&](const auto& cache) {
    const HeadPieces keys = head_pieces(cache.head_dim, half), values = head_pieces(cache.head_dim, 0);
    struct Loaded {
      HeadPiece piece;
      Angles angles;
    };
    each_head_piece<B, kAtOnce>(
        ctx, packet, row_tile, cache.cache.cols, cache.head_dim, keys.all + values.all,
        [&](uint32_t row, uint32_t column, uint32_t p) {
          if (p >= keys.all) return Loaded{load_head_piece(v.row(row) + column, values, p - keys.all), {}};
          return Loaded{load_head_piece(k.row(row) + column, keys, p), load_angles(table.row(row), keys, p)};
        },
        [&](uint32_t row, uint32_t column, uint32_t p, const Loaded& loaded) {
          const bool is_key = p < keys.all;
          auto* to = is_key ? cache.keys(row, column) : cache.values(row, column);
          rotate_piece<B>(loaded.piece, loaded.angles, is_key ? keys : values, is_key ? p : p - keys.all,
                          [&](uint32_t c, uint32_t n, const Quad& four) { store_rounded(to + c, four, n); });
        });
  });
}

template <class B>
PLOW_DEVICE_BODY void kv_append_team_body(const BodyContext& ctx, const Packet& packet, uint32_t row_tile) {
  append_rows<B>(ctx, packet, row_tile, operand(ctx, packet, 1), {}, 0, 3);
}

}  // namespace plow::dev
