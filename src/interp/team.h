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

// Only where a warp of 32 lanes does: A of 16 x 16 by B of 16 x 8, both bf16, added to C of 16 x 8 in f32. Of row g =
// l / 4, lane l gives columns 4 (l % 4) to 4 (l % 4) + 3 of A, two to a word with the lower half first: a[0] and a[2] of
// row g, a[1] and a[3] of row g + 8; and as b0 and b1 those rows of column g of B. It holds C[g + 8 u][2 (l % 4) + i] as
// c[2 u + i], u and i 0 and 1. A row of C depends on nothing but that row of A.
template <class B>
concept HasWarpUnit = HasLanes<B> && requires(const uint32_t (&a)[4], uint32_t b, float (&c)[4], uint32_t (&to)[4]) {
  B::kWaves;          // of a team
  B::kMatrixHeadDim;  // most columns of a head of which a warp's registers hold 16 rows and 64 scores of each
  B::multiply_add(a, b, b, c);
  typename B::TeamAddress;                               // of the team's memory, to which bytes can be added
  B::template load_team<16>(B::team_address(to), to);  // 16 bytes from that many behind an address on
  // Four matrices of 8 x 8 bf16: lane 8 m + r gives where row r of matrix m lies, 16 bytes at a multiple of 16, and lane l
  // gets as word m columns 2 (l % 4) and the next of its row l / 4. Transposed: rows 2 (l % 4) and the next of its column
  // l / 4. Every lane of the warp must call.
  B::template load_matrices<true>(B::team_address(to), to);
};

// Only where four warps of 32 lanes, a group, multiply together: A of 64 x 16 from registers by B of 16 x 256 from the
// team's memory, both bf16, added to C of 64 x 256 in f32. Warp w of the group has rows 16 w to 16 w + 15 of A and C. Of
// rows g = l / 4 and g + 8 of those, lane l gives columns 2 (l % 4) and the next as a[0] and a[1], and the columns 8
// behind them as a[2] and a[3], two to a word with the lower half first; it holds columns 8 j + 2 (l % 4) + i as
// c[4 j + 2 u + i] of row g + 8 u. B lies as atoms of abi/layout.h, 8 columns of it an atom, one behind the other from a
// multiple of 1 KiB on; `slice` counts 32 bytes within the atoms' rows. The products are under way until they are awaited:
// till then `a` and `c` are not touched, nor the memory. A row of C depends on nothing but that row of A.
template <class B>
concept HasGroupUnit = HasWarpUnit<B> && requires(const unsigned char* memory, const uint32_t (&a)[4], uint32_t slice,
                                                  float (&c)[128]) {
  B::kGroupThreads;  // the team's first so many
  B::group_begin();  // the group's threads have written registers that it multiplies or adds to
  B::group_multiply_add(a, B::group_operand(memory), slice, true, c);  // false: C is set, not added to
  B::group_commit();            // what was begun since the last is one set of products
  B::template group_await<1>();  // all sets but the last
  B::staged_for_group();  // what this thread staged and awaited will be read by the unit, after the team settles
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
  PLOW_UNROLL_BY(1)
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
  PLOW_UNROLL_BY(1)
  for (uint32_t w = 1; w < n_waves<B>(); ++w) result = op(result, of_wave[w]);
  B::settle();
  return result;
}

// Quad neighbouring elements: one load or store of a thread.
template <class T>
struct alignas(4 * sizeof(T)) QuadOf {
  T value[4];
};
using Quad = QuadOf<float>;

// n elements from `from` on, 1 to 4; the others are 0 and are not read. REQUIRES that `from` is aligned to
// QuadOf<T> where n is 4. Unrolled: an array whose index is not known lies in the threads' local memory.
template <class T>
PLOW_DEVICE QuadOf<T> load_four(const T* from, uint32_t n) {
  if (n == 4) return *reinterpret_cast<const QuadOf<T>*>(from);
  QuadOf<T> four{};
  PLOW_UNROLL
  for (uint32_t i = 0; i < 3; ++i) {
    if (i < n) four.value[i] = from[i];
  }
  return four;
}

template <class T>
PLOW_DEVICE void store_four(T* to, const QuadOf<T>& four, uint32_t n) {
  if (n == 4) {
    *reinterpret_cast<QuadOf<T>*>(to) = four;
    return;
  }
  PLOW_UNROLL
  for (uint32_t i = 0; i < 3; ++i) {
    if (i < n) to[i] = four.value[i];
  }
}

// f of each of the four, and of each with its neighbour in `b`. What is loaded is turned into floats here and
// not by the load, so that a load does not wait for the one before it.
template <class T, class F>
PLOW_DEVICE Quad map_four(const QuadOf<T>& a, const F& f) {
  Quad out;
  PLOW_UNROLL
  for (uint32_t i = 0; i < 4; ++i) out.value[i] = f(to_float(a.value[i]));
  return out;
}
template <class T, class U, class F>
PLOW_DEVICE Quad map_four(const QuadOf<T>& a, const QuadOf<U>& b, const F& f) {
  Quad out;
  PLOW_UNROLL
  for (uint32_t i = 0; i < 4; ++i) out.value[i] = f(to_float(a.value[i]), to_float(b.value[i]));
  return out;
}

// arena_row() of a tensor, of which memory is asked once.
struct ActivationRows {
  float* first;
  size_t stride;  // in floats

  PLOW_DEVICE_MEMBER float* row(uint32_t r) const { return first + r * stride; }
};
PLOW_DEVICE ActivationRows activation_rows(const BodyContext& ctx, const TensorEntry& tensor) {
  return {arena_row(ctx, tensor, 0), tensor.row_stride / sizeof(float)};
}

