// Fused bodies against the bodies of the operators that they stand for, bit by bit: those are held to double
// by tests of their own. Products and norms are held to double here too, with the error that each step may
// make.
#include "isa/x86_64/block_rig.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <functional>

namespace plow {
namespace {

constexpr double kUlp = 0x1p-24;
constexpr float kEps = 1e-5f, kOffset = 1.0f;

uint32_t f32_bits(float value) { return std::bit_cast<uint32_t>(value); }

struct Columns {
  uint32_t tile_cols, first = 0, count = 0, stride = 1;  // count 0: all
};

// Runs one operator over tensors of the rig. The last operand is its output.
void call(BodyRig& rig, IsaLevel level, Op op, std::vector<uint16_t> operands,
          const std::vector<uint32_t>& immediates, const Columns& columns, Rows rows = Rows::kTokens) {
  rig.packet = {};
  rig.packet.body = static_cast<uint16_t>(op);
  rig.packet.row_kind = static_cast<uint8_t>(rows);
  rig.packet.row_stride = 1;
  std::fill(std::begin(rig.packet.operand), std::end(rig.packet.operand), kNoTensor);
  std::copy(operands.begin(), operands.end(), rig.packet.operand);
  std::copy(immediates.begin(), immediates.end(), rig.packet.immediate);
  rig.cover_columns(rig.tensors[operands.back()].cols, columns.tile_cols);
  rig.packet.col_first = columns.first;
  rig.packet.col_stride = static_cast<uint16_t>(columns.stride);
  if (columns.count != 0) rig.packet.col_count = static_cast<uint16_t>(columns.count);
  ASSERT_EQ(unsupported_reason(rig.packet, rig.tensors.data()), "");
  rig.run(level);
}

// Whether [row, column) of two tensors of one rig hold the same bits, for the columns that `mine` picks;
// others of `b` are untouched.
template <class Mine>
void expect_same(BodyRig& rig, uint16_t a, uint16_t b, const Mine& mine) {
  for (uint32_t r = 0; r < rig.tensors[a].rows; ++r) {
    for (uint32_t c = 0; c < rig.tensors[a].cols; ++c) {
      const float expected = mine(c) ? rig.row(a, r)[c] : BodyRig::kUntouched;
      ASSERT_EQ(std::bit_cast<uint32_t>(rig.row(b, r)[c]), std::bit_cast<uint32_t>(expected))
          << "row " << r << ", column " << c << ": " << rig.row(b, r)[c] << " for " << expected;
    }
  }
}

// A value, and how far from it a float computation may be.
struct Near {
  double value = 0, error = 0;
};

// Everything that products take, in one rig.
struct Products {
  uint32_t rows, k, n;
  DType dtype;
  std::vector<double> x, gain, w, up, bias, residual;
  BodyRig rig;
  uint16_t tx, tgain, tw, tup, tbias, tresidual;

  Products(uint32_t rows_, uint32_t k_, uint32_t n_, DType dtype_, uint32_t row_tile)
      : rows(rows_),
        k(k_),
        n(n_),
        dtype(dtype_),
        x(random_values(size_t{rows} * k, 1, 3)),
        gain(random_values(k, 2)),
        w(random_values(size_t{n} * k, 3, 4 / std::sqrt(k))),
        up(random_values(size_t{n} * k, 4)),
        bias(random_values(n, 5)),
        residual(random_values(size_t{rows} * n, 6, 100)),
        rig(rows, 0, row_tile),
        tx(rig.add_arena(rows, k, x)),
        tgain(rig.add_tape(vector_dtype(), Layout::kRowMajor, 1, k, gain)),
        tw(add_matrix(w, 3)),
        tup(add_matrix(up, 4)),
        tbias(rig.add_tape(vector_dtype(), Layout::kRowMajor, 1, n, bias)),
        tresidual(rig.add_arena(rows, n, residual)) {
    for (std::vector<double>* values : {&gain, &bias}) {
      for (double& value : *values) value = rounded(vector_dtype(), value);
    }
    for (std::vector<double>* values : {&x, &residual}) {
      for (double& value : *values) value = rounded(DType::kF32, value);
    }
  }
  uint16_t out(uint32_t cols) { return rig.add_arena(rows, cols); }

