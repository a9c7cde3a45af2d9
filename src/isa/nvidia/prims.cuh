// The primitives of prims.h and team.h on NVIDIA GPUs. For nvcc only.
#pragma once

#define PLOW_DEVICE static __device__ inline
#define PLOW_UNROLL _Pragma("unroll")
#define PLOW_PRAGMA(text) _Pragma(#text)
#define PLOW_UNROLL_BY(n) PLOW_PRAGMA(unroll n)
#define PLOW_DEVICE_MEMBER __device__ inline
// Each body is a compilation of its own, of which it is all (body.cu).
#define PLOW_DEVICE_BODY static __device__ __forceinline__
#define PLOW_DEVICE_CALL static __device__ __noinline__
// Sixteen, in which the kernel keeps what it knows of its worker while a body runs (CUDA C++ programming guide 13.0,
// custom ABI pragmas). By the default a body would have to save half of all.
#define PLOW_KEEPS_FEW_REGISTERS _Pragma("nv_abi preserve_n_data(16) preserve_n_control(11)")

#include "interp/team.h"

namespace plow::nvidia {

// The team is the block's first kThreadsOfTeam threads; a tape's warp, if there is one, comes after them, so
// that what the team meets at is a barrier with a number and a count (PTX ISA, barrier).
template <uint32_t kThreadsOfTeam>
struct Block {
  static constexpr uint32_t kLanes = 32, kWaves = kThreadsOfTeam / kLanes;
  static constexpr uint32_t kMatrixHeadDim = 64;  // 128 spill 25 registers on sm_120
  using Vec = float;
  using Mask = bool;

  static __device__ uint32_t thread() { return threadIdx.x; }
  static __device__ constexpr uint32_t n_threads() { return kThreadsOfTeam; }
  // Warps come to their barriers whole, as bar demands: threads that polled different words may have parted.
  static __device__ void settle() {
    __syncwarp();
    asm volatile("bar.sync 1, %0;" ::"n"(kThreadsOfTeam) : "memory");
  }
  static __device__ void settle_wave() { __syncwarp(); }
  static __device__ uint32_t agree(uint32_t value) {
    __shared__ uint32_t agreed;
    if (threadIdx.x == 0) agreed = value;
    settle();
    const uint32_t result = agreed;
    settle();
    return result;
  }
  static __device__ bool all(bool value) {
    uint32_t result;
    __syncwarp();
    asm volatile(
        "{\n.reg .pred p, q;\nsetp.ne.u32 p, %1, 0;\nbar.red.and.pred q, 1, %2, p;\nselp.u32 %0, 1, 0, q;\n}"
        : "=r"(result)
        : "r"(value ? 1u : 0u), "n"(kThreadsOfTeam)
        : "memory");
    return result != 0;
  }
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

  // The columns of A and the rows of B in another order than the instruction's, the same for both: a lane's four are
  // neighbours.
  static __device__ void multiply_add(const uint32_t (&a)[4], uint32_t b0, uint32_t b1, float (&c)[4]) {
    asm volatile(
        "mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32 {%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, "
        "{%0, %1, %2, %3};"
        : "+f"(c[0]), "+f"(c[1]), "+f"(c[2]), "+f"(c[3])
        : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b0), "r"(b1));
  }

  // Of the team's memory: addresses of 32 bits, and offsets that are part of the instruction.
  using TeamAddress = uint32_t;
  static __device__ TeamAddress team_address(const void* p) {
    return static_cast<TeamAddress>(__cvta_generic_to_shared(p));
  }
  template <uint32_t kOffset>
  static __device__ void load_team(TeamAddress from, uint32_t (&to)[4]) {
    asm volatile("ld.shared.v4.u32 {%0, %1, %2, %3}, [%4 + %5];"
                 : "=r"(to[0]), "=r"(to[1]), "=r"(to[2]), "=r"(to[3])
                 : "r"(from), "n"(kOffset)
                 : "memory");
  }

