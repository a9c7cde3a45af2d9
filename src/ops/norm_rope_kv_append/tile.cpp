#include "ops/tile_access.h"

namespace plow {
namespace {

constexpr size_t kHeadDim = 0;  // attribute

// k[T,n], g[1,head_dim], v[T,n], table[T,2h], kv_state -> kv_state, as kv_append: what was in the state is
// not read.
uint32_t column_unit(const OpInstance& i) {
  const uint32_t head_dim = i.attributes[kHeadDim];
  const uint32_t cols = i.output().cols;
  const bool fits = i.operands[0].cols == cols && i.operands[2].cols == cols && i.operands[4].cols == cols &&
                    is_vector(i, 1, head_dim) && is_rope_of(i, 0, 3, head_dim);
  return fits ? head_dim : 0;
}

void footprint(const OpInstance& i, uint32_t col_begin, uint32_t col_end, std::vector<Access>& out) {
  out.push_back(read_tile_rows(0, col_begin, col_end));
  out.push_back(read_vector(i, 1));
  out.push_back(read_tile_rows(2, col_begin, col_end));
  out.push_back(read_whole_rows(i, 3));
  out.push_back(write_tile_rows(i, col_begin, col_end));
}

}  // namespace

const TileRule kNormRopeKvAppendTileRule{Op::kNormRopeKvAppend, 6, column_unit, footprint};

}  // namespace plow
