// What bodies are written in where a worker is a team of threads (a block of a GPU): waves of 32 or 64 lanes
// that run together, and memory that the team shares. `B` is a type of static functions; its Vec is one
// float, so the functions of vector_math.h work on a lane's value.
#pragma once

#include "interp/packet_view.h"
#include "interp/prims.h"

namespace plow::dev {

// Elementwise arithmetic of prims.h with a float as Vec.
template <class B>
concept HasLaneMath = requires(float x, bool m) {
  typename B::Vec;
  B::zero();
  B::set(x);
  B::add(x, x);
  B::sub(x, x);
  B::mul(x, x);
  B::div(x, x);
  B::fma(x, x, x);
  B::max(x, x);
  B::min(x, x);
  B::abs(x);
  B::copy_sign(x, x);
  B::round(x);
  B::times_power(x, x);
  B::less(x, x);
  B::select(m, x, x);
};

// Lanes of a wave see each other's values. Every lane of the wave must call.
template <class B>
concept HasLanes = requires(float f, double d, uint32_t u, uint32_t mask) {
  B::kLanes;             // 32 or 64
  B::lane_xor(f, mask);  // -> the value of lane ^ mask; mask < kLanes
  B::lane_xor(d, mask);
  B::lane_xor(u, mask);
  B::settle_wave();  // settle() among the lanes of a wave
};

// Words that several threads of a team change at once.
template <class B>
concept HasTeamWords = requires(uint32_t* word, uint32_t value) {
  B::add_relaxed(word, value);
  B::or_relaxed(word, value);
};

template <class B>
concept IsTeam =
    IsWorker<B> && HasLaneMath<B> && HasLanes<B> && HasTeamWords<B> && HasScalarMath<B> && requires {
  B::trap();
};

// Only where a wave of 64 lanes multiplies tiles by a unit for matrices: A of 16 x 32 by B of 32 x 16, both
// bf16, added to C of 16 x 16 in f32. Lane l gives A[l % 16][8 (l / 16) + i] and B[8 (l / 16) + i][l % 16], i
// from 0 to 7, two to a word with the lower half first, and holds C[4 (l / 16) + i][l % 16], i from 0 to 3.
// Every lane of the wave must call. A column of C depends on nothing but that column of B.
template <class B>
concept HasMatrixUnit = HasLanes<B> && requires(const uint32_t (&words)[4], float (&c)[4]) {
  B::multiply_add(words, words, c);
};

// Only where a warp of 32 lanes does: A of 16 x 32 by B of 32 x 8, both bf16, added to C of 16 x 8 in f32. Lane
// l gives A[l / 4 + 8 u][8 (l % 4) + i] as words of a[u] and B[8 (l % 4) + i][l / 4], i from 0 to 7, two to a
// word with the lower half first, and holds C[l / 4 + 8 u][2 (l % 4) + i] as c[2 u + i], u and i 0 and 1. A
// row of C depends on nothing but that row of A.
template <class B>
concept HasWarpUnit = HasLanes<B> && requires(const uint32_t (&a)[2][4], const uint32_t (&b)[4], float (&c)[4]) {
  B::kWaves;  // of a team
  B::multiply_add(a, b, c);
};

template <class B>
PLOW_DEVICE uint32_t lane() {
  return B::thread() % B::kLanes;
}
template <class B>
PLOW_DEVICE uint32_t wave() {
  return B::thread() / B::kLanes;
}
template <class B>
PLOW_DEVICE uint32_t n_waves() {
  return B::n_threads() / B::kLanes;
}

struct Sum {
  template <class T>
  PLOW_DEVICE_MEMBER T operator()(T a, T b) const {
    return a + b;
  }
};
struct Largest {
  template <class T>
  PLOW_DEVICE_MEMBER T operator()(T a, T b) const {
    return a > b ? a : b;
  }
};

// `op` over groups of `width` neighbouring lanes (a power of two); every lane gets its group's result.
template <class B, class T, class Op>
PLOW_DEVICE T reduce_lanes(T value, uint32_t width, const Op& op) {
  for (uint32_t mask = width / 2; mask > 0; mask /= 2) value = op(value, B::lane_xor(value, mask));
  return value;
}

// Bytes of the team's memory that reductions use: a value a wave.
constexpr uint32_t kReduceBytes = 512;

// `op` over the whole team, waves in ascending order; every thread gets the result. `shared` is kReduceBytes
// of the team's memory that nothing else uses.
template <class B, class T, class Op>
PLOW_DEVICE T reduce_team(T value, const Op& op, unsigned char* shared) {
  T* of_wave = reinterpret_cast<T*>(shared);
  value = reduce_lanes<B>(value, B::kLanes, op);
  if (lane<B>() == 0) of_wave[wave<B>()] = value;
  B::settle();
  T result = of_wave[0];
  for (uint32_t w = 1; w < n_waves<B>(); ++w) result = op(result, of_wave[w]);
  B::settle();
  return result;
}

// Calls f(row, column) for every element of the packet's rows and columns, shared out over the threads:
// neighbours get neighbouring columns.
template <class B, class F>
PLOW_DEVICE void each_element(const BodyContext& ctx, const Packet& packet, uint32_t row_tile, uint32_t cols,
                              const F& f) {
  const Range rows = packet_rows(ctx, packet, row_tile);
  for_columns(packet, cols, [&](uint32_t begin, uint32_t end) {
    const uint32_t width = end - begin, n = width * (rows.end - rows.begin);
    for (uint32_t i = B::thread(); i < n; i += B::n_threads()) f(rows.begin + i / width, begin + i % width);
  });
}

}  // namespace plow::dev
