#include "ops/tile_access.h"

namespace plow {

const TileRule kScaleTileRule{Op::kScale, 2, element_wise_unit, element_wise_footprint};

}  // namespace plow
