// AVX2 with FMA and F16C: a Vec is two registers. Results have the bits of prims_avx512.h.
#pragma once

#include "isa/x86_64/prims_scalar.h"

namespace plow::x86_64 {

using dev::Bf16;
using dev::F16;

struct Avx2 : ScalarPrims {
  struct Vec {
    __m256 lo, hi;
  };
  struct Mask {
    __m256 lo, hi;
  };

  // Six rows of one row group are 12 of the 16 registers; the rest holds a line's even or odd columns and a
  // broadcast. With several row groups their weights take more, so that four Vecs are the most that stay in
  // registers.
  static constexpr int kAccumulators = 4;
  static constexpr int kRowBlock = 6;
  // Of products in integers: eight sums, a line's integers and what they are made of.
  static constexpr int kWordRowBlock = 4;

  static Vec zero() { return {_mm256_setzero_ps(), _mm256_setzero_ps()}; }
  static Vec set(float x) { return {_mm256_set1_ps(x), _mm256_set1_ps(x)}; }

  static Vec load(const float* p) { return {_mm256_loadu_ps(p), _mm256_loadu_ps(p + 8)}; }
  static void store(float* p, Vec v) {
    _mm256_storeu_ps(p, v.lo);
    _mm256_storeu_ps(p + 8, v.hi);
  }
  static Vec load_n(const float* p, uint32_t n) {
    const Mask m = lanes_below(n);
    return {_mm256_maskload_ps(p, _mm256_castps_si256(m.lo)),
            _mm256_maskload_ps(p + 8, _mm256_castps_si256(m.hi))};
  }
  static void store_n(float* p, Vec v, uint32_t n) {
    const Mask m = lanes_below(n);
    _mm256_maskstore_ps(p, _mm256_castps_si256(m.lo), v.lo);
    _mm256_maskstore_ps(p + 8, _mm256_castps_si256(m.hi), v.hi);
  }

  static Vec add(Vec a, Vec b) { return {_mm256_add_ps(a.lo, b.lo), _mm256_add_ps(a.hi, b.hi)}; }
  static Vec sub(Vec a, Vec b) { return {_mm256_sub_ps(a.lo, b.lo), _mm256_sub_ps(a.hi, b.hi)}; }
  static Vec mul(Vec a, Vec b) { return {_mm256_mul_ps(a.lo, b.lo), _mm256_mul_ps(a.hi, b.hi)}; }
  static Vec div(Vec a, Vec b) { return {_mm256_div_ps(a.lo, b.lo), _mm256_div_ps(a.hi, b.hi)}; }
  static Vec fma(Vec a, Vec b, Vec c) {
    return {_mm256_fmadd_ps(a.lo, b.lo, c.lo), _mm256_fmadd_ps(a.hi, b.hi, c.hi)};
  }
  static Vec max(Vec a, Vec b) { return {_mm256_max_ps(a.lo, b.lo), _mm256_max_ps(a.hi, b.hi)}; }
  static Vec min(Vec a, Vec b) { return {_mm256_min_ps(a.lo, b.lo), _mm256_min_ps(a.hi, b.hi)}; }
  static Vec abs(Vec v) {
    const __m256 sign = _mm256_set1_ps(-0.0f);
    return {_mm256_andnot_ps(sign, v.lo), _mm256_andnot_ps(sign, v.hi)};
  }
  static Vec copy_sign(Vec v, Vec s) {
    const __m256 sign = _mm256_set1_ps(-0.0f);
    const Vec a = abs(v);
    return {_mm256_or_ps(a.lo, _mm256_and_ps(sign, s.lo)), _mm256_or_ps(a.hi, _mm256_and_ps(sign, s.hi))};
  }
  static Vec round(Vec v) {
    constexpr int kMode = _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC;
    return {_mm256_round_ps(v.lo, kMode), _mm256_round_ps(v.hi, kMode)};
  }
  static Vec times_power(Vec v, Vec n) { return mul(v, {power(n.lo), power(n.hi)}); }

