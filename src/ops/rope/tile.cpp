#include "ops/tile_access.h"

namespace plow {
namespace {

constexpr size_t kHeadDim = 0;  // attribute

// x[T,heads*head_dim], table[T,2h] -> [T,heads*head_dim]: the columns of a head turn in pairs.
uint32_t column_unit(const OpInstance& i) {
  const uint32_t head_dim = i.attributes[kHeadDim];
  const uint32_t cols = i.output().cols;
  const uint32_t table_cols = i.operands[1].cols;
  const bool fits = i.operands[0].cols == cols && head_dim > 0 && cols % head_dim == 0 &&
                    table_cols % 2 == 0 && table_cols <= head_dim;
  return fits ? head_dim : 0;
}

void footprint(const OpInstance& i, uint32_t col_begin, uint32_t col_end, std::vector<Access>& out) {
  out.push_back(read_tile_rows(0, col_begin, col_end));
  out.push_back(read_tile_rows(1, 0, i.operands[1].cols));
  out.push_back(write_tile_rows(i, col_begin, col_end));
}

}  // namespace

const TileRule kRopeTileRule{Op::kRope, 3, column_unit, footprint};

}  // namespace plow
