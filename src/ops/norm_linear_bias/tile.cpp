#include "ops/tile_access.h"

namespace plow {
namespace {

// x[R,k], g[1,k], W[n,k], b[1,n] -> [R,n]
uint32_t column_unit(const OpInstance& i) {
  const bool fits =
      is_product_of(i, 0, 2) && is_vector(i, 1, i.operands[0].cols) && is_vector(i, 3, i.output().cols);
  return fits ? kColumnUnit : 0;
}

void footprint(const OpInstance& i, uint32_t col_begin, uint32_t col_end, std::vector<Access>& out) {
  out.push_back(read_whole_rows(i, 0));
  out.push_back(read_vector(i, 1));
  out.push_back(read_matrix(i, 2, col_begin, col_end));
  out.push_back(read_fixed_rows(3, 0, 1, col_begin, col_end));
  out.push_back(write_tile_rows(i, col_begin, col_end));
}

}  // namespace

const TileRule kNormLinearBiasTileRule{Op::kNormLinearBias, 5, column_unit, footprint};

}  // namespace plow