  static Mask less(Vec a, Vec b) {
    return {_mm256_cmp_ps(a.lo, b.lo, _CMP_LT_OQ), _mm256_cmp_ps(a.hi, b.hi, _CMP_LT_OQ)};
  }
  static Mask lanes_below(uint32_t n) {
    const __m256i bound = _mm256_set1_epi32(static_cast<int>(n));
    const __m256i lane = _mm256_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7);
    return {_mm256_castsi256_ps(_mm256_cmpgt_epi32(bound, lane)),
            _mm256_castsi256_ps(_mm256_cmpgt_epi32(bound, _mm256_add_epi32(lane, _mm256_set1_epi32(8))))};
  }
  static uint32_t mask_bits(Mask m) {
    return static_cast<uint32_t>(_mm256_movemask_ps(m.lo)) | static_cast<uint32_t>(_mm256_movemask_ps(m.hi))
                                                                 << 8;
  }
  static Vec select(Mask m, Vec a, Vec b) {
    return {_mm256_blendv_ps(b.lo, a.lo, m.lo), _mm256_blendv_ps(b.hi, a.hi, m.hi)};
  }
  static float reduce_add(Vec v) {
    const __m256 a = _mm256_add_ps(v.lo, v.hi);
    __m128 b = _mm_add_ps(_mm256_castps256_ps128(a), _mm256_extractf128_ps(a, 1));
    b = _mm_add_ps(b, _mm_movehl_ps(b, b));
    return _mm_cvtss_f32(_mm_add_ss(b, _mm_movehdup_ps(b)));
  }
  static float reduce_max(Vec v) {
    const __m256 a = _mm256_max_ps(v.lo, v.hi);
    __m128 b = _mm_max_ps(_mm256_castps256_ps128(a), _mm256_extractf128_ps(a, 1));
    b = _mm_max_ps(b, _mm_movehl_ps(b, b));
    return _mm_cvtss_f32(_mm_max_ss(b, _mm_movehdup_ps(b)));
  }

  static Vec load(const Bf16* p) {
    const __m128i* q = reinterpret_cast<const __m128i*>(p);
    return {widen(_mm_loadu_si128(q)), widen(_mm_loadu_si128(q + 1))};
  }
  static Vec load(const F16* p) {
    const __m128i* q = reinterpret_cast<const __m128i*>(p);
    return {_mm256_cvtph_ps(_mm_loadu_si128(q)), _mm256_cvtph_ps(_mm_loadu_si128(q + 1))};
  }
  template <class T>  // Bf16 or F16
  static Vec load_n(const T* p, uint32_t n) {
    T lanes[16] = {};
    __builtin_memcpy(lanes, p, n * sizeof(T));
    return load(lanes);
  }
  static void store(Bf16* p, Vec v) {
    const __m256i packed =
        _mm256_packus_epi32(narrow(v.lo), narrow(v.hi));  // 64-bit pieces in the order 0 2 1 3
    _mm256_storeu_si256(reinterpret_cast<__m256i*>(p), _mm256_permute4x64_epi64(packed, 0xd8));
  }
  static void store_n(Bf16* p, Vec v, uint32_t n) {
    Bf16 lanes[16];
    store(lanes, v);
    __builtin_memcpy(p, lanes, n * sizeof(Bf16));
  }

  static Vec load_even(const Bf16* line) {
    return {_mm256_castsi256_ps(_mm256_slli_epi32(words(line), 16)),
            _mm256_castsi256_ps(_mm256_slli_epi32(words(line + 16), 16))};
  }
  static Vec load_odd(const Bf16* line) {
    const __m256i high_half = _mm256_set1_epi32(static_cast<int>(0xffff0000u));
    return {_mm256_castsi256_ps(_mm256_and_si256(words(line), high_half)),
            _mm256_castsi256_ps(_mm256_and_si256(words(line + 16), high_half))};
  }
  static Vec load_even(const F16* line) {
    const __m256i low_half = _mm256_set1_epi32(0xffff);
    return {from_low_halves(_mm256_and_si256(words(line), low_half)),
            from_low_halves(_mm256_and_si256(words(line + 16), low_half))};
  }
  static Vec load_odd(const F16* line) {
    return {from_low_halves(_mm256_srli_epi32(words(line), 16)),
            from_low_halves(_mm256_srli_epi32(words(line + 16), 16))};
  }
  static Vec load_even(const float* line) { return {alternate<0x88>(line), alternate<0x88>(line + 16)}; }
  static Vec load_odd(const float* line) { return {alternate<0xdd>(line), alternate<0xdd>(line + 16)}; }

