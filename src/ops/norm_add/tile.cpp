#include "ops/tile_access.h"

namespace plow {
namespace {

// y[R,n], g[1,n], r[R,n] -> [R,n]: the mean square needs all columns.
uint32_t column_unit(const OpInstance& i) {
  const uint32_t cols = i.output().cols;
  const bool fits = i.operands[0].cols == cols && i.operands[2].cols == cols && is_vector(i, 1, cols);
  return fits ? cols : 0;
}

void footprint(const OpInstance& i, uint32_t col_begin, uint32_t col_end, std::vector<Access>& out) {
  out.push_back(read_tile_rows(0, col_begin, col_end));
  out.push_back(read_vector(i, 1));
  out.push_back(read_tile_rows(2, col_begin, col_end));
  out.push_back(write_tile_rows(i, col_begin, col_end));
}

}  // namespace

const TileRule kNormAddTileRule{Op::kNormAdd, 4, column_unit, footprint};

}  // namespace plow
