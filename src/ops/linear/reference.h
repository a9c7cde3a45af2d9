// The float64 product that the definitions of linear maps share.
#pragma once

#include "ops/def.h"

namespace plow {

// x[:, k_begin:k_end] weight[:, k_begin:k_end]^T
Matrix product(const Matrix& x, const Matrix& weight, uint32_t k_begin, uint32_t k_end);

}  // namespace plow
