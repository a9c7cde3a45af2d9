#include "ops/tile_access.h"

namespace plow {
namespace {

// logits[S,V] -> u32[S,1]
uint32_t column_unit(const OpInstance& i) { return i.output().cols == 1 && i.operands[0].cols > 0 ? 1 : 0; }

void footprint(const OpInstance& i, uint32_t col_begin, uint32_t col_end, std::vector<Access>& out) {
  out.push_back(read_tile_rows(0, 0, i.operands[0].cols));
  out.push_back(write_tile_rows(i, col_begin, col_end));
}

}  // namespace

const TileRule kSampleTileRule{Op::kSample, 2, column_unit, footprint};

}  // namespace plow
