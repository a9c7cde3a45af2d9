// AVX-512 (F, BW, VL, DQ): a Vec is one register. And the same with AVX512-BF16.
#pragma once

#include "isa/x86_64/prims_scalar.h"

namespace plow::x86_64 {

using dev::Bf16;
using dev::F16;

struct Avx512 : ScalarPrims {
  using Vec = __m512;
  using Mask = __mmask16;

  // 24 of 32 registers; a line of four row groups (even and odd columns, one after the other) and a broadcast
  // take most of the rest.
  static constexpr int kAccumulators = 24;
  static constexpr int kRowBlock = 6;
  static constexpr int kWordRowBlock = 6;

  static Vec zero() { return _mm512_setzero_ps(); }
  static Vec set(float x) { return _mm512_set1_ps(x); }

  static Vec load(const float* p) { return _mm512_loadu_ps(p); }
  static void store(float* p, Vec v) { _mm512_storeu_ps(p, v); }
  static Vec load_n(const float* p, uint32_t n) { return _mm512_maskz_loadu_ps(lanes_below(n), p); }
  static void store_n(float* p, Vec v, uint32_t n) { _mm512_mask_storeu_ps(p, lanes_below(n), v); }

  static Vec add(Vec a, Vec b) { return _mm512_add_ps(a, b); }
  static Vec sub(Vec a, Vec b) { return _mm512_sub_ps(a, b); }
  static Vec mul(Vec a, Vec b) { return _mm512_mul_ps(a, b); }
  static Vec div(Vec a, Vec b) { return _mm512_div_ps(a, b); }
  static Vec fma(Vec a, Vec b, Vec c) { return _mm512_fmadd_ps(a, b, c); }
  static Vec max(Vec a, Vec b) { return _mm512_max_ps(a, b); }
  static Vec min(Vec a, Vec b) { return _mm512_min_ps(a, b); }
  static Vec abs(Vec v) { return _mm512_abs_ps(v); }
  static Vec copy_sign(Vec v, Vec s) {
    const Vec sign = _mm512_set1_ps(-0.0f);
    return _mm512_or_ps(_mm512_andnot_ps(sign, v), _mm512_and_ps(sign, s));
  }
  static Vec round(Vec v) { return _mm512_roundscale_ps(v, _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC); }
  static Vec times_power(Vec v, Vec n) {
    const __m512i exponent = _mm512_add_epi32(_mm512_cvtps_epi32(n), _mm512_set1_epi32(127));
    return mul(v, _mm512_castsi512_ps(_mm512_slli_epi32(exponent, 23)));
  }

  static Mask less(Vec a, Vec b) { return _mm512_cmp_ps_mask(a, b, _CMP_LT_OQ); }
  static Mask lanes_below(uint32_t n) { return static_cast<Mask>(n >= 16 ? 0xffffu : (1u << n) - 1); }
  static uint32_t mask_bits(Mask m) { return m; }
  static Vec select(Mask m, Vec a, Vec b) { return _mm512_mask_blend_ps(m, b, a); }
  static float reduce_add(Vec v) {
    const __m256 a = _mm256_add_ps(_mm512_castps512_ps256(v), high_half(v));
    __m128 b = _mm_add_ps(_mm256_castps256_ps128(a), _mm256_extractf128_ps(a, 1));
    b = _mm_add_ps(b, _mm_movehl_ps(b, b));
    return _mm_cvtss_f32(_mm_add_ss(b, _mm_movehdup_ps(b)));
  }
  static float reduce_max(Vec v) {
    const __m256 a = _mm256_max_ps(_mm512_castps512_ps256(v), high_half(v));
    __m128 b = _mm_max_ps(_mm256_castps256_ps128(a), _mm256_extractf128_ps(a, 1));
    b = _mm_max_ps(b, _mm_movehl_ps(b, b));
    return _mm_cvtss_f32(_mm_max_ss(b, _mm_movehdup_ps(b)));
  }

  static Vec load(const Bf16* p) { return widen(_mm256_loadu_si256(reinterpret_cast<const __m256i*>(p))); }
  static Vec load(const F16* p) {
    return _mm512_cvtph_ps(_mm256_loadu_si256(reinterpret_cast<const __m256i*>(p)));
  }
  static Vec load_n(const Bf16* p, uint32_t n) { return widen(_mm256_maskz_loadu_epi16(lanes_below(n), p)); }
  static Vec load_n(const F16* p, uint32_t n) {
    return _mm512_cvtph_ps(_mm256_maskz_loadu_epi16(lanes_below(n), p));
  }
  static void store(Bf16* p, Vec v) { _mm256_storeu_si256(reinterpret_cast<__m256i*>(p), narrow(v)); }
  static void store_n(Bf16* p, Vec v, uint32_t n) { _mm256_mask_storeu_epi16(p, lanes_below(n), narrow(v)); }

