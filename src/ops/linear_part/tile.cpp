#include "ops/tile_access.h"

namespace plow {
namespace {

constexpr size_t kBegin = 0, kEnd = 1;  // attributes

// x[R,k], W[n,k] -> [R,n], of columns [k_begin, k_end) of both. Columns lie in pairs (Layout::kRows16Pairs).
uint32_t column_unit(const OpInstance& i) {
  const uint32_t begin = i.attributes[kBegin], end = i.attributes[kEnd], k = i.operands[0].cols;
  const bool fits =
      is_product_of(i, 0, 1) && begin < end && end <= k && begin % 2 == 0 && (end % 2 == 0 || end == k);
  return fits ? kColumnUnit : 0;
}

void footprint(const OpInstance& i, uint32_t col_begin, uint32_t col_end, std::vector<Access>& out) {
  out.push_back(read_tile_rows(0, i.attributes[kBegin], i.attributes[kEnd]));
  out.push_back(read_fixed_rows(1, col_begin, col_end, i.attributes[kBegin], i.attributes[kEnd]));
  out.push_back(write_tile_rows(i, col_begin, col_end));
}

}  // namespace

const TileRule kLinearPartTileRule{Op::kLinearPart, 3, column_unit, footprint};

}  // namespace plow
