#include "checkpoint/dequantize.h"

#include "base/check.h"
#include "base/float16.h"

#include <cstring>

// Below, d and m are the scale and minimum of a block as the format's description names them. Operations
// stand in the order of ggml's reference, since float32 sums and products do not associate. x86-64's baseline
// has no fused multiply-add, and a build that turned one on would fail the tests, which compare bits.

namespace plow {

namespace {

template <class T>
T load(const std::byte* at) {
  T value{};
  std::memcpy(&value, at, sizeof value);
  return value;
}

float load_f16(const std::byte* at) { return f16_to_float(load<uint16_t>(at)); }

int low_bits(std::byte b) { return std::to_integer<int>(b & std::byte{0x0f}); }
int high_bits(std::byte b) { return std::to_integer<int>(b >> 4); }

// The 32-value formats put value i in the low and value i + 16 in the high half of byte i.
constexpr size_t kHalf = 16;

void q4_0(const std::byte* block, float* out) {
  const float d = load_f16(block);
  const std::byte* qs = block + 2;
  for (size_t i = 0; i < kHalf; ++i) {
    out[i] = static_cast<float>(low_bits(qs[i]) - 8) * d;
    out[i + kHalf] = static_cast<float>(high_bits(qs[i]) - 8) * d;
  }
}

void q4_1(const std::byte* block, float* out) {
  const float d = load_f16(block);
  const float m = load_f16(block + 2);
  const std::byte* qs = block + 4;
  for (size_t i = 0; i < kHalf; ++i) {
    out[i] = static_cast<float>(low_bits(qs[i])) * d + m;
    out[i + kHalf] = static_cast<float>(high_bits(qs[i])) * d + m;
  }
}

// The fifth bit of value i is bit i of a 32-bit word.
int fifth_bit(uint32_t bits, size_t i) { return static_cast<int>((bits >> i) & 1u) << 4; }

void q5_0(const std::byte* block, float* out) {
  const float d = load_f16(block);
  const auto fifth = load<uint32_t>(block + 2);
  const std::byte* qs = block + 6;
  for (size_t i = 0; i < kHalf; ++i) {
    out[i] = static_cast<float>((low_bits(qs[i]) | fifth_bit(fifth, i)) - 16) * d;
    out[i + kHalf] = static_cast<float>((high_bits(qs[i]) | fifth_bit(fifth, i + kHalf)) - 16) * d;
  }
}

void q5_1(const std::byte* block, float* out) {
  const float d = load_f16(block);
  const float m = load_f16(block + 2);
  const auto fifth = load<uint32_t>(block + 4);
  const std::byte* qs = block + 8;
  for (size_t i = 0; i < kHalf; ++i) {
    out[i] = static_cast<float>(low_bits(qs[i]) | fifth_bit(fifth, i)) * d + m;
    out[i + kHalf] = static_cast<float>(high_bits(qs[i]) | fifth_bit(fifth, i + kHalf)) * d + m;
  }
}

void q8_0(const std::byte* block, float* out) {
  const float d = load_f16(block);
  for (size_t i = 0; i < 32; ++i) out[i] = static_cast<float>(load<int8_t>(block + 2 + i)) * d;
}

// Q4_K and Q5_K: eight sub-blocks of 32 values, each with a 6-bit scale and a 6-bit minimum, packed in 12
// bytes. The first four have theirs in the low 6 bits of bytes 0-3 (scales) and 4-7 (minima); the last four
// have their low 4 bits in the halves of bytes 8-11 and their high 2 bits on top of bytes 0-7.
struct ScaleMin {
  float scale;
  float min;
};

ScaleMin scale_min(const std::byte* packed, size_t sub_block) {
  const auto bits = [&](size_t i) { return std::to_integer<int>(packed[i]); };
  int scale = bits(sub_block) & 63;
  int min = bits(sub_block + 4) & 63;
  if (sub_block >= 4) {
    scale = (bits(sub_block + 4) & 15) | ((bits(sub_block - 4) >> 6) << 4);
    min = (bits(sub_block + 4) >> 4) | ((bits(sub_block) >> 6) << 4);
  }
  return {static_cast<float>(scale), static_cast<float>(min)};
}

// `fifth` is null for Q4_K; for Q5_K bit s of byte i is the fifth bit of value i of sub-block s.
void q45_k(const std::byte* block, const std::byte* fifth, const std::byte* qs, float* out) {
  const float d = load_f16(block);
  const float d_min = load_f16(block + 2);
  for (size_t s = 0; s < 8; ++s) {
    const ScaleMin packed = scale_min(block + 4, s);
    const float scale = d * packed.scale;
    const float min = d_min * packed.min;
    // A run of 32 bytes holds two sub-blocks: the even one in the low halves, the odd one in the high halves.
    const std::byte* run = qs + (s / 2) * 32;
    for (size_t i = 0; i < 32; ++i) {
      int q = s % 2 == 0 ? low_bits(run[i]) : high_bits(run[i]);
      if (fifth != nullptr && (std::to_integer<unsigned>(fifth[i]) >> s & 1u) != 0) q += 16;
      out[s * 32 + i] = scale * static_cast<float>(q) - min;
    }
  }
}

void q4_k(const std::byte* block, float* out) { q45_k(block, nullptr, block + 16, out); }
void q5_k(const std::byte* block, float* out) { q45_k(block, block + 16, block + 48, out); }

// Two halves of 128 values, each of four runs of 32: run r takes the low (r < 2) or high halves of the 32
// bytes ql[32 * (r % 2)...], and bits 2r, 2r+1 of qh. A scale is for 16 values.
void q6_k(const std::byte* block, float* out) {
  const float d = load_f16(block + 208);
  for (size_t half = 0; half < 2; ++half) {
    const std::byte* ql = block + half * 64;
    const std::byte* qh = block + 128 + half * 32;
    const std::byte* scales = block + 192 + half * 8;
    for (size_t r = 0; r < 4; ++r) {
      for (size_t i = 0; i < 32; ++i) {
        const std::byte low = ql[32 * (r % 2) + i];
        const int high = (std::to_integer<int>(qh[i]) >> (2 * r)) & 3;
        const int q = ((r < 2 ? low_bits(low) : high_bits(low)) | (high << 4)) - 32;
        const float scale = d * static_cast<float>(load<int8_t>(scales + 2 * r + i / 16));
        out[half * 128 + r * 32 + i] = scale * static_cast<float>(q);
      }
    }
  }
}

void f32(const std::byte* block, float* out) { *out = load<float>(block); }
void f16(const std::byte* block, float* out) { *out = load_f16(block); }
void bf16(const std::byte* block, float* out) { *out = bf16_to_float(load<uint16_t>(block)); }

// The inner call is direct, so that the one-value formats become plain loops.
template <void (*kBlock)(const std::byte*, float*)>
void each_block(StoredDType dtype, const std::byte* blocks, size_t n_blocks, float* out) {
  const auto& info = dtype_info(dtype);
  for (size_t b = 0; b < n_blocks; ++b) kBlock(blocks + b * info.block_bytes, out + b * info.block_values);
}

}  // namespace

void dequantize_blocks(StoredDType dtype, const std::byte* blocks, size_t n_blocks, float* out) {
  switch (dtype) {
    case StoredDType::kF32:
      return each_block<f32>(dtype, blocks, n_blocks, out);
    case StoredDType::kF16:
      return each_block<f16>(dtype, blocks, n_blocks, out);
    case StoredDType::kBf16:
      return each_block<bf16>(dtype, blocks, n_blocks, out);
    case StoredDType::kQ4_0:
      return each_block<q4_0>(dtype, blocks, n_blocks, out);
    case StoredDType::kQ4_1:
      return each_block<q4_1>(dtype, blocks, n_blocks, out);
    case StoredDType::kQ5_0:
      return each_block<q5_0>(dtype, blocks, n_blocks, out);
    case StoredDType::kQ5_1:
      return each_block<q5_1>(dtype, blocks, n_blocks, out);
    case StoredDType::kQ8_0:
      return each_block<q8_0>(dtype, blocks, n_blocks, out);
    case StoredDType::kQ4_K:
      return each_block<q4_k>(dtype, blocks, n_blocks, out);
    case StoredDType::kQ5_K:
      return each_block<q5_k>(dtype, blocks, n_blocks, out);
    case StoredDType::kQ6_K:
      return each_block<q6_k>(dtype, blocks, n_blocks, out);
  }
  PLOW_CHECK(false, "dtype {}", static_cast<int>(dtype));
}

}  // namespace plow