  // PTX ISA, ldmatrix.
  template <bool kTransposed>
  static __device__ void load_matrices(TeamAddress from, uint32_t (&to)[4]) {
    if constexpr (kTransposed) {
      asm volatile("ldmatrix.sync.aligned.m8n8.x4.trans.shared.b16 {%0, %1, %2, %3}, [%4];"
                   : "=r"(to[0]), "=r"(to[1]), "=r"(to[2]), "=r"(to[3])
                   : "r"(from)
                   : "memory");
    } else {
      asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0, %1, %2, %3}, [%4];"
                   : "=r"(to[0]), "=r"(to[1]), "=r"(to[2]), "=r"(to[3])
                   : "r"(from)
                   : "memory");
    }
  }

  template <uint32_t kBytes>
  static __device__ void stage(void* to, const void* from, bool exists) {
    asm volatile("cp.async.ca.shared.global [%0], [%1], %2, %3;" ::"r"(
                     static_cast<uint32_t>(__cvta_generic_to_shared(to))),
                 "l"(__cvta_generic_to_global(from)), "n"(kBytes), "r"(exists ? kBytes : 0u)
                 : "memory");
  }
  static __device__ void commit_stage() { asm volatile("cp.async.commit_group;" ::: "memory"); }
  static __device__ void await_stage(bool but_the_last) {
    if (but_the_last) {
      asm volatile("cp.async.wait_group 1;" ::: "memory");
    } else {
      asm volatile("cp.async.wait_group 0;" ::: "memory");
    }
  }

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
  // Of a float of this size the last bit is 1, so that adding it rounds; rintf and conversions have a fraction of an
  // addition's rate.
  static constexpr float kWholeNumbers = 0x1.8p+23f;
  static __device__ float round(float x) { return __fadd_rn(__fadd_rn(x, kWholeNumbers), -kWholeNumbers); }
  // 2^power as a float's bits: power is an integer in [-126, 127], and the sum ends in the nine bits of power + 127.
  static __device__ float times_power(float x, float power) {
    return __fmul_rn(x, __int_as_float(__float_as_int(__fadd_rn(power, kWholeNumbers + 127)) << 23));
  }
  static __device__ bool less(float a, float b) { return a < b; }
  static __device__ float select(bool mask, float a, float b) { return mask ? a : b; }
  static __device__ void sin_cos(double x, double* sine, double* cosine) { ::sincos(x, sine, cosine); }
  static __device__ double log(double x) { return ::log(x); }
  static __device__ float sqrt(float x) { return __fsqrt_rn(x); }
};

// A team with a tape, by bulk copies to shared memory (sm_90 and later).
template <uint32_t kThreadsOfTeam, uint32_t kSlots>
struct TapeBlock : Block<kThreadsOfTeam> {
  static constexpr uint32_t kTapeSlots = kSlots;
  using Barrier = uint64_t;

