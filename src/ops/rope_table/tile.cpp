#include "ops/tile_access.h"

namespace plow {
namespace {

// inv_freq[1,h], positions[T,1] -> [T,2h]. The whole row: it is short, and a frequency's sine and cosine come
// together.
uint32_t column_unit(const OpInstance& i) {
  const uint32_t cols = i.output().cols;
  const bool fits = cols > 0 && cols % 2 == 0 && i.operands[0].cols == cols / 2 && i.operands[1].cols == 1;
  return fits ? cols : 0;
}

void footprint(const OpInstance& i, uint32_t col_begin, uint32_t col_end, std::vector<Access>& out) {
  out.push_back(read_fixed_rows(0, 0, 1, 0, i.operands[0].cols));
  out.push_back(read_tile_rows(1, 0, 1));
  out.push_back(write_tile_rows(i, col_begin, col_end));
}

}  // namespace

const TileRule kRopeTableTileRule{Op::kRopeTable, 3, column_unit, footprint};

}  // namespace plow
