#include "ops/tile_access.h"

namespace plow {

const TileRule kAddTileRule{Op::kAdd, 3, element_wise_unit, element_wise_footprint};

}  // namespace plow