// Shares `width` pieces of each of `n_runs` runs out over the team: load(run, piece) -> what it loaded, for
// kAtOnce pieces, then store(run, piece, loaded) for each of them. So all loads of a thread's pieces are on
// their way before the first is waited for. No division a piece, and none at all where there is one run.
template <class B, uint32_t kAtOnce, class Load, class Store>
PLOW_DEVICE void each_piece(uint32_t n_runs, uint32_t width, const Load& load, const Store& store) {
  const uint32_t n = n_runs * width, threads = B::n_threads();
  const bool one = n_runs == 1;
  uint32_t run = one ? 0 : B::thread() / width, piece = B::thread() - run * width;
  const uint32_t runs_further = one ? 0 : threads / width, pieces_further = threads - runs_further * width;
  PLOW_UNROLL_BY(1)
  for (uint32_t i = B::thread(); i < n; i += kAtOnce * threads) {
    decltype(load(0u, 0u)) loaded[kAtOnce] = {};
    uint32_t runs[kAtOnce], pieces[kAtOnce];
    PLOW_UNROLL
    for (uint32_t j = 0; j < kAtOnce; ++j) {
      runs[j] = run;
      pieces[j] = piece;
      if (i + j * threads < n) loaded[j] = load(run, piece);
      run += runs_further;
      piece += pieces_further;
      if (piece >= width && !one) piece -= width, ++run;
    }
    PLOW_UNROLL
    for (uint32_t j = 0; j < kAtOnce; ++j) {
      if (i + j * threads < n) store(runs[j], pieces[j], loaded[j]);
    }
  }
}

// The same over the packet's rows and columns by four columns: load(row, column, n) and store(row, column, n,
// loaded), where n is 4, or fewer at the last columns of a row. REQUIRES an operator that is cut by a
// multiple of 4 columns.
template <class B, class Load, class Store>
PLOW_DEVICE void each_four(const BodyContext& ctx, const Packet& packet, uint32_t row_tile, uint32_t cols,
                           const Load& load, const Store& store) {
  constexpr uint32_t kAtOnce = 4;  // with two inputs, eight loads of 16 bytes
  const Range rows = packet_rows(ctx, packet, row_tile);
  for_columns(packet, cols, [&](uint32_t begin, uint32_t end) {
    each_piece<B, kAtOnce>(
        rows.end - rows.begin, ceil_div(end - begin, 4),
        [&](uint32_t run, uint32_t piece) {
          const uint32_t c = begin + 4 * piece;
          return load(rows.begin + run, c, min_u32(4, end - c));
        },
        [&](uint32_t run, uint32_t piece, const auto& loaded) {
          const uint32_t c = begin + 4 * piece;
          store(rows.begin + run, c, min_u32(4, end - c), loaded);
        });
  });
}

// out = f(x), element by element.
template <class B, class F>
PLOW_DEVICE void map_elements(const BodyContext& ctx, const Packet& packet, uint32_t row_tile,
                              const TensorEntry& x, const TensorEntry& out, const F& f) {
  const ActivationRows from = activation_rows(ctx, x), to = activation_rows(ctx, out);
  each_four<B>(
      ctx, packet, row_tile, out.cols,
      [&](uint32_t row, uint32_t c, uint32_t n) { return load_four(from.row(row) + c, n); },
      [&](uint32_t row, uint32_t c, uint32_t n, const Quad& loaded) {
        store_four(to.row(row) + c, map_four(loaded, f), n);
      });
}

// out = f(x, y), element by element; y(row) is where y's row begins.
template <class B, class Y, class F>
PLOW_DEVICE void map_elements(const BodyContext& ctx, const Packet& packet, uint32_t row_tile,
                              const TensorEntry& x, const Y& y, const TensorEntry& out, const F& f) {
  const ActivationRows from = activation_rows(ctx, x), to = activation_rows(ctx, out);
  using Second = decltype(load_four(y(0u), 0u));
  struct Both {
    Quad x;
    Second y;
  };
  each_four<B>(
      ctx, packet, row_tile, out.cols,
      [&](uint32_t row, uint32_t c, uint32_t n) {
        return Both{load_four(from.row(row) + c, n), load_four(y(row) + c, n)};
      },
      [&](uint32_t row, uint32_t c, uint32_t n, const Both& loaded) {
        store_four(to.row(row) + c, map_four(loaded.x, loaded.y, f), n);
      });
}

// each_piece() over `width` pieces of every head of the packet: load(row, column, piece) and store(row,
// column, piece, loaded), `column` the head's first.
template <class B, uint32_t kAtOnce, class Load, class Store>
PLOW_DEVICE void each_head_piece(const BodyContext& ctx, const Packet& packet, uint32_t row_tile,
                                 uint32_t cols, uint32_t head_dim, uint32_t width, const Load& load,
                                 const Store& store) {
  const Range rows = packet_rows(ctx, packet, row_tile);
  const uint32_t n_rows = rows.end - rows.begin;
  for_columns(packet, cols, [&](uint32_t begin, uint32_t end) {
    const uint32_t heads = (end - begin) / head_dim;
    const auto row_of = [&](uint32_t run) { return n_rows == 1 ? 0 : run / heads; };
    const auto column_of = [&](uint32_t run) { return begin + (run - row_of(run) * heads) * head_dim; };
    each_piece<B, kAtOnce>(
        n_rows * heads, width,
        [&](uint32_t run, uint32_t piece) { return load(rows.begin + row_of(run), column_of(run), piece); },
        [&](uint32_t run, uint32_t piece, const auto& loaded) {
          store(rows.begin + row_of(run), column_of(run), piece, loaded);
        });
  });
}

}  // namespace plow::dev
