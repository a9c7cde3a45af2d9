#include "ops/tile_access.h"

namespace plow {
namespace {

// x[R,k], W[n,k], b[1,n] -> [R,n]
uint32_t column_unit(const OpInstance& i) {
  return is_product_of(i, 0, 1) && is_vector(i, 2, i.output().cols) ? kColumnUnit : 0;
}

void footprint(const OpInstance& i, uint32_t col_begin, uint32_t col_end, std::vector<Access>& out) {
  out.push_back(read_whole_rows(i, 0));
  out.push_back(read_matrix(i, 1, col_begin, col_end));
  out.push_back(read_fixed_rows(2, 0, 1, col_begin, col_end));
  out.push_back(write_tile_rows(i, col_begin, col_end));
}

}  // namespace

const TileRule kLinearBiasTileRule{Op::kLinearBias, 4, column_unit, footprint};

}  // namespace plow
