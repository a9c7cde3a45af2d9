#include "ops/tile_access.h"

namespace plow {
namespace {

constexpr size_t kHeadDim = 0;  // attribute

// k[T,n], v[T,n], kv_state -> kv_state, n = kv_heads * head_dim. The state before the step is not read: what
// is written are the positions of this step's rows only. Attention reads both what was there and what is
// written, through the output.
uint32_t column_unit(const OpInstance& i) {
  const uint32_t head_dim = i.attributes[kHeadDim];
  const uint32_t cols = i.output().cols;
  return element_wise_unit(i) != 0 && head_dim > 0 && cols % head_dim == 0 ? head_dim : 0;
}

void footprint(const OpInstance& i, uint32_t col_begin, uint32_t col_end, std::vector<Access>& out) {
  out.push_back(read_tile_rows(0, col_begin, col_end));
  out.push_back(read_tile_rows(1, col_begin, col_end));
  out.push_back(write_tile_rows(i, col_begin, col_end));
}

}  // namespace

const TileRule kKvAppendTileRule{Op::kKvAppend, 4, column_unit, footprint};

}  // namespace plow
