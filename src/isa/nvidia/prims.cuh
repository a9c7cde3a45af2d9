// The primitives of prims.h and team.h on NVIDIA GPUs. For nvcc only.
#pragma once

#define PLOW_DEVICE static __device__ inline
#define PLOW_UNROLL _Pragma("unroll")
#define PLOW_PRAGMA(text) _Pragma(#text)
#define PLOW_UNROLL_BY(n) PLOW_PRAGMA(unroll n)
#define PLOW_DEVICE_MEMBER __device__ inline
// Not inlined: so each body has registers and spills of its own that the build can look at.
#define PLOW_DEVICE_BODY static __device__ __noinline__

#include "interp/team.h"

namespace plow::nvidia {

template <uint32_t kThreadsOfBlock>
struct Block {
  static constexpr uint32_t kLanes = 32;
  using Vec = float;
  using Mask = bool;

  static __device__ uint32_t thread() { return threadIdx.x; }
  static __device__ constexpr uint32_t n_threads() { return kThreadsOfBlock; }
  static __device__ void settle() { __syncthreads(); }
  static __device__ void settle_wave() { __syncwarp(); }
  static __device__ uint32_t agree(uint32_t value) {
    __shared__ uint32_t agreed;
    if (threadIdx.x == 0) agreed = value;
    __syncthreads();
    const uint32_t result = agreed;
    __syncthreads();
    return result;
  }
  static __device__ bool all(bool value) { return __syncthreads_and(value) != 0; }
  template <class T>
  static __device__ T lane_xor(T value, uint32_t mask) {
    return __shfl_xor_sync(0xffffffffu, value, static_cast<int>(mask));
  }
  static __device__ uint64_t lane_xor(uint64_t value, uint32_t mask) {
    return __shfl_xor_sync(0xffffffffu, static_cast<unsigned long long>(value), static_cast<int>(mask));
  }

  // PTX ISA, memory consistency model: acquire and release at the scope of the device (gpu) or of all (sys).
  static __device__ uint32_t load_acquire(const uint32_t* word) {
    uint32_t value;
    asm volatile("ld.acquire.gpu.global.u32 %0, [%1];"
                 : "=r"(value)
                 : "l"(__cvta_generic_to_global(word))
                 : "memory");
    return value;
  }
  static __device__ uint32_t poll(const uint32_t* word) {
    uint32_t value;
    asm volatile("ld.relaxed.gpu.global.u32 %0, [%1];"
                 : "=r"(value)
                 : "l"(__cvta_generic_to_global(word))
                 : "memory");
    return value;
  }
  static __device__ void polled() { asm volatile("fence.acq_rel.gpu;" ::: "memory"); }
  static __device__ void store_release(uint32_t* word, uint32_t value) {
    asm volatile("st.release.gpu.global.u32 [%0], %1;" ::"l"(__cvta_generic_to_global(word)), "r"(value)
                 : "memory");
  }
  static __device__ void store_relaxed(uint32_t* word, uint32_t value) {
    asm volatile("st.relaxed.gpu.global.u32 [%0], %1;" ::"l"(__cvta_generic_to_global(word)), "r"(value)
                 : "memory");
  }
  static __device__ void add_release(uint32_t* word, uint32_t value) {
    asm volatile("red.release.gpu.global.add.u32 [%0], %1;" ::"l"(__cvta_generic_to_global(word)), "r"(value)
                 : "memory");
  }
  static __device__ bool set_if_zero(uint32_t* word, uint32_t value) {
    return atomicCAS(word, 0u, value) == 0;
  }
  static __device__ void add_relaxed(uint32_t* word, uint32_t value) { atomicAdd(word, value); }
  static __device__ void or_relaxed(uint32_t* word, uint32_t value) { atomicOr(word, value); }
  static __device__ uint32_t load_acquire_system(const uint32_t* word) {
    uint32_t value;
    asm volatile("ld.acquire.sys.u32 %0, [%1];" : "=r"(value) : "l"(word) : "memory");
    return value;
  }
  static __device__ void store_release_system(uint32_t* word, uint32_t value) {
    asm volatile("st.release.sys.u32 [%0], %1;" ::"l"(word), "r"(value) : "memory");
  }

  static __device__ void pause() {}
  static __device__ void yield() {}
  static __device__ uint64_t clock_ns() {
    uint64_t now;
    asm volatile("mov.u64 %0, %%globaltimer;" : "=l"(now));
    return now;
  }
  static __device__ void trap() { __trap(); }

  static __device__ float zero() { return 0; }
  static __device__ float set(float x) { return x; }
  static __device__ float add(float a, float b) { return __fadd_rn(a, b); }
  static __device__ float sub(float a, float b) { return __fsub_rn(a, b); }
  static __device__ float mul(float a, float b) { return __fmul_rn(a, b); }
  static __device__ float div(float a, float b) { return __fdiv_rn(a, b); }
  static __device__ float fma(float a, float b, float c) { return __fmaf_rn(a, b, c); }
  static __device__ float max(float a, float b) { return a > b ? a : b; }
  static __device__ float min(float a, float b) { return a < b ? a : b; }
  static __device__ float abs(float x) { return fabsf(x); }
  static __device__ float copy_sign(float magnitude, float sign) { return copysignf(magnitude, sign); }
  static __device__ float round(float x) { return rintf(x); }
  // 2^power as a float's bits: power is an integer in [-126, 127].
  static __device__ float times_power(float x, float power) {
    return __fmul_rn(x, __int_as_float((static_cast<int>(power) + 127) << 23));
  }
  static __device__ bool less(float a, float b) { return a < b; }
  static __device__ float select(bool mask, float a, float b) { return mask ? a : b; }
  static __device__ void sin_cos(double x, double* sine, double* cosine) { ::sincos(x, sine, cosine); }
  static __device__ double log(double x) { return ::log(x); }
  static __device__ float sqrt(float x) { return __fsqrt_rn(x); }
};

}  // namespace plow::nvidia
