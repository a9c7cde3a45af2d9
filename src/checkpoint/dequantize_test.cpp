#include "checkpoint/dequantize.h"

#include "base/byte_reader.h"
#include "base/float16.h"
#include "checkpoint/testing/files.h"

#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <vector>

namespace plow {
namespace {

using testing_files::as_bytes;

// One file of tools/make_gguf_vectors.py.
struct Vector {
  std::string file;
  uint32_t n_blocks = 0;
  std::span<const std::byte> blocks;
  std::vector<float> expected;
};

Vector read_vector(StoredDType dtype) {
  const auto& info = dtype_info(dtype);
  Vector v;
  v.file =
      testing_files::read_file(PLOW_SOURCE_DIR "/src/checkpoint/testdata/" + std::string(info.name) + ".vec");
  ByteReader reader(as_bytes(v.file));
  v.n_blocks = reader.read<uint32_t>();
  v.blocks = reader.read_bytes(uint64_t{v.n_blocks} * info.block_bytes);
  while (reader.remaining() != 0) v.expected.push_back(reader.read<float>());
  EXPECT_TRUE(reader.ok()) << info.name;
  EXPECT_EQ(v.expected.size(), size_t{v.n_blocks} * info.block_values) << info.name;
  EXPECT_GE(v.n_blocks, 3u) << info.name;
  return v;
}

TEST(Dequantize, GivesTheBitsThatThePackageGgufGives) {
  for (const auto& info : kDTypes) {
    const Vector v = read_vector(info.dtype);
    std::vector<float> out(v.expected.size());
    dequantize_blocks(info.dtype, v.blocks.data(), v.n_blocks, out.data());
    size_t differ = 0;
    for (size_t i = 0; i < out.size(); ++i) {
      differ += std::bit_cast<uint32_t>(out[i]) != std::bit_cast<uint32_t>(v.expected[i]);
    }
    EXPECT_EQ(differ, 0u) << info.name;
  }
}

// The formats of one product, from their description alone and in double, where that product is exact: the
// float32 result must be it, rounded once.
TEST(Dequantize, RoundsTheExactProductOnce) {
  for (const StoredDType dtype : {StoredDType::kQ4_0, StoredDType::kQ5_0, StoredDType::kQ8_0}) {
    const auto& info = dtype_info(dtype);
    const Vector v = read_vector(dtype);
    std::vector<float> out(v.expected.size());
    dequantize_blocks(dtype, v.blocks.data(), v.n_blocks, out.data());
    for (size_t i = 0; i < out.size(); ++i) {
      const std::byte* block = v.blocks.data() + i / 32 * info.block_bytes;
      const auto byte = [&](size_t at) { return std::to_integer<int>(block[at]); };
      const double d = static_cast<double>(f16_to_float(static_cast<uint16_t>(byte(0) | byte(1) << 8)));
      const size_t k = i % 32;
      const int nibble = byte(info.block_bytes - 16 + k % 16) >> (k < 16 ? 0 : 4) & 15;
      int q = nibble - 8;
      if (dtype == StoredDType::kQ5_0) q = (nibble | (byte(2 + k / 8) >> k % 8 & 1) << 4) - 16;
      if (dtype == StoredDType::kQ8_0) q = static_cast<int8_t>(byte(2 + k));
      EXPECT_EQ(out[i], static_cast<float>(d * q)) << info.name << " value " << i;
    }
  }
}

TEST(Dequantize, KeepsFloatsOfEveryKind) {
  const uint16_t f16[] = {0x0000, 0x8000, 0x0001, 0x3c00, 0x7bff, 0x7c00, 0xfc00};
  float out[7];
  dequantize_blocks(StoredDType::kF16, reinterpret_cast<const std::byte*>(f16), 7, out);
  EXPECT_TRUE(out[0] == 0.0f && !std::signbit(out[0]));
  EXPECT_TRUE(out[1] == 0.0f && std::signbit(out[1]));
  EXPECT_EQ(out[2], 0x1p-24f);
  EXPECT_EQ(out[3], 1.0f);
  EXPECT_EQ(out[4], 65504.0f);
  EXPECT_TRUE(std::isinf(out[5]) && std::isinf(out[6]));
}

}  // namespace
}  // namespace plow
