#include "abi/attention_parts.h"
#include "ops/tile_access.h"

namespace plow {
namespace {

constexpr size_t kHeadDim = 0, kParts = 4;  // attributes

// q[R,heads*head_dim], kv (kv_heads*head_dim columns) -> [R, columns of AttentionParts]; a tile is a part of
// a kv head.
AttentionParts layout(const OpInstance& i) {
  return {i.attributes[kHeadDim], i.attributes[kParts], i.operands[0].cols / i.operands[1].cols};
}

uint32_t column_unit(const OpInstance& i) {
  const uint32_t head_dim = i.attributes[kHeadDim], parts = i.attributes[kParts];
  const uint32_t q_cols = i.operands[0].cols, kv_cols = i.operands[1].cols;
  const bool heads =
      head_dim > 0 && kv_cols > 0 && kv_cols % head_dim == 0 && q_cols > 0 && q_cols % kv_cols == 0;
  if (!heads || parts == 0 || parts > kMostAttentionParts) return 0;
  const AttentionParts p = layout(i);
  return p.cols(kv_cols / head_dim) == i.output().cols ? static_cast<uint32_t>(p.tile_cols()) : 0;
}

void footprint(const OpInstance& i, uint32_t col_begin, uint32_t col_end, std::vector<Access>& out) {
  const AttentionParts p = layout(i);
  const auto kv_head_cols = static_cast<uint32_t>(p.parts * p.tile_cols());
  const uint32_t first = col_begin / kv_head_cols, end = (col_end - 1) / kv_head_cols + 1;
  out.push_back(read_tile_rows(0, first * p.queries * p.head_dim, end * p.queries * p.head_dim));
  out.push_back(read_all_rows(1, first * p.head_dim, end * p.head_dim));
  out.push_back(write_tile_rows(i, col_begin, col_end));
}

}  // namespace

const TileRule kAttentionPartTileRule{Op::kAttentionPart, 3, column_unit, footprint};

}  // namespace plow
