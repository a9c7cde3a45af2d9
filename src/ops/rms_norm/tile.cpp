#include "ops/tile_access.h"

namespace plow {
namespace {

constexpr size_t kGroup = 2;  // attribute

// x[R,n], g[1,group] -> [R,n]: a group needs all of its columns, and nothing else.
uint32_t column_unit(const OpInstance& i) {
  const uint32_t group = i.attributes[kGroup];
  const uint32_t cols = i.output().cols;
  const bool fits =
      i.operands[0].cols == cols && i.operands[1].cols == group && group > 0 && cols % group == 0;
  return fits ? group : 0;
}

void footprint(const OpInstance& i, uint32_t col_begin, uint32_t col_end, std::vector<Access>& out) {
  out.push_back(read_tile_rows(0, col_begin, col_end));
  out.push_back(read_fixed_rows(1, 0, 1, 0, i.attributes[kGroup]));
  out.push_back(write_tile_rows(i, col_begin, col_end));
}

}  // namespace

const TileRule kRmsNormTileRule{Op::kRmsNorm, 3, column_unit, footprint};

}  // namespace plow