  // Of gains and biases.
  DType vector_dtype() const { return is_of_blocks(dtype) ? DType::kF32 : dtype; }

  // A matrix, whose values become what is stored of them; one of blocks has values of its own.
  uint16_t add_matrix(std::vector<double>& values, uint32_t seed) {
    if (is_of_blocks(dtype)) {
      const BlockMatrix blocks = random_blocks(dtype, n, k, seed);
      values = blocks.values;
      return rig.add_blocks(dtype, n, k, blocks.packed);
    }
    const uint16_t tensor = rig.add_tape(dtype, Layout::kRows16Pairs, n, k, values);
    for (double& value : values) value = rounded(dtype, value);
    return tensor;
  }

  // One row of the activations, normalised or not; `rounds`: to bf16, as the product reads them.
  std::vector<Near> activations(uint32_t r, bool norm, bool rounds) const {
    std::vector<Near> row(k);
    double squares = 0;
    for (uint32_t c = 0; c < k; ++c) squares += x[r * k + c] * x[r * k + c];
    const double factor = 1 / std::sqrt(squares / k + static_cast<double>(kEps));
    for (uint32_t c = 0; c < k; ++c) {
      row[c].value = x[r * k + c];
      if (norm) {
        row[c].value *= factor * (gain[c] + static_cast<double>(kOffset));
        // As for rms_norm: (k / 128 + 10) u, and the rounding of a gain that cancels the offset.
        row[c].error = kUlp * ((k / 128.0 + 10) * std::abs(row[c].value) + std::abs(x[r * k + c] * factor));
      }
      if (rounds) row[c].error += 0x1p-8 * std::abs(row[c].value);
    }
    // Products with blocks take an activation as a 16-bit multiple of the largest one's 1 / 32767.
    for (uint32_t first = 0; first < k && is_of_blocks(dtype); first += 32) {
      double most = 0;
      for (uint32_t c = first; c < first + 32; ++c)
        most = std::max(most, std::abs(row[c].value) + row[c].error);
      for (uint32_t c = first; c < first + 32; ++c) row[c].error += (0.5 + 0x1p-7) * most / 32767;
    }
    return row;
  }