  static Vec load_even(const Bf16* line) {
    return _mm512_castsi512_ps(_mm512_slli_epi32(_mm512_loadu_si512(line), 16));
  }
  static Vec load_odd(const Bf16* line) {
    return _mm512_castsi512_ps(
        _mm512_and_si512(_mm512_loadu_si512(line), _mm512_set1_epi32(static_cast<int>(0xffff0000u))));
  }
  static Vec load_even(const F16* line) {
    return _mm512_cvtph_ps(_mm512_cvtepi32_epi16(_mm512_loadu_si512(line)));
  }
  static Vec load_odd(const F16* line) {
    return _mm512_cvtph_ps(_mm512_cvtepi32_epi16(_mm512_srli_epi32(_mm512_loadu_si512(line), 16)));
  }
  static Vec load_even(const float* line) { return alternate(line, _mm512_setzero_si512()); }
  static Vec load_odd(const float* line) { return alternate(line, _mm512_set1_epi32(1)); }

  // Words: pairs of 16-bit integers, or sums of 32 bits, of 16 rows.
  using Words = __m512i;
  static Words set_words(int32_t x) { return _mm512_set1_epi32(x); }
  static Vec words_to_floats(Words w) { return _mm512_cvtepi32_ps(w); }
  static Words dot_words(Words acc, Words w, uint32_t pair) {
    return _mm512_add_epi32(acc, _mm512_madd_epi16(w, _mm512_set1_epi32(static_cast<int>(pair))));
  }
  static Words load_bytes(const unsigned char* line) { return _mm512_cvtepi8_epi16(whole_line(line)); }
  static Words load_low_halves(const unsigned char* line) {
    return _mm512_and_si512(_mm512_cvtepu8_epi16(whole_line(line)), _mm512_set1_epi16(15));
  }
  static Words load_high_halves(const unsigned char* line) {
    return _mm512_srli_epi16(_mm512_cvtepu8_epi16(whole_line(line)), 4);
  }
  static void store_words(uint32_t* p, Vec a, Vec b) {
    __m256i* to = reinterpret_cast<__m256i*>(p);
    _mm256_storeu_si256(to, _mm512_cvtsepi32_epi16(_mm512_cvtps_epi32(a)));
    _mm256_storeu_si256(to + 1, _mm512_cvtsepi32_epi16(_mm512_cvtps_epi32(b)));
  }

 private:
  static __m256i whole_line(const unsigned char* p) {
    return _mm256_loadu_si256(reinterpret_cast<const __m256i*>(p));
  }
  // Every other of 32 floats, from `first` on.
  static Vec alternate(const float* p, __m512i first) {
    const __m512i evens = _mm512_setr_epi32(0, 2, 4, 6, 8, 10, 12, 14, 16, 18, 20, 22, 24, 26, 28, 30);
    return _mm512_permutex2var_ps(_mm512_loadu_ps(p), _mm512_add_epi32(evens, first),
                                  _mm512_loadu_ps(p + 16));
  }
  static __m256 high_half(Vec v) { return _mm512_extractf32x8_ps(v, 1); }
  static Vec widen(__m256i bf16) {
    return _mm512_castsi512_ps(_mm512_slli_epi32(_mm512_cvtepu16_epi32(bf16), 16));
  }
  // float_to_bf16 of base/float16.h.
  static __m256i narrow(Vec v) {
    const __m512i bits = _mm512_castps_si512(v);
    const __m512i high = _mm512_srli_epi32(bits, 16);
    const __m512i bias =
        _mm512_add_epi32(_mm512_set1_epi32(0x7fff), _mm512_and_si512(high, _mm512_set1_epi32(1)));
    const __m512i rounded = _mm512_srli_epi32(_mm512_add_epi32(bits, bias), 16);
    const __m512i quiet = _mm512_or_si512(high, _mm512_set1_epi32(0x40));
    const __mmask16 nan = _mm512_cmp_ps_mask(v, v, _CMP_UNORD_Q);
    return _mm512_cvtepi32_epi16(_mm512_mask_blend_epi32(nan, rounded, quiet));
  }
};

// `linear` over bf16 weights rounds its activations to bf16 and multiplies pairs: half the instructions of a
// product, and less precise. vdpbf16ps flushes subnormal inputs and results to zero. Processors that have it
// have AVX512-VNNI too, which multiplies pairs of integers and adds them to a sum at once.
struct Avx512Bf16 : Avx512 {
  static Vec dot_pair(Vec acc, const Bf16* line, uint32_t pair) {
    const __m512i weights = _mm512_loadu_si512(line);
    return _mm512_dpbf16_ps(acc, reinterpret_cast<__m512bh>(weights),
                            reinterpret_cast<__m512bh>(_mm512_set1_epi32(static_cast<int>(pair))));
  }
  static Words dot_words(Words acc, Words w, uint32_t pair) {
    return _mm512_dpwssd_epi32(acc, w, _mm512_set1_epi32(static_cast<int>(pair)));
  }
};

}  // namespace plow::x86_64
