#include "ops/tile_access.h"

namespace plow {

const TileRule kSoftCapTileRule{Op::kSoftCap, 2, element_wise_unit, element_wise_footprint};

}  // namespace plow
