// The primitives of prims.h and team.h on AMD GPUs of CDNA 3 and 4, in plain C++ for clang with
// --target=amdgcn-amd-amdhsa: no HIP, no device library. Included first, before anything of interp/.
#pragma once

#define PLOW_UNROLL _Pragma("unroll")
#define PLOW_PRAGMA(text) _Pragma(#text)
#define PLOW_UNROLL_BY(n) PLOW_PRAGMA(unroll n)
// Not inlined: so each body has registers and spills of its own that the build can look at.
#define PLOW_DEVICE_BODY static __attribute__((noinline))

#include "interp/scalar_math.h"
#include "interp/team.h"

// Global memory, LDS and constants (LLVM's AMDGPU back end, "Address Spaces").
#define PLOW_GLOBAL __attribute__((address_space(1)))
#define PLOW_LDS __attribute__((address_space(3)))
#define PLOW_CONSTANT __attribute__((address_space(4)))

namespace plow::amd {

// Of a workgroup's own LDS; not initialised, as LDS never is.
__attribute__((loader_uninitialized)) static PLOW_LDS uint32_t agreed_word;
__attribute__((loader_uninitialized)) static PLOW_LDS uint32_t waves_that_gave_true[16];

// Lane ^ kMask by the data path that needs no memory: DPP within quads and rows of 16, ds_swizzle within 32
// lanes (CDNA 3 ISA, sections 6.5 "DPP" and 11.2 "ds_swizzle_b32": BitMode with the xor mask in bits 10-14).
// Lanes 32 apart need the permute through LDS's crossbar.
static inline uint32_t lane_xor_word(uint32_t word, uint32_t mask) {
  const int value = static_cast<int>(word);
  switch (mask) {
    case 1:
      return static_cast<uint32_t>(
          __builtin_amdgcn_mov_dpp(value, 0xb1, 0xf, 0xf, true));  // quad_perm 1,0,3,2
    case 2:
      return static_cast<uint32_t>(
          __builtin_amdgcn_mov_dpp(value, 0x4e, 0xf, 0xf, true));  // quad_perm 2,3,0,1
    case 4:
      return static_cast<uint32_t>(__builtin_amdgcn_ds_swizzle(value, 4 << 10 | 0x1f));
    case 8:
      return static_cast<uint32_t>(__builtin_amdgcn_mov_dpp(value, 0x128, 0xf, 0xf, true));  // row_ror 8
    case 16:
      return static_cast<uint32_t>(__builtin_amdgcn_ds_swizzle(value, 16 << 10 | 0x1f));
    default: {
      const uint32_t lane = __builtin_amdgcn_mbcnt_hi(~0u, __builtin_amdgcn_mbcnt_lo(~0u, 0));
      return static_cast<uint32_t>(__builtin_amdgcn_ds_bpermute(static_cast<int>((lane ^ mask) * 4), value));
    }
  }
}

template <uint32_t kThreadsOfGroup>
struct Group {
  static constexpr uint32_t kLanes = 64;
  using Vec = float;
  using Mask = bool;

  static uint32_t thread() { return __builtin_amdgcn_workitem_id_x(); }
  static constexpr uint32_t n_threads() { return kThreadsOfGroup; }

