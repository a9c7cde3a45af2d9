// Rows as they are stored, against the values that read_rows gives.
#include "checkpoint/checkpoint.h"
#include "checkpoint/dequantize.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <random>

namespace plow {
namespace {

TEST(StoredRows, AreTheBlocksOfTheRowsThatReadRowsGives) {
  constexpr int64_t kRows = 24, kCols = 64;
  std::mt19937 random(1);
  for (const StoredDType dtype : {StoredDType::kQ8_0, StoredDType::kQ4_0}) {
    for (const uint32_t heads : {0u, 3u}) {
      CheckpointTensor tensor;
      tensor.name = "w";
      tensor.dtype = dtype;
      tensor.shape = {kRows, kCols};
      tensor.interleaved_heads = heads;
      const size_t row_bytes = stored_row_bytes(tensor);
      EXPECT_EQ(row_bytes, 2 * dtype_info(dtype).block_bytes);
      std::vector<std::byte> bytes(kRows * row_bytes);
      for (size_t i = 0; i < bytes.size(); ++i) {
        bytes[i] = static_cast<std::byte>(random());
        if (i % dtype_info(dtype).block_bytes == 1) bytes[i] = std::byte{0x2c};  // a finite scale
      }
      tensor.bytes = bytes;
      for (int64_t first = 0; first < kRows; first += 5) {
        const int64_t n = std::min<int64_t>(7, kRows - first);
        std::vector<std::byte> stored(static_cast<size_t>(n) * row_bytes);
        read_stored_rows(tensor, first, n, stored.data());
        std::vector<float> found(static_cast<size_t>(n * kCols)), expected(found.size());
        dequantize_blocks(dtype, stored.data(), static_cast<size_t>(n) * 2, found.data());
        read_rows(tensor, first, n, expected.data());
        EXPECT_EQ(found, expected) << stored_dtype_name(dtype) << ", " << heads << " heads, from row "
                                   << first;
      }
    }
  }
}

}  // namespace
}  // namespace plow