  // Words: pairs of 16-bit integers, or sums of 32 bits, of 16 rows.
  struct Words {
    __m256i lo, hi;
  };
  static Words set_words(int32_t x) { return {_mm256_set1_epi32(x), _mm256_set1_epi32(x)}; }
  static Vec words_to_floats(Words w) { return {_mm256_cvtepi32_ps(w.lo), _mm256_cvtepi32_ps(w.hi)}; }
  static Words dot_words(Words acc, Words w, uint32_t pair) {
    const __m256i x = _mm256_set1_epi32(static_cast<int>(pair));
    acc.lo = _mm256_add_epi32(acc.lo, _mm256_madd_epi16(w.lo, x));
    acc.hi = _mm256_add_epi32(acc.hi, _mm256_madd_epi16(w.hi, x));
    // GCC collects all products before it adds them, and sums then lie on the stack: keep the order as written.
    asm volatile("" : "+x"(acc.lo), "+x"(acc.hi));
    return acc;
  }
  static Words load_bytes(const unsigned char* line) {
    return {_mm256_cvtepi8_epi16(half_line(line)), _mm256_cvtepi8_epi16(half_line(line + 16))};
  }
  static Words load_low_halves(const unsigned char* line) {
    const Words w = load_halves(line);
    const __m256i mask = _mm256_set1_epi16(15);
    return {_mm256_and_si256(w.lo, mask), _mm256_and_si256(w.hi, mask)};
  }
  static Words load_high_halves(const unsigned char* line) {
    const Words w = load_halves(line);
    return {_mm256_srli_epi16(w.lo, 4), _mm256_srli_epi16(w.hi, 4)};
  }
  static void store_words(uint32_t* p, Vec a, Vec b) {
    __m256i* to = reinterpret_cast<__m256i*>(p);
    _mm256_storeu_si256(to, to_words(a));
    _mm256_storeu_si256(to + 1, to_words(b));
  }

 private:
  static __m128i half_line(const unsigned char* p) {
    return _mm_loadu_si128(reinterpret_cast<const __m128i*>(p));
  }
  static Words load_halves(const unsigned char* line) {
    return {_mm256_cvtepu8_epi16(half_line(line)), _mm256_cvtepu8_epi16(half_line(line + 16))};
  }
  static __m256i to_words(Vec v) {
    const __m256i packed = _mm256_packs_epi32(_mm256_cvtps_epi32(v.lo), _mm256_cvtps_epi32(v.hi));
    return _mm256_permute4x64_epi64(packed, 0xd8);  // 64-bit pieces came in the order 0 2 1 3
  }
  static __m256 power(__m256 n) {
    const __m256i exponent = _mm256_add_epi32(_mm256_cvtps_epi32(n), _mm256_set1_epi32(127));
    return _mm256_castsi256_ps(_mm256_slli_epi32(exponent, 23));
  }
  static __m256 widen(__m128i bf16) {
    return _mm256_castsi256_ps(_mm256_slli_epi32(_mm256_cvtepu16_epi32(bf16), 16));
  }
  // float_to_bf16 of base/float16.h in the low half of each lane.
  static __m256i narrow(__m256 v) {
    const __m256i bits = _mm256_castps_si256(v);
    const __m256i high = _mm256_srli_epi32(bits, 16);
    const __m256i bias =
        _mm256_add_epi32(_mm256_set1_epi32(0x7fff), _mm256_and_si256(high, _mm256_set1_epi32(1)));
    const __m256i rounded = _mm256_srli_epi32(_mm256_add_epi32(bits, bias), 16);
    const __m256i quiet = _mm256_or_si256(high, _mm256_set1_epi32(0x40));
    const __m256 nan = _mm256_cmp_ps(v, v, _CMP_UNORD_Q);
    return _mm256_blendv_epi8(rounded, quiet, _mm256_castps_si256(nan));
  }
  static __m256 from_low_halves(__m256i words) {
    const __m256i packed = _mm256_permute4x64_epi64(_mm256_packus_epi32(words, words), 0xd8);
    return _mm256_cvtph_ps(_mm256_castsi256_si128(packed));
  }
  template <class T>
  static __m256i words(const T* p) {
    return _mm256_loadu_si256(reinterpret_cast<const __m256i*>(p));
  }
  // Every other of 16 floats: the even ones with 0x88, the odd ones with 0xdd.
  template <int kPick>
  static __m256 alternate(const float* p) {
    const __m256 v = _mm256_shuffle_ps(_mm256_loadu_ps(p), _mm256_loadu_ps(p + 8),
                                       kPick);  // 64-bit pieces in the order 0 2 1 3
    return _mm256_castpd_ps(_mm256_permute4x64_pd(_mm256_castps_pd(v), 0xd8));
  }
};

}  // namespace plow::x86_64
