#include "ops/tile_access.h"

namespace plow {
namespace {

constexpr size_t kHeadDim = 0;  // attribute

// q[T,heads*head_dim], kv (kv_heads*head_dim columns) -> [T,heads*head_dim]. A tile has all query heads of a
// kv head, so that keys and values are read once.
uint32_t column_unit(const OpInstance& i) {
  const uint32_t head_dim = i.attributes[kHeadDim];
  const uint32_t q_cols = i.output().cols;
  const uint32_t kv_cols = i.operands[1].cols;
  const bool fits = i.operands[0].cols == q_cols && head_dim > 0 && kv_cols > 0 && kv_cols % head_dim == 0 &&
                    q_cols > 0 && q_cols % kv_cols == 0;
  return fits ? head_dim * (q_cols / kv_cols) : 0;
}

void footprint(const OpInstance& i, uint32_t col_begin, uint32_t col_end, std::vector<Access>& out) {
  const uint32_t heads_per_kv_head = i.output().cols / i.operands[1].cols;
  out.push_back(read_tile_rows(0, col_begin, col_end));
  out.push_back(read_all_rows(1, col_begin / heads_per_kv_head, col_end / heads_per_kv_head));
  out.push_back(write_tile_rows(i, col_begin, col_end));
}

}  // namespace

const TileRule kAttentionTileRule{Op::kAttention, 3, column_unit, footprint};

}  // namespace plow