  // A release at workgroup scope waits for no store to memory, since one compute unit's waves share a cache;
  // but a thread of another wave may signal after the barrier what this wave wrote. So the wave's own stores
  // are waited for here, and the signal's release has only to write the caches back.
  static void settle() {
    __builtin_amdgcn_fence(__ATOMIC_RELEASE, "workgroup");
    __builtin_amdgcn_s_waitcnt(0);  // vmcnt, expcnt and lgkmcnt
    __builtin_amdgcn_s_barrier();
    __builtin_amdgcn_fence(__ATOMIC_ACQUIRE, "workgroup");
  }
  // A wave's lanes run together and its memory instructions are in order: only the compiler must keep them
  // so.
  static void settle_wave() {
    __builtin_amdgcn_fence(__ATOMIC_ACQ_REL, "wavefront");
    __builtin_amdgcn_wave_barrier();
  }
  static uint32_t agree(uint32_t value) {
    if (thread() == 0) agreed_word = value;
    settle();
    const uint32_t result = agreed_word;
    settle();
    return __builtin_amdgcn_readfirstlane(result);
  }
  static bool all(bool value) {
    const bool of_wave = __builtin_amdgcn_ballot_w64(!value) == 0;
    if (thread() % kLanes == 0) waves_that_gave_true[thread() / kLanes] = of_wave;
    settle();
    uint32_t result = 1;
    PLOW_UNROLL
    for (uint32_t w = 0; w < kThreadsOfGroup / kLanes; ++w) result &= waves_that_gave_true[w];
    settle();
    return __builtin_amdgcn_readfirstlane(result) != 0;
  }

  static uint32_t lane_xor(uint32_t value, uint32_t mask) { return lane_xor_word(value, mask); }
  static float lane_xor(float value, uint32_t mask) {
    return __builtin_bit_cast(float, lane_xor_word(__builtin_bit_cast(uint32_t, value), mask));
  }
  static uint64_t lane_xor(uint64_t value, uint32_t mask) {
    const uint32_t low = lane_xor_word(static_cast<uint32_t>(value), mask);
    return uint64_t{lane_xor_word(static_cast<uint32_t>(value >> 32), mask)} << 32 | low;
  }
  static double lane_xor(double value, uint32_t mask) {
    return __builtin_bit_cast(double, lane_xor(__builtin_bit_cast(uint64_t, value), mask));
  }

  // There are no copies that go on by themselves: what is staged is there.
  template <uint32_t kBytes>
  static void stage(void* to, const void* from, bool exists) {
    for (uint32_t i = 0; i < kBytes / sizeof(uint32_t); ++i)
      static_cast<uint32_t*>(to)[i] = exists ? static_cast<const uint32_t*>(from)[i] : 0;
  }
  static void commit_stage() {}
  static void await_stage(bool) {}

  // gfx942's instruction takes half of the columns: a lane's first four of A and B, then its last four. Which
  // columns are multiplied with which is the same for both, so their sum is.
  static void multiply_add(const uint32_t (&a)[4], const uint32_t (&b)[4], float (&c)[4]) {
    typedef float Sums __attribute__((ext_vector_type(4)));
    Sums sums = {c[0], c[1], c[2], c[3]};
#if defined(__gfx950__)
    typedef __bf16 Eight __attribute__((ext_vector_type(8)));
    sums = __builtin_amdgcn_mfma_f32_16x16x32_bf16(__builtin_bit_cast(Eight, a), __builtin_bit_cast(Eight, b),
                                                   sums, 0, 0, 0);
#else
    typedef short Four __attribute__((ext_vector_type(4)));
    typedef uint32_t Two __attribute__((ext_vector_type(2)));
    for (int half = 0; half < 4; half += 2)
      sums = __builtin_amdgcn_mfma_f32_16x16x16bf16_1k(__builtin_bit_cast(Four, Two{a[half], a[half + 1]}),
                                                       __builtin_bit_cast(Four, Two{b[half], b[half + 1]}),
                                                       sums, 0, 0, 0);
#endif
    for (int i = 0; i < 4; ++i) c[i] = sums[i];
  }

