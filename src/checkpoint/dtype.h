// How the values of a tensor are stored in a checkpoint: the three float formats of safetensors files, and
// those block formats of GGUF that are read. A block format packs `block_values` neighbours of one row into
// `block_bytes` bytes. Source: the structs block_q8_0 ... block_q6_K of ggml-common.h and the GGUF
// specification (ggml/docs/gguf.md).
#pragma once

#include <array>
#include <cstdint>
#include <string_view>

namespace plow {

enum class StoredDType : uint8_t {
  kF32,
  kF16,
  kBf16,
  kQ4_0,
  kQ4_1,
  kQ5_0,
  kQ5_1,
  kQ8_0,
  kQ4_K,
  kQ5_K,
  kQ6_K
};

inline constexpr size_t kNDTypes = 11;

struct DTypeInfo {
  StoredDType dtype;
  std::string_view name;  // as GGUF writes it
  uint32_t block_values;  // a row is a whole number of blocks
  uint32_t block_bytes;
};

// Indexed by StoredDType.
inline constexpr std::array<DTypeInfo, kNDTypes> kDTypes{{
    {StoredDType::kF32, "F32", 1, 4},
    {StoredDType::kF16, "F16", 1, 2},
    {StoredDType::kBf16, "BF16", 1, 2},
    {StoredDType::kQ4_0, "Q4_0", 32, 2 + 16},          // f16 scale, 4-bit values
    {StoredDType::kQ4_1, "Q4_1", 32, 2 + 2 + 16},      // f16 scale and minimum, 4-bit values
    {StoredDType::kQ5_0, "Q5_0", 32, 2 + 4 + 16},      // f16 scale, fifth bits, low 4 bits
    {StoredDType::kQ5_1, "Q5_1", 32, 2 + 2 + 4 + 16},  // f16 scale and minimum, fifth bits, low 4 bits
    {StoredDType::kQ8_0, "Q8_0", 32, 2 + 32},          // f16 scale, 8-bit values
    {StoredDType::kQ4_K, "Q4_K", 256,
     2 + 2 + 12 + 128},  // f16 scales of scales and minima, 8 of each in 6 bits, 4-bit values
    {StoredDType::kQ5_K, "Q5_K", 256, 2 + 2 + 12 + 32 + 128},  // the same with the fifth bits
    {StoredDType::kQ6_K, "Q6_K", 256,
     128 + 64 + 16 + 2},  // low 4 bits, high 2 bits, 16 8-bit scales, f16 scale
}};

inline constexpr const DTypeInfo& dtype_info(StoredDType dtype) {
  return kDTypes[static_cast<size_t>(dtype)];
}
inline constexpr std::string_view stored_dtype_name(StoredDType dtype) { return dtype_info(dtype).name; }

}  // namespace plow
