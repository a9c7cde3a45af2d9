// How attention_part hands its parts to attention_merge; for shape rules, tile rules, bodies and references
// alike.
//
// The positions that a row attends to are cut into `parts` runs of whole units of 64 positions, as even as
// whole units allow: of n units part s has those from n s / parts on, below n (s + 1) / parts (rounded down),
// so a part may have none. What a part computes of a query is its output before it is divided, sum of
// e^(score - maximum) v, with the part's maximum score and sum of e^(score - maximum); a part without
// positions has an output of 0, a maximum of -infinity and a sum of 0.
//
// GPUs leave all positions of a row of many to one part, part_of_whole(), whose output is divided and whose maximum is
// kWholeInOnePart; then the others hold nothing.
//
// Columns of the value: [kv head][part][tile], and a tile is that part of all query heads of the kv head:
// their outputs one after the other, then their maxima, then their sums.
#pragma once

#include <stdint.h>

namespace plow {

// Positions of a unit: the KV blocks of GPUs, and of the pass of the CPU's body.
constexpr uint32_t kAttentionUnit = 64;
// A worker a part of a GPU of 256 for the 8 KV heads that most models have.
constexpr uint32_t kMostAttentionParts = 32;
// No score is as large.
constexpr float kWholeInOnePart = __builtin_inff();

struct AttentionParts {
  uint32_t head_dim;
  uint32_t parts;    // 1 .. kMostAttentionParts
  uint32_t queries;  // heads of a kv head

  constexpr uint64_t tile_cols() const { return uint64_t{queries} * (uint64_t{head_dim} + 2); }
  constexpr uint64_t cols(uint32_t kv_heads) const { return uint64_t{kv_heads} * parts * tile_cols(); }
  // Columns within a tile: of query head `query`'s output, maximum and sum.
  constexpr uint32_t output(uint32_t query) const { return query * head_dim; }
  constexpr uint32_t maximum(uint32_t query) const { return queries * head_dim + query; }
  constexpr uint32_t sum(uint32_t query) const { return queries * (head_dim + 1) + query; }
  // The one that may have all positions of rows of that row tile: workers take turns.
  constexpr uint32_t part_of_whole(uint32_t row_tile) const { return row_tile % parts; }
};

// Positions [begin, end).
struct PositionRange {
  uint32_t begin, end;
};

// All that a row at `position` attends to; `window` 0: from the first on, otherwise the last `window`.
constexpr PositionRange positions_in_window(uint32_t position, uint32_t window) {
  return {window != 0 && position + 1 > window ? position + 1 - window : 0, position + 1};
}

// Those of part `part`, of all that a row attends to; empty when begin >= end.
constexpr PositionRange positions_of_part(PositionRange all, uint32_t part, uint32_t parts) {
  const uint32_t first = all.begin / kAttentionUnit;
  const uint32_t units = (all.end - 1) / kAttentionUnit + 1 - first;
  const uint32_t begin = (first + units * part / parts) * kAttentionUnit;
  const uint32_t end = (first + units * (part + 1) / parts) * kAttentionUnit;
  return {begin > all.begin ? begin : all.begin, end < all.end ? end : all.end};
}

}  // namespace plow