  // Their product with row c of a matrix over [begin, end): a chain of roundings of partial sums.
  Near product(const std::vector<Near>& row, const std::vector<double>& matrix, uint32_t c, uint32_t begin,
               uint32_t end) const {
    Near sum;
    for (uint32_t i = begin; i < end; ++i) {
      const double weight = matrix[c * k + i];
      sum.value += row[i].value * weight;
      sum.error += std::abs(weight) * (row[i].error + (end - begin) * kUlp * std::abs(row[i].value));
    }
    return sum;
  }
};

Near plus(const Near& a, double b) {
  return {a.value + b, a.error + kUlp * (std::abs(a.value + b) + a.error)};
}

// act(gate) * up for silu, whose slope is at most 1.1; its bits err as in the tests of glu.
Near silu_times(const Near& gate, const Near& up) {
  const double act = gate.value / (1 + std::exp(-gate.value));
  const double act_error = 1.1 * gate.error + 40 * kUlp * std::abs(act) + 1e-10;
  return {act * up.value, act_error * (std::abs(up.value) + up.error) + std::abs(act) * up.error};
}

struct Shape {
  uint32_t k, n;
};

const std::vector<Shape> kShapes = {{2, 16}, {7, 5}, {64, 48}, {129, 100}, {576, 150}, {1031, 35}};
const std::vector<Shape> kShapesOfBlocks = {{32, 5}, {64, 48}, {576, 150}};

template <class F>
void each_problem(const F& f) {
  for (IsaLevel level : available_isa_levels()) {
    for (DType dtype : {DType::kF32, DType::kBf16, DType::kF16, DType::kQ8_0, DType::kQ4_0}) {
      for (const Shape shape : is_of_blocks(dtype) ? kShapesOfBlocks : kShapes) {
        for (uint32_t rows : {1u, 2u, 5u, 6u, 7u, 17u, 33u}) {
          SCOPED_TRACE(std::string(isa_level_name(level)) + " " + dtype_name(dtype) + " rows " +
                       std::to_string(rows) + " k " + std::to_string(shape.k) + " n " +
                       std::to_string(shape.n));
          Products p(rows, shape.k, shape.n, dtype, rows > 17 ? 16 : rows);
          f(p, level, level == IsaLevel::kAvx512Bf16 && dtype == DType::kBf16);
          if (testing::Test::HasFatalFailure()) return;
        }
      }
    }
  }
}

// The fused operator with all columns, then with tiles 1 and 3 of 32 columns, against `expected`; and what it
// must be in double.
void expect_fused(Products& p, IsaLevel level, Op op, const std::vector<uint16_t>& inputs,
                  const std::vector<uint32_t>& immediates, uint16_t expected,
                  const std::function<Near(uint32_t, uint32_t)>& exact) {
  SCOPED_TRACE(op_name(op));
  const auto run = [&](const Columns& columns) {
    std::vector<uint16_t> operands = inputs;
    operands.push_back(p.out(p.n));
    const std::vector<float> before = p.rig.arena;
    call(p.rig, level, op, operands, immediates, columns);
    const auto out = static_cast<size_t>(p.rig.row(operands.back(), 0) - p.rig.arena.data());
    EXPECT_EQ(std::memcmp(before.data(), p.rig.arena.data(), out * sizeof(float)), 0)
        << "something else was written";
    return operands.back();
  };
  const uint16_t all = run({16});
  expect_same(p.rig, expected, all, [](uint32_t) { return true; });
  for (uint32_t r = 0; r < p.rows; ++r) {
    for (uint32_t c = 0; c < p.n; ++c) {
      const Near near = exact(r, c);
      ASSERT_NEAR(static_cast<double>(p.rig.row(all, r)[c]), near.value, near.error)
          << "row " << r << ", column " << c;
    }
  }
  if (p.n < 100) return;
  const uint16_t some = run({.tile_cols = 32, .first = 1, .count = 2, .stride = 2});
  expect_same(p.rig, expected, some, [](uint32_t c) { return c / 32 == 1 || c / 32 == 3; });
}

TEST(FusedBodies, ALinearMapWithARowAddedHasTheBitsOfBoth) {
  each_problem([](Products& p, IsaLevel level, bool rounds) {
    const uint16_t product = p.out(p.n), added = p.out(p.n), biased = p.out(p.n);
    call(p.rig, level, Op::kLinear, {p.tx, p.tw, product}, {}, {16});
    call(p.rig, level, Op::kAdd, {p.tresidual, product, added}, {}, {16});
    call(p.rig, level, Op::kBiasAdd, {product, p.tbias, biased}, {}, {16});
    expect_fused(
        p, level, Op::kLinearAdd, {p.tx, p.tw, p.tresidual}, {0, p.k}, added, [&](uint32_t r, uint32_t c) {
          return plus(p.product(p.activations(r, false, rounds), p.w, c, 0, p.k), p.residual[r * p.n + c]);
        });
    expect_fused(p, level, Op::kLinearBias, {p.tx, p.tw, p.tbias}, {}, biased, [&](uint32_t r, uint32_t c) {
      return plus(p.product(p.activations(r, false, rounds), p.w, c, 0, p.k), p.bias[c]);
    });
  });
}

TEST(FusedBodies, APartOfALinearMapHasTheBitsOfTheMapOfThoseColumns) {
  each_problem([](Products& p, IsaLevel level, bool rounds) {
    if (is_of_blocks(p.dtype)) return;  // see BlockBody: a part has blocks of its own there
    for (const auto& [begin, end] :
         {std::pair{0u, p.k / 4 * 2}, std::pair{p.k / 4 * 2, p.k}, std::pair{0u, p.k}}) {
      if (begin == end) continue;
      SCOPED_TRACE("columns " + std::to_string(begin) + " to " + std::to_string(end));
      const uint32_t cols = end - begin;
      std::vector<double> x, w;
      for (uint32_t r = 0; r < p.rows; ++r)
        x.insert(x.end(), p.x.begin() + r * p.k + begin, p.x.begin() + r * p.k + end);
      for (uint32_t r = 0; r < p.n; ++r)
        w.insert(w.end(), p.w.begin() + r * p.k + begin, p.w.begin() + r * p.k + end);
      const uint16_t tx = p.rig.add_arena(p.rows, cols, x);
      const uint16_t tw = p.rig.add_tape(p.dtype, Layout::kRows16Pairs, p.n, cols, w);
      const uint16_t part = p.out(p.n), added = p.out(p.n);
      call(p.rig, level, Op::kLinear, {tx, tw, part}, {}, {16});
      call(p.rig, level, Op::kAdd, {p.tresidual, part, added}, {}, {16});
      const auto exact = [&, b = begin, e = end](uint32_t r, uint32_t c) {
        return p.product(p.activations(r, false, rounds), p.w, c, b, e);
      };
      expect_fused(p, level, Op::kLinearPart, {p.tx, p.tw}, {begin, end}, part, exact);
      expect_fused(p, level, Op::kLinearAdd, {p.tx, p.tw, p.tresidual}, {begin, end}, added,
                   [&](uint32_t r, uint32_t c) { return plus(exact(r, c), p.residual[r * p.n + c]); });
    }
  });
}

TEST(FusedBodies, ALinearMapOfANormHasTheBitsOfBoth) {
  each_problem([](Products& p, IsaLevel level, bool rounds) {
    const uint16_t norm = p.out(p.k), product = p.out(p.n), biased = p.out(p.n);
    call(p.rig, level, Op::kRmsNorm, {p.tx, p.tgain, norm}, {f32_bits(kEps), f32_bits(kOffset), p.k}, {p.k});
    call(p.rig, level, Op::kLinear, {norm, p.tw, product}, {}, {16});
    call(p.rig, level, Op::kBiasAdd, {product, p.tbias, biased}, {}, {16});
    const auto exact = [&](uint32_t r, uint32_t c) {
      return p.product(p.activations(r, true, rounds), p.w, c, 0, p.k);
    };
    const std::vector<uint32_t> immediates{f32_bits(kEps), f32_bits(kOffset)};
    expect_fused(p, level, Op::kNormLinear, {p.tx, p.tgain, p.tw}, immediates, product, exact);
    expect_fused(p, level, Op::kNormLinearBias, {p.tx, p.tgain, p.tw, p.tbias}, immediates, biased,
                 [&](uint32_t r, uint32_t c) { return plus(exact(r, c), p.bias[c]); });
  });
}

TEST(FusedBodies, AGatedPairOfLinearMapsHasTheBitsOfTheThree) {
  each_problem([](Products& p, IsaLevel level, bool rounds) {
    for (bool norm : {false, true}) {
      uint16_t x = p.tx;
      if (norm) {
        x = p.out(p.k);
        call(p.rig, level, Op::kRmsNorm, {p.tx, p.tgain, x}, {f32_bits(kEps), f32_bits(kOffset), p.k}, {p.k});
      }
      const uint16_t gate = p.out(p.n), up = p.out(p.n);
      call(p.rig, level, Op::kLinear, {x, p.tw, gate}, {}, {16});
      call(p.rig, level, Op::kLinear, {x, p.tup, up}, {}, {16});
      for (uint32_t activation : {0u, 1u, 2u}) {
        const uint16_t out = p.out(p.n);
        call(p.rig, level, Op::kGlu, {gate, up, out}, {activation}, {16});
        const auto exact = [&](uint32_t r, uint32_t c) {
          if (activation != 0) return Near{0, INFINITY};  // its bits are glu's, whose tests look at all three
          const std::vector<Near> row = p.activations(r, norm, rounds);
          return silu_times(p.product(row, p.w, c, 0, p.k), p.product(row, p.up, c, 0, p.k));
        };
        if (norm) {
          expect_fused(p, level, Op::kNormGluLinear, {p.tx, p.tgain, p.tw, p.tup},
                       {f32_bits(kEps), f32_bits(kOffset), activation}, out, exact);
        } else {
          expect_fused(p, level, Op::kGluLinear, {p.tx, p.tw, p.tup}, {activation}, out, exact);
        }
      }
    }
  });
}

// What the fused product of one row and of many rows have in common: the tests above take row tiles as large
// as their rows, so here one problem is cut in several ways.
TEST(FusedBodies, ARowHasTheSameBitsWhateverSharesItsTile) {
  for (IsaLevel level : available_isa_levels()) {
    std::vector<float> first;
    for (uint32_t row_tile : {64u, 1u, 2u, 3u, 5u, 8u, 16u}) {
      Products p(33, 1031, 83, DType::kBf16, row_tile);
      const uint16_t out = p.out(p.n);
      call(p.rig, level, Op::kNormGluLinear, {p.tx, p.tgain, p.tw, p.tup, out},
           {f32_bits(kEps), f32_bits(kOffset), 1}, {16});
      const std::vector<float> values(p.rig.row(out, 0), p.rig.row(out, 32) + p.n);
      if (first.empty()) first = values;
      ASSERT_EQ(std::memcmp(first.data(), values.data(), first.size() * sizeof(float)), 0)
          << isa_level_name(level) << ", row tile " << row_tile;
    }
  }
}

TEST(FusedBodies, NormAddHasTheBitsOfBoth) {
  each_problem([](Products& p, IsaLevel level, bool) {
    const uint16_t residual = p.rig.add_arena(p.rows, p.k, random_values(size_t{p.rows} * p.k, 7, 100));
    const uint16_t norm = p.out(p.k), expected = p.out(p.k), out = p.out(p.k);
    call(p.rig, level, Op::kRmsNorm, {p.tx, p.tgain, norm}, {f32_bits(kEps), f32_bits(kOffset), p.k}, {p.k});
    call(p.rig, level, Op::kAdd, {residual, norm, expected}, {}, {16});
    const std::vector<float> before = p.rig.arena;
    call(p.rig, level, Op::kNormAdd, {p.tx, p.tgain, residual, out}, {f32_bits(kEps), f32_bits(kOffset)},
         {p.k});
    expect_same(p.rig, expected, out, [](uint32_t) { return true; });
    const auto begin = static_cast<size_t>(p.rig.row(out, 0) - p.rig.arena.data());
    EXPECT_EQ(std::memcmp(before.data(), p.rig.arena.data(), begin * sizeof(float)), 0);
  });
}

// Heads, their gain and their table, and a cache of two slots with something in it.
struct Heads {
  static constexpr uint32_t kRows = 7, kKvHeads = 2, kGroup = 3, kPositions = 96;
  uint32_t head_dim, half;
  BodyRig rig;
  uint16_t tq, tk, tv, tgain, table, cache;