  static __device__ uint32_t in_shared(const void* p) { return static_cast<uint32_t>(__cvta_generic_to_shared(p)); }
  static __device__ void make_barrier(Barrier* barrier, uint32_t arrivals) {
    asm volatile("mbarrier.init.shared::cta.b64 [%0], %1;\nfence.mbarrier_init.release.cluster;" ::"r"(
                     in_shared(barrier)),
                 "r"(arrivals)
                 : "memory");
  }
  static __device__ void drop_barrier(Barrier* barrier) {
    asm volatile("mbarrier.inval.shared::cta.b64 [%0];" ::"r"(in_shared(barrier)) : "memory");
  }
  static __device__ void arrive(Barrier* barrier) {
    asm volatile("mbarrier.arrive.shared::cta.b64 _, [%0];" ::"r"(in_shared(barrier)) : "memory");
  }
  static __device__ bool passed(Barrier* barrier, uint32_t parity) {
    uint32_t result;
    asm volatile(
        "{\n.reg .pred p;\nmbarrier.try_wait.parity.shared::cta.b64 p, [%1], %2;\nselp.u32 %0, 1, 0, p;\n}"
        : "=r"(result)
        : "r"(in_shared(barrier)), "r"(parity)
        : "memory");
    return result != 0;
  }
  // Read once a step by one multiprocessor: first to leave L2.
  static __device__ void copy_piece(unsigned char* to, const unsigned char* from, uint32_t bytes,
                                    Barrier* barrier) {
    uint64_t policy;
    asm volatile("createpolicy.fractional.L2::evict_first.b64 %0, 1.0;" : "=l"(policy));
    asm volatile("mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], %1;" ::"r"(in_shared(barrier)), "r"(bytes)
                 : "memory");
    asm volatile(
        "cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes.L2::cache_hint [%0], [%1], %2, [%3], "
        "%4;" ::"r"(in_shared(to)),
        "l"(__cvta_generic_to_global(from)), "r"(bytes), "r"(in_shared(barrier)), "l"(policy)
        : "memory");
  }
  static __device__ uint32_t team_word(const uint32_t* word) {
    uint32_t value;
    asm volatile("ld.acquire.cta.shared::cta.u32 %0, [%1];" : "=r"(value) : "r"(in_shared(word)) : "memory");
    return value;
  }
  static __device__ void set_team_word(uint32_t* word, uint32_t value) {
    asm volatile("st.release.cta.shared::cta.u32 [%0], %1;" ::"r"(in_shared(word)), "r"(value) : "memory");
  }
  static __device__ uint32_t from_lane(uint32_t value, uint32_t lane) {
    return __shfl_sync(0xffffffffu, value, static_cast<int>(lane));
  }
  static __device__ uint64_t from_lane(uint64_t value, uint32_t lane) {
    return __shfl_sync(0xffffffffu, static_cast<unsigned long long>(value), static_cast<int>(lane));
  }
};

// Such a team where a warpgroup multiplies (sm_90a only).
template <uint32_t kThreadsOfTeam, uint32_t kSlots>
struct GroupBlock : TapeBlock<kThreadsOfTeam, kSlots> {
  static constexpr uint32_t kGroupThreads = 128;
  static constexpr uint32_t kMatrixHeadDim = 128;
  static constexpr uint32_t kSliceUnits = 2;  // of 16 bytes

