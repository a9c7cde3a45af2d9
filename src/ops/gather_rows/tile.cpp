#include "ops/tile_access.h"

namespace plow {
namespace {

// x[T,n], sample_rows[S,1] -> [S,n]
uint32_t column_unit(const OpInstance& i) {
  return i.operands[0].cols == i.output().cols && i.operands[1].cols == 1 ? kColumnUnit : 0;
}

void footprint(const OpInstance& i, uint32_t col_begin, uint32_t col_end, std::vector<Access>& out) {
  out.push_back(read_all_rows(0, col_begin, col_end));
  out.push_back(read_tile_rows(1, 0, 1));
  out.push_back(write_tile_rows(i, col_begin, col_end));
}

}  // namespace

const TileRule kGatherRowsTileRule{Op::kGatherRows, 3, column_unit, footprint};

}  // namespace plow
