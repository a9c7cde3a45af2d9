// Matrices of blocks for tests and benchmarks, with the values that they stand for.
#pragma once

#include "isa/x86_64/body_rig.h"

namespace plow {

struct BlockMatrix {
  std::vector<double> values;  // [rows, cols]
  std::vector<unsigned char>
      packed;  // Layout::kRows16Blocks, spelled out once more: abi/layout.h is what is tested
};

// Integers of every value (of 8 bits: -128 too), scales of both signs around 2 / sqrt(cols) over the largest
// integer, one in sixteen of them 0.
inline BlockMatrix random_blocks(DType dtype, uint32_t rows, uint32_t cols, uint32_t seed) {
  std::mt19937 bits(seed);
  const bool wide = dtype == DType::kQ8_0;
  const size_t block_bytes = wide ? 16 * (2 + 32) : 16 * (2 + 16);
  BlockMatrix matrix{std::vector<double>(size_t{rows} * cols),
                     std::vector<unsigned char>((rows + 15) / 16 * size_t{cols / 32} * block_bytes)};
  for (uint32_t r = 0; r < rows; ++r) {
    for (uint32_t block = 0; block < cols / 32; ++block) {
      unsigned char* to = matrix.packed.data() + (size_t{r / 16} * (cols / 32) + block) * block_bytes;
      const double spread = 0.5 + static_cast<double>(bits() % 1000) / 1000;
      const double size = bits() % 16 == 0 ? 0 : 2 * spread / std::sqrt(cols) / (wide ? 128 : 8);
      const uint16_t scale = double_to_f16(bits() % 2 == 0 ? size : -size);
      std::memcpy(to + 2 * (r % 16), &scale, sizeof(scale));
      for (uint32_t c = 0; c < 32; ++c) {
        const int integer = wide ? static_cast<int>(bits() % 256) - 128 : static_cast<int>(bits() % 16) - 8;
        matrix.values[size_t{r} * cols + block * 32 + c] = static_cast<double>(f16_to_float(scale)) * integer;
        unsigned char& byte = to[32 + (wide ? c / 2 : c / 4) * 32 + r % 16 * 2 + c % 2];
        if (wide) {
          byte = static_cast<unsigned char>(integer);
        } else {
          byte = static_cast<unsigned char>(byte | (integer + 8) << (c / 2 % 2 == 0 ? 0 : 4));
        }
      }
    }
  }
  return matrix;
}

}  // namespace plow