  // PTX ISA, asynchronous warpgroup instructions: the matrix descriptor of an operand in shared memory, 128-byte swizzle; rows of eight 1 KiB apart.
  static __device__ uint64_t group_operand(const void* p) {
    constexpr uint64_t kRowsOfEightApart = uint64_t{1024 / 16} << 32, kNotUsed = uint64_t{1} << 16, kSwizzle = uint64_t{1} << 62;
    const auto address = static_cast<uint32_t>(__cvta_generic_to_shared(p));
    return (address & 0x3ffffu) / 16 | kNotUsed | kRowsOfEightApart | kSwizzle;
  }
  static __device__ void group_begin() { asm volatile("wgmma.fence.sync.aligned;" ::: "memory"); }
  static __device__ void group_commit() { asm volatile("wgmma.commit_group.sync.aligned;" ::: "memory"); }
  template <uint32_t kSets>
  static __device__ void group_await() {
    asm volatile("wgmma.wait_group.sync.aligned %0;" ::"n"(kSets) : "memory");
  }
  static __device__ void staged_for_group() { asm volatile("fence.proxy.async.shared::cta;" ::: "memory"); }
  static __device__ void group_multiply_add(const uint32_t (&a)[4], uint64_t operand, uint32_t slice, bool add, float (&c)[128]) {
    asm volatile(
        "{\n.reg .pred add;\nsetp.ne.u32 add, %133, 0;\n"
        "wgmma.mma_async.sync.aligned.m64n256k16.f32.bf16.bf16 {"
        "%0, %1, %2, %3, %4, %5, %6, %7, %8, %9, %10, %11, %12, %13, %14, %15, "
        "%16, %17, %18, %19, %20, %21, %22, %23, %24, %25, %26, %27, %28, %29, %30, %31, "
        "%32, %33, %34, %35, %36, %37, %38, %39, %40, %41, %42, %43, %44, %45, %46, %47, "
        "%48, %49, %50, %51, %52, %53, %54, %55, %56, %57, %58, %59, %60, %61, %62, %63, "
        "%64, %65, %66, %67, %68, %69, %70, %71, %72, %73, %74, %75, %76, %77, %78, %79, "
        "%80, %81, %82, %83, %84, %85, %86, %87, %88, %89, %90, %91, %92, %93, %94, %95, "
        "%96, %97, %98, %99, %100, %101, %102, %103, %104, %105, %106, %107, %108, %109, %110, %111, "
        "%112, %113, %114, %115, %116, %117, %118, %119, %120, %121, %122, %123, %124, %125, %126, %127}, "
        "{%128, %129, %130, %131}, %132, add, 1, 1, 0;\n}"
        : "+f"(c[0]), "+f"(c[1]), "+f"(c[2]), "+f"(c[3]), "+f"(c[4]), "+f"(c[5]), "+f"(c[6]), "+f"(c[7]),
          "+f"(c[8]), "+f"(c[9]), "+f"(c[10]), "+f"(c[11]), "+f"(c[12]), "+f"(c[13]), "+f"(c[14]), "+f"(c[15]),
          "+f"(c[16]), "+f"(c[17]), "+f"(c[18]), "+f"(c[19]), "+f"(c[20]), "+f"(c[21]), "+f"(c[22]), "+f"(c[23]),
          "+f"(c[24]), "+f"(c[25]), "+f"(c[26]), "+f"(c[27]), "+f"(c[28]), "+f"(c[29]), "+f"(c[30]), "+f"(c[31]),
          "+f"(c[32]), "+f"(c[33]), "+f"(c[34]), "+f"(c[35]), "+f"(c[36]), "+f"(c[37]), "+f"(c[38]), "+f"(c[39]),
          "+f"(c[40]), "+f"(c[41]), "+f"(c[42]), "+f"(c[43]), "+f"(c[44]), "+f"(c[45]), "+f"(c[46]), "+f"(c[47]),
          "+f"(c[48]), "+f"(c[49]), "+f"(c[50]), "+f"(c[51]), "+f"(c[52]), "+f"(c[53]), "+f"(c[54]), "+f"(c[55]),
          "+f"(c[56]), "+f"(c[57]), "+f"(c[58]), "+f"(c[59]), "+f"(c[60]), "+f"(c[61]), "+f"(c[62]), "+f"(c[63]),
          "+f"(c[64]), "+f"(c[65]), "+f"(c[66]), "+f"(c[67]), "+f"(c[68]), "+f"(c[69]), "+f"(c[70]), "+f"(c[71]),
          "+f"(c[72]), "+f"(c[73]), "+f"(c[74]), "+f"(c[75]), "+f"(c[76]), "+f"(c[77]), "+f"(c[78]), "+f"(c[79]),
          "+f"(c[80]), "+f"(c[81]), "+f"(c[82]), "+f"(c[83]), "+f"(c[84]), "+f"(c[85]), "+f"(c[86]), "+f"(c[87]),
          "+f"(c[88]), "+f"(c[89]), "+f"(c[90]), "+f"(c[91]), "+f"(c[92]), "+f"(c[93]), "+f"(c[94]), "+f"(c[95]),
          "+f"(c[96]), "+f"(c[97]), "+f"(c[98]), "+f"(c[99]), "+f"(c[100]), "+f"(c[101]), "+f"(c[102]), "+f"(c[103]),
          "+f"(c[104]), "+f"(c[105]), "+f"(c[106]), "+f"(c[107]), "+f"(c[108]), "+f"(c[109]), "+f"(c[110]), "+f"(c[111]),
          "+f"(c[112]), "+f"(c[113]), "+f"(c[114]), "+f"(c[115]), "+f"(c[116]), "+f"(c[117]), "+f"(c[118]), "+f"(c[119]),
          "+f"(c[120]), "+f"(c[121]), "+f"(c[122]), "+f"(c[123]), "+f"(c[124]), "+f"(c[125]), "+f"(c[126]), "+f"(c[127])
        : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "l"(operand + slice * kSliceUnits), "r"(add ? 1 : 0));
  }
};

}  // namespace plow::nvidia
