#include "ops/tile_access.h"

namespace plow {
namespace {

constexpr size_t kHeadDim = 0;  // attribute

// q[R,heads*head_dim], table[R,2h], kv (kv_heads*head_dim columns) -> [R,heads*head_dim]
uint32_t column_unit(const OpInstance& i) {
  const uint32_t head_dim = i.attributes[kHeadDim];
  return is_rope_of(i, 0, 1, head_dim) ? attention_unit(i, head_dim) : 0;
}

void footprint(const OpInstance& i, uint32_t col_begin, uint32_t col_end, std::vector<Access>& out) {
  out.push_back(read_tile_rows(0, col_begin, col_end));
  out.push_back(read_whole_rows(i, 1));
  out.push_back(read_cache(i, col_begin, col_end));
  out.push_back(write_tile_rows(i, col_begin, col_end));
}

}  // namespace

const TileRule kRopeAttentionTileRule{Op::kRopeAttention, 4, column_unit, footprint};

}  // namespace plow
