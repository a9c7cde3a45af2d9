#include "ops/tile_access.h"

namespace plow {
namespace {

// x[R,k], W[n,k] -> [R,n]
uint32_t column_unit(const OpInstance& i) {
  const OperandShape& weight = i.operands[1];
  const bool fits =
      i.operands[0].cols == weight.cols && weight.row_kind == Rows::kFixed && weight.rows == i.output().cols;
  return fits ? kColumnUnit : 0;
}

void footprint(const OpInstance& i, uint32_t col_begin, uint32_t col_end, std::vector<Access>& out) {
  const uint32_t k = i.operands[0].cols;
  out.push_back(read_tile_rows(0, 0, k));
  out.push_back(read_fixed_rows(1, col_begin, col_end, 0, k));
  out.push_back(write_tile_rows(i, col_begin, col_end));
}

}  // namespace

const TileRule kLinearTileRule{Op::kLinear, 3, column_unit, footprint};

}  // namespace plow
