// Stored blocks to float32, in the arithmetic of ggml's reference (dequantize_row_* in ggml-quants.c):
// float32, each product and sum rounded on its own, no fused multiply-add.
#pragma once

#include "checkpoint/dtype.h"

#include <cstddef>
#include <cstdint>

namespace plow {

// REQUIRES `blocks` to hold n_blocks * dtype_info(dtype).block_bytes bytes and `out` n_blocks * block_values
// floats.
void dequantize_blocks(StoredDType dtype, const std::byte* blocks, size_t n_blocks, float* out);

}  // namespace plow
