#include "ops/tile_access.h"

namespace plow {
namespace {

constexpr size_t kHeadDim = 0;  // attribute

// q[R,heads*head_dim], kv (kv_heads*head_dim columns) -> [R,heads*head_dim]
uint32_t column_unit(const OpInstance& i) { return attention_unit(i, i.attributes[kHeadDim]); }

void footprint(const OpInstance& i, uint32_t col_begin, uint32_t col_end, std::vector<Access>& out) {
  out.push_back(read_tile_rows(0, col_begin, col_end));
  out.push_back(read_cache(i, col_begin, col_end));
  out.push_back(write_tile_rows(i, col_begin, col_end));
}

}  // namespace

const TileRule kAttentionTileRule{Op::kAttention, 3, column_unit, footprint};

}  // namespace plow