  // Scopes of LLVM's AMDGPU memory model: device is its "agent". A release writes the L2 of this die back
  // (buffer_wbl2), an acquire drops what may be stale (buffer_inv).
  static uint32_t load_acquire(const uint32_t* word) {
    return __scoped_atomic_load_n(global(word), __ATOMIC_ACQUIRE, __MEMORY_SCOPE_DEVICE);
  }
  static uint32_t poll(const uint32_t* word) {
    return __scoped_atomic_load_n(global(word), __ATOMIC_RELAXED, __MEMORY_SCOPE_DEVICE);
  }
  static void polled() { __builtin_amdgcn_fence(__ATOMIC_ACQUIRE, "agent"); }
  static void store_release(uint32_t* word, uint32_t value) {
    __scoped_atomic_store_n(global(word), value, __ATOMIC_RELEASE, __MEMORY_SCOPE_DEVICE);
  }
  static void store_relaxed(uint32_t* word, uint32_t value) {
    __scoped_atomic_store_n(global(word), value, __ATOMIC_RELAXED, __MEMORY_SCOPE_DEVICE);
  }
  static void add_release(uint32_t* word, uint32_t value) {
    __scoped_atomic_fetch_add(global(word), value, __ATOMIC_RELEASE, __MEMORY_SCOPE_DEVICE);
  }
  static bool set_if_zero(uint32_t* word, uint32_t value) {
    uint32_t zero = 0;
    return __scoped_atomic_compare_exchange_n(global(word), &zero, value, false, __ATOMIC_ACQ_REL,
                                              __ATOMIC_ACQUIRE, __MEMORY_SCOPE_DEVICE);
  }
  static void add_relaxed(uint32_t* word, uint32_t value) {
    __scoped_atomic_fetch_add(global(word), value, __ATOMIC_RELAXED, __MEMORY_SCOPE_DEVICE);
  }
  static void or_relaxed(uint32_t* word, uint32_t value) {
    __scoped_atomic_fetch_or(global(word), value, __ATOMIC_RELAXED, __MEMORY_SCOPE_DEVICE);
  }
  static uint32_t load_acquire_system(const uint32_t* word) {
    return __scoped_atomic_load_n(global(word), __ATOMIC_ACQUIRE, __MEMORY_SCOPE_SYSTEM);
  }
  static void store_release_system(uint32_t* word, uint32_t value) {
    __scoped_atomic_store_n(global(word), value, __ATOMIC_RELEASE, __MEMORY_SCOPE_SYSTEM);
  }

  static void pause() { __builtin_amdgcn_s_sleep(1); }  // 64 cycles
  static void yield() { __builtin_amdgcn_s_sleep(8); }
  // s_memrealtime counts the reference clock, which is of 100 MHz (CDNA 3 ISA, section 7.4).
  static uint64_t clock_ns() { return 10 * __builtin_readsteadycounter(); }
  [[noreturn]] static void trap() { __builtin_trap(); }

  static float zero() { return 0; }
  static float set(float x) { return x; }
  static float add(float a, float b) { return a + b; }
  static float sub(float a, float b) { return a - b; }
  static float mul(float a, float b) { return a * b; }
  static float div(float a, float b) { return a / b; }
  static float fma(float a, float b, float c) { return __builtin_fmaf(a, b, c); }
  static float max(float a, float b) { return a > b ? a : b; }
  static float min(float a, float b) { return a < b ? a : b; }
  static float abs(float x) { return __builtin_fabsf(x); }
  static float copy_sign(float magnitude, float sign) { return __builtin_copysignf(magnitude, sign); }
  static float round(float x) { return __builtin_rintf(x); }
  // 2^power as a float's bits: power is an integer in [-126, 127].
  static float times_power(float x, float power) {
    return x * __builtin_bit_cast(float, (static_cast<int>(power) + 127) << 23);
  }
  static bool less(float a, float b) { return a < b; }
  static float select(bool mask, float a, float b) { return mask ? a : b; }
  static void sin_cos(double x, double* sine, double* cosine) { dev::sin_cos_f64(x, sine, cosine); }
  static double log(double x) { return dev::log_f64(x); }
  static float sqrt(float x) { return __builtin_sqrtf(x); }

 private:
  // As pointers to global memory: the instructions for any memory would look at LDS, too.
  static PLOW_GLOBAL uint32_t* global(uint32_t* word) { return (PLOW_GLOBAL uint32_t*)word; }
  static const PLOW_GLOBAL uint32_t* global(const uint32_t* word) {
    return (const PLOW_GLOBAL uint32_t*)word;
  }
};

}  // namespace plow::amd