  Heads(uint32_t head_dim_, uint32_t half_, DType dtype, uint32_t row_tile, uint32_t n_samples = 0)
      : head_dim(head_dim_), half(half_), rig(kRows, n_samples, row_tile) {
    const uint32_t kv = kKvHeads * head_dim;
    tq = rig.add_arena(kRows, kv * kGroup, random_values(size_t{kRows} * kv * kGroup, 1, 3));
    tk = rig.add_arena(kRows, kv, random_values(size_t{kRows} * kv, 2, 3));
    tv = rig.add_arena(kRows, kv, random_values(size_t{kRows} * kv, 3));
    tgain = rig.add_tape(dtype, Layout::kRowMajor, 1, head_dim, random_values(head_dim, 4));
    table = rig.add_arena(kRows, 2 * half, random_values(size_t{kRows} * 2 * half, 5));
    cache = rig.add_cache(dtype == DType::kF32 ? DType::kF32 : DType::kBf16, kKvHeads, head_dim, 0);
    const uint32_t bytes = dtype_bytes(rig.tensors[cache].dtype);
    rig.table_width = kPositions / 16;
    rig.kv_group.block_bytes = size_t{2} * kv * 16 * bytes;
    rig.block_table.resize(2 * rig.table_width);
    for (uint32_t i = 0; i < rig.block_table.size(); ++i) rig.block_table[i] = (i * 5 + 2) % 12;
    rig.pool.resize(12 * rig.kv_group.block_bytes);
    const auto values = random_values(rig.pool.size() / bytes, 6);
    for (size_t i = 0; i < values.size(); ++i)
      TapeBytes::write(rig.tensors[cache].dtype, values[i], rig.pool.data() + i * bytes);
    rig.row_slots = {0, 0, 0, 1, 1, 1, 1};
    rig.positions = {14, 15, 16, 66, 67, 68, 69};
  }
  // Normalised heads, when `norm`, then rotated ones, by the operators themselves.
  uint16_t turned(IsaLevel level, uint16_t x, bool norm, float offset) {
    const uint32_t cols = rig.tensors[x].cols;
    if (norm) {
      const uint16_t out = rig.add_arena(kRows, cols);
      call(rig, level, Op::kRmsNorm, {x, tgain, out}, {f32_bits(kEps), f32_bits(offset), head_dim},
           {head_dim});
      x = out;
    }
    const uint16_t out = rig.add_arena(kRows, cols);
    call(rig, level, Op::kRope, {x, table, out}, {head_dim}, {head_dim});
    return out;
  }
};

template <class F>
void each_head(const F& f) {
  for (IsaLevel level : available_isa_levels()) {
    for (DType dtype : {DType::kF32, DType::kBf16}) {
      for (const Shape shape : {Shape{2, 1}, Shape{20, 10}, Shape{48, 6}, Shape{64, 32}, Shape{128, 64}}) {
        for (uint32_t row_tile : {1u, 3u, 8u}) {
          SCOPED_TRACE(std::string(isa_level_name(level)) + " " + dtype_name(dtype) + " head_dim " +
                       std::to_string(shape.k) + " row tile " + std::to_string(row_tile));
          Heads heads(shape.k, shape.n, dtype, row_tile);
          f(heads, level);
          if (testing::Test::HasFatalFailure()) return;
        }
      }
    }
  }
}

TEST(FusedBodies, NormRopeHasTheBitsOfBoth) {
  each_head([](Heads& h, IsaLevel level) {
    const uint16_t expected = h.turned(level, h.tq, true, kOffset);
    const uint16_t out = h.rig.add_arena(Heads::kRows, h.rig.tensors[h.tq].cols);
    call(h.rig, level, Op::kNormRope, {h.tq, h.tgain, h.table, out},
         {h.head_dim, f32_bits(kEps), f32_bits(kOffset)}, {h.head_dim});
    expect_same(h.rig, expected, out, [](uint32_t) { return true; });
    const uint16_t some = h.rig.add_arena(Heads::kRows, h.rig.tensors[h.tq].cols);
    call(h.rig, level, Op::kNormRope, {h.tq, h.tgain, h.table, some},
         {h.head_dim, f32_bits(kEps), f32_bits(kOffset)},
         {.tile_cols = 2 * h.head_dim, .first = 1, .count = 1, .stride = 1});
    expect_same(h.rig, expected, some, [&](uint32_t c) { return c / (2 * h.head_dim) == 1; });
  });
}

TEST(FusedBodies, AppendingTurnedKeysLeavesTheCacheOfBoth) {
  each_head([](Heads& h, IsaLevel level) {
    const std::vector<unsigned char> before = h.rig.pool;
    for (bool norm : {false, true}) {
      h.rig.pool = before;
      const uint16_t keys = h.turned(level, h.tk, norm, kOffset);
      call(h.rig, level, Op::kKvAppend, {keys, h.tv, h.cache, h.cache}, {h.head_dim}, {h.head_dim});
      const std::vector<unsigned char> expected = h.rig.pool;
      EXPECT_NE(expected, before);
      h.rig.pool = before;
      const std::vector<float> arena = h.rig.arena;
      if (norm) {
        call(h.rig, level, Op::kNormRopeKvAppend, {h.tk, h.tgain, h.tv, h.table, h.cache, h.cache},
             {h.head_dim, f32_bits(kEps), f32_bits(kOffset)}, {h.head_dim});
      } else {
        call(h.rig, level, Op::kRopeKvAppend, {h.tk, h.tv, h.table, h.cache, h.cache}, {h.head_dim},
             {h.head_dim});
      }
      EXPECT_TRUE(h.rig.pool == expected) << (norm ? "normalised" : "not normalised");
      EXPECT_EQ(std::memcmp(arena.data(), h.rig.arena.data(), arena.size() * sizeof(float)), 0);
    }
  });
}

std::vector<uint32_t> attention_immediates(const Heads& h) {
  return {h.head_dim, 50, f32_bits(0.3f), f32_bits(20.0f), f32_bits(kEps)};
}

TEST(FusedBodies, AttentionOfTurnedQueriesHasTheBitsOfBoth) {
  each_head([](Heads& h, IsaLevel level) {
    const uint32_t cols = h.rig.tensors[h.tq].cols, unit = Heads::kGroup * h.head_dim;
    for (bool norm : {false, true}) {
      const uint16_t queries = h.turned(level, h.tq, norm, 0);
      const uint16_t expected = h.rig.add_arena(Heads::kRows, cols),
                     out = h.rig.add_arena(Heads::kRows, cols);
      std::vector<uint32_t> immediates = attention_immediates(h);
      const uint32_t eps = immediates.back();
      immediates.pop_back();
      call(h.rig, level, Op::kAttention, {queries, h.cache, expected}, immediates, {unit});
      if (norm) {
        immediates.push_back(eps);
        call(h.rig, level, Op::kNormRopeAttention, {h.tq, h.tgain, h.table, h.cache, out}, immediates,
             {unit});
      } else {
        call(h.rig, level, Op::kRopeAttention, {h.tq, h.table, h.cache, out}, immediates, {unit});
      }
      expect_same(h.rig, expected, out, [](uint32_t) { return true; });
    }
  });
}

// Rows in order, with a gap, twice, and backwards: each has the bits that it has among all rows.
TEST(FusedBodies, SampledRowsAttendFromTheirOwnPositions) {
  for (IsaLevel level : available_isa_levels()) {
    for (uint32_t row_tile : {1u, 4u, 16u}) {
      Heads h(64, 32, DType::kF32, row_tile, 8);
      h.rig.sample_rows = {0, 1, 4, 5, 6, 6, 3, 2};
      const uint32_t cols = h.rig.tensors[h.tq].cols, unit = Heads::kGroup * h.head_dim;
      const uint16_t all = h.rig.add_arena(Heads::kRows, cols);
      std::vector<uint32_t> immediates = attention_immediates(h);
      immediates.pop_back();
      call(h.rig, level, Op::kRopeAttention, {h.tq, h.table, h.cache, all}, immediates, {unit});
      const uint16_t column = h.rig.add_step(StepColumn::kSampleRows);
      const uint16_t q = h.rig.add_arena(8, cols), table = h.rig.add_arena(8, 2 * h.half);
      call(h.rig, level, Op::kGatherRows, {h.tq, column, q}, {}, {16}, Rows::kSamples);
      call(h.rig, level, Op::kGatherRows, {h.table, column, table}, {}, {16}, Rows::kSamples);
      const uint16_t expected = h.rig.add_arena(8, cols), fused = h.rig.add_arena(8, cols);
      call(h.rig, level, Op::kGatherRows, {all, column, expected}, {}, {16}, Rows::kSamples);
      call(h.rig, level, Op::kRopeAttention, {q, table, h.cache, fused}, immediates, {unit}, Rows::kSamples);
      expect_same(h.rig, expected, fused, [](uint32_t) { return true; });
      const uint16_t turned = h.rig.add_arena(8, cols), plain = h.rig.add_arena(8, cols);
      call(h.rig, level, Op::kRope, {q, table, turned}, {h.head_dim}, {h.head_dim}, Rows::kSamples);
      call(h.rig, level, Op::kAttention, {turned, h.cache, plain}, immediates, {unit}, Rows::kSamples);
      expect_same(h.rig, expected, plain, [](uint32_t) { return true; });
    }
  }
}

}  // namespace
}  // namespace plow
