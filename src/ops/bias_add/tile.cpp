#include "ops/tile_access.h"

namespace plow {
namespace {

// x[R,n], b[1,n] -> [R,n]
void footprint(const OpInstance& i, uint32_t col_begin, uint32_t col_end, std::vector<Access>& out) {
  out.push_back(read_tile_rows(0, col_begin, col_end));
  out.push_back(read_fixed_rows(1, 0, 1, col_begin, col_end));
  out.push_back(write_tile_rows(i, col_begin, col_end));
}

}  // namespace

const TileRule kBiasAddTileRule{Op::kBiasAdd, 3, element_wise_unit, footprint};

}  // namespace plow
