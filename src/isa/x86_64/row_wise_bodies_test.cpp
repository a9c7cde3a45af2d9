// The bodies that work row by row, against the definitions of src/ops/README.md in double.
#include "isa/x86_64/body_rig.h"

#include <gtest/gtest.h>

#include <cmath>
#include <functional>

namespace plow {
namespace {

constexpr double kUlp = 0x1p-24;
constexpr uint32_t kRowCounts[] = {1, 2, 3, 7, 16, 17, 33};
constexpr uint32_t kRowTile = 5;

// Expects the output's rows to be `expected` within `tolerance`, both functions of (row, column), and all
// else in the arena to be as before.
void expect_output(BodyRig& rig, uint16_t output, const std::vector<float>& before,
                   const std::function<double(uint32_t, uint32_t)>& expected,
                   const std::function<double(uint32_t, uint32_t)>& tolerance) {
  const TensorEntry& out = rig.tensors[output];
  std::vector<float> after = rig.arena;
  for (uint32_t r = 0; r < out.rows; ++r) {
    for (uint32_t c = 0; c < out.cols; ++c) {
      const size_t at = static_cast<size_t>(rig.row(output, r) + c - rig.arena.data());
      ASSERT_NEAR(static_cast<double>(after[at]), expected(r, c), tolerance(r, c))
          << "row " << r << ", column " << c;
      after[at] = before[at];
    }
  }
  EXPECT_EQ(std::memcmp(after.data(), before.data(), after.size() * sizeof(float)), 0)
      << "something else was written";
}

// Runs over levels, numbers of rows and widths: make(rig, rows, cols) sets the packet up and returns the
// output and the expectations.
struct Expectation {
  uint16_t output;
  std::function<double(uint32_t, uint32_t)> value, tolerance;
};
void sweep(std::initializer_list<uint32_t> widths,
           const std::function<Expectation(BodyRig&, uint32_t, uint32_t)>& make) {
  for (IsaLevel level : available_isa_levels()) {
    for (uint32_t rows : kRowCounts) {
      for (uint32_t cols : widths) {
        SCOPED_TRACE(std::string(isa_level_name(level)) + ", " + std::to_string(rows) + " rows of " +
                     std::to_string(cols));
        BodyRig rig(rows, 0, kRowTile);
        const Expectation expected = make(rig, rows, cols);
        ASSERT_EQ(unsupported_reason(rig.packet, rig.tensors.data()), "");
        const std::vector<float> before = rig.arena;
        rig.run(level);
        expect_output(rig, expected.output, before, expected.value, expected.tolerance);
      }
    }
  }
}

uint32_t f32_bits(float value) { return std::bit_cast<uint32_t>(value); }

double as_float(double value) { return static_cast<double>(static_cast<float>(value)); }

TEST(RowWiseBodies, ScaleMultiplies) {
  sweep({1, 16, 37}, [](BodyRig& rig, uint32_t rows, uint32_t cols) {
    const auto x = random_values(size_t{rows} * cols, 1);
    rig.packet.body = static_cast<uint16_t>(Op::kScale);
    rig.packet.operand[0] = rig.add_arena(rows, cols, x);
    rig.packet.operand[1] = rig.add_arena(rows, cols);
    rig.packet.immediate[0] = f32_bits(25.298f);
    rig.cover_columns(cols, 16);
    const auto value = [=](uint32_t r, uint32_t c) {
      return as_float(x[r * cols + c]) * static_cast<double>(25.298f);
    };
    return Expectation{rig.packet.operand[1], value,
                       [=](uint32_t r, uint32_t c) { return kUlp * std::abs(value(r, c)); }};
  });
}

TEST(RowWiseBodies, AddAdds) {
  sweep({1, 16, 37}, [](BodyRig& rig, uint32_t rows, uint32_t cols) {
    const auto x = random_values(size_t{rows} * cols, 1), y = random_values(size_t{rows} * cols, 2);
    rig.packet.body = static_cast<uint16_t>(Op::kAdd);
    rig.packet.operand[0] = rig.add_arena(rows, cols, x);
    rig.packet.operand[1] = rig.add_arena(rows, cols, y, 7);
    rig.packet.operand[2] = rig.add_arena(rows, cols);
    rig.cover_columns(cols, 16);
    const auto value = [=](uint32_t r, uint32_t c) {
      return as_float(x[r * cols + c]) + as_float(y[r * cols + c]);
    };
    return Expectation{rig.packet.operand[2], value,
                       [=](uint32_t r, uint32_t c) { return kUlp * std::abs(value(r, c)); }};
  });
}

TEST(RowWiseBodies, BiasAddAddsTheSameRowInEveryDtype) {
  for (DType dtype : {DType::kF32, DType::kBf16, DType::kF16}) {
    sweep({3, 16, 37}, [=](BodyRig& rig, uint32_t rows, uint32_t cols) {
      const auto x = random_values(size_t{rows} * cols, 1), b = random_values(cols, 2);
      rig.packet.body = static_cast<uint16_t>(Op::kBiasAdd);
      rig.packet.operand[0] = rig.add_arena(rows, cols, x);
      rig.packet.operand[1] = rig.add_tape(dtype, Layout::kRowMajor, 1, cols, b);
      rig.packet.operand[2] = rig.add_arena(rows, cols);
      rig.cover_columns(cols, 16);
      const auto value = [=](uint32_t r, uint32_t c) {
        return as_float(x[r * cols + c]) + rounded(dtype, b[c]);
      };
      return Expectation{rig.packet.operand[2], value,
                         [=](uint32_t r, uint32_t c) { return kUlp * std::abs(value(r, c)); }};
    });
  }
}

TEST(RowWiseBodies, SoftCapBendsLargeValues) {
  sweep({1, 37}, [](BodyRig& rig, uint32_t rows, uint32_t cols) {
    const auto x = random_values(size_t{rows} * cols, 1, 200);
    rig.packet.body = static_cast<uint16_t>(Op::kSoftCap);
    rig.packet.operand[0] = rig.add_arena(rows, cols, x);
    rig.packet.operand[1] = rig.add_arena(rows, cols);
    rig.packet.immediate[0] = f32_bits(30.0f);
    rig.cover_columns(cols, 16);
    const auto value = [=](uint32_t r, uint32_t c) { return 30 * std::tanh(as_float(x[r * cols + c]) / 30); };
    // tanh 4 u, the quotient and the product 1 u each.
    return Expectation{rig.packet.operand[1], value,
                       [=](uint32_t r, uint32_t c) { return 6 * kUlp * std::abs(value(r, c)); }};
  });
}

double activation(uint32_t kind, double x) {
  if (kind == 0) return x / (1 + std::exp(-x));
  if (kind == 2) return x * 0.5 * std::erfc(-x / std::sqrt(2.0));
  return 0.5 * x * (1 + std::tanh(std::sqrt(2 / M_PI) * (x + 0.044715 * x * x * x)));
}

TEST(RowWiseBodies, GluHasThreeActivations) {
  for (uint32_t kind : {0u, 1u, 2u}) {
    sweep({5, 37}, [=](BodyRig& rig, uint32_t rows, uint32_t cols) {
      const auto gate = random_values(size_t{rows} * cols, 1, 9), up = random_values(size_t{rows} * cols, 2);
      rig.packet.body = static_cast<uint16_t>(Op::kGlu);
      rig.packet.operand[0] = rig.add_arena(rows, cols, gate);
      rig.packet.operand[1] = rig.add_arena(rows, cols, up);
      rig.packet.operand[2] = rig.add_arena(rows, cols);
      rig.packet.immediate[0] = kind;
      rig.cover_columns(cols, 16);
      const auto value = [=](uint32_t r, uint32_t c) {
        return activation(kind, as_float(gate[r * cols + c])) * as_float(up[r * cols + c]);
      };
      // The argument of the exponential, up to 2 * 0.8 * (9 + 0.045 * 729), is rounded three times: 200 u of
      // a value near its end, where the activation itself is below 1e-10; elsewhere 16 u. An absolute floor
      // of 1e-10 covers the former.
      return Expectation{rig.packet.operand[2], value,
                         [=](uint32_t r, uint32_t c) { return 40 * kUlp * std::abs(value(r, c)) + 1e-10; }};
    });
  }
}

TEST(RowWiseBodies, EmbedPicksRowsInBothLayoutsAndEveryDtype) {
  constexpr uint32_t kVocab = 37;
  for (Layout layout : {Layout::kRowMajor, Layout::kRows16Pairs}) {
    for (DType dtype : {DType::kF32, DType::kBf16, DType::kF16}) {
      sweep({1, 16, 37}, [=](BodyRig& rig, uint32_t rows, uint32_t cols) {
        const auto table = random_values(size_t{kVocab} * cols, 3);
        for (uint32_t t = 0; t < rows; ++t) rig.token_ids[t] = (7 * t + 36) % kVocab;
        rig.packet.body = static_cast<uint16_t>(Op::kEmbed);
        rig.packet.operand[0] = rig.add_tape(dtype, layout, kVocab, cols, table);
        rig.packet.operand[1] = rig.add_step(StepColumn::kTokenIds);
        rig.packet.operand[2] = rig.add_arena(rows, cols);
        rig.cover_columns(cols, 16);
        const auto value = [=](uint32_t r, uint32_t c) {
          return rounded(dtype, table[(7 * r + 36) % kVocab * cols + c]);
        };
        return Expectation{rig.packet.operand[2], value, [](uint32_t, uint32_t) { return 0.0; }};
      });
    }
  }
}

TEST(RowWiseBodies, GatherRowsCopiesTheSampledRows) {
  for (IsaLevel level : available_isa_levels()) {
    BodyRig rig(9, 3, 2);
    const auto x = random_values(size_t{9} * 21, 1);
    rig.sample_rows = {1, 7, 8};
    rig.packet.body = static_cast<uint16_t>(Op::kGatherRows);
    rig.packet.row_kind = static_cast<uint8_t>(Rows::kSamples);
    rig.packet.operand[0] = rig.add_arena(9, 21, x);
    rig.packet.operand[1] = rig.add_step(StepColumn::kSampleRows);
    rig.packet.operand[2] = rig.add_arena(3, 21);
    rig.cover_columns(21, 16);
    const std::vector<float> before = rig.arena;
    rig.run(level);
    expect_output(
        rig, rig.packet.operand[2], before,
        [&](uint32_t r, uint32_t c) { return as_float(x[rig.sample_rows[r] * 21 + c]); },
        [](uint32_t, uint32_t) { return 0.0; });
  }
}

TEST(RowWiseBodies, RmsNormNormalisesEachGroup) {
  struct Shape {
    uint32_t groups, group;
  };
  for (const Shape shape : {Shape{1, 37}, Shape{1, 576}, Shape{3, 20}, Shape{4, 64}, Shape{2, 130}}) {
    for (DType dtype : {DType::kF32, DType::kBf16}) {
      sweep({shape.groups * shape.group}, [=](BodyRig& rig, uint32_t rows, uint32_t cols) {
        const auto x = random_values(size_t{rows} * cols, 1, 3), g = random_values(shape.group, 2);
        rig.packet.body = static_cast<uint16_t>(Op::kRmsNorm);
        rig.packet.operand[0] = rig.add_arena(rows, cols, x);
        rig.packet.operand[1] = rig.add_tape(dtype, Layout::kRowMajor, 1, shape.group, g);
        rig.packet.operand[2] = rig.add_arena(rows, cols);
        rig.packet.immediate[0] = f32_bits(1e-5f);
        rig.packet.immediate[1] = f32_bits(1.0f);
        rig.packet.immediate[2] = shape.group;
        rig.cover_columns(cols, shape.group);
        const auto value = [=](uint32_t r, uint32_t c) {
          const double* first = x.data() + r * cols + c / shape.group * shape.group;
          double sum = 0;
          for (uint32_t i = 0; i < shape.group; ++i) sum += as_float(first[i]) * as_float(first[i]);
          const double gain = rounded(dtype, g[c % shape.group]) + 1.0;
          return as_float(x[r * cols + c]) / std::sqrt(sum / shape.group + static_cast<double>(1e-5f)) * gain;
        };
        // A sum of n positive terms in 64 chains: (n / 64 + 6) u; the root halves it; mean, eps, root,
        // quotient, sum of the gain and two products.
        const double factor = (shape.group / 128.0 + 3 + 7) * kUlp;
        return Expectation{rig.packet.operand[2], value, [=](uint32_t r, uint32_t c) {
                             return factor * std::abs(value(r, c)) +
                                    kUlp * std::abs(as_float(x[r * cols + c]));
                           }};
      });
    }
  }
}

TEST(RowWiseBodies, RopeTableIsExactToARoundingAtLargePositions) {
  sweep({8, 20}, [](BodyRig& rig, uint32_t rows, uint32_t cols) {
    const uint32_t half = cols / 2;
    std::vector<double> frequency(half);
    for (uint32_t j = 0; j < half; ++j) frequency[j] = std::pow(500000.0, -2.0 * j / cols);
    for (uint32_t t = 0; t < rows; ++t) rig.positions[t] = 131071 - 977 * t;
    rig.packet.body = static_cast<uint16_t>(Op::kRopeTable);
    rig.packet.operand[0] = rig.add_tape(DType::kF64, Layout::kRowMajor, 1, half, frequency);
    rig.packet.operand[1] = rig.add_step(StepColumn::kPositions);
    rig.packet.operand[2] = rig.add_arena(rows, cols);
    rig.packet.immediate[0] = f32_bits(1.25f);
    rig.cover_columns(cols, cols);
    const auto value = [=](uint32_t r, uint32_t c) {
      const long double angle = static_cast<long double>(131071 - 977 * r) * frequency[c % half];
      return static_cast<double>(1.25L * (c < half ? std::cos(angle) : std::sin(angle)));
    };
    return Expectation{rig.packet.operand[2], value,
                       [=](uint32_t r, uint32_t c) { return 1.01 * kUlp * std::abs(value(r, c)) + 1e-10; }};
  });
}

TEST(RowWiseBodies, RopeRotatesPairsAndCopiesTheRest) {
  struct Shape {
    uint32_t heads, head_dim, table;
  };
  for (const Shape shape : {Shape{1, 2, 2}, Shape{3, 64, 64}, Shape{2, 20, 20}, Shape{2, 48, 12}}) {
    sweep({shape.heads * shape.head_dim}, [=](BodyRig& rig, uint32_t rows, uint32_t cols) {
      const auto x = random_values(size_t{rows} * cols, 1),
                 table = random_values(size_t{rows} * shape.table, 2);
      rig.packet.body = static_cast<uint16_t>(Op::kRope);
      rig.packet.operand[0] = rig.add_arena(rows, cols, x);
      rig.packet.operand[1] = rig.add_arena(rows, shape.table, table);
      rig.packet.operand[2] = rig.add_arena(rows, cols);
      rig.packet.immediate[0] = shape.head_dim;
      rig.cover_columns(cols, shape.head_dim);
      const uint32_t half = shape.table / 2;
      const auto value = [=](uint32_t r, uint32_t c) {
        const uint32_t j = c % shape.head_dim;
        const double* head = x.data() + r * cols + c - j;
        const double* angles = table.data() + r * shape.table;
        if (j < half)
          return as_float(head[j]) * as_float(angles[j]) -
                 as_float(head[j + half]) * as_float(angles[half + j]);
        if (j < 2 * half)
          return as_float(head[j]) * as_float(angles[j - half]) +
                 as_float(head[j - half]) * as_float(angles[j]);
        return as_float(head[j]);
      };
      // Two products and a sum of numbers below 1.
      return Expectation{rig.packet.operand[2], value, [](uint32_t, uint32_t) { return 4 * kUlp; }};
    });
  }
}

TEST(RowWiseBodies, KvAppendStoresWhereTheLayoutSays) {
  constexpr uint32_t kHeads = 2, kDim = 6, kOffset = 128;
  for (IsaLevel level : available_isa_levels()) {
    for (DType dtype : {DType::kF32, DType::kBf16}) {
      BodyRig rig(5, 0, 2);
      const auto k = random_values(size_t{5} * kHeads * kDim, 1),
                 v = random_values(size_t{5} * kHeads * kDim, 2);
      const size_t bytes = dtype_bytes(dtype);
      rig.kv_group.block_bytes = kOffset + 2 * kHeads * kDim * 16 * bytes;
      rig.pool.assign(4 * rig.kv_group.block_bytes, 0xee);
      rig.table_width = 2;
      rig.block_table = {9, 2, 3, 1};  // slot 0: position 16.. in block 2; slot 1: 3, 1
      rig.row_slots = {0, 1, 1, 1, 0};
      rig.positions = {17, 14, 15, 16, 31};
      rig.packet.body = static_cast<uint16_t>(Op::kKvAppend);
      rig.packet.operand[0] = rig.add_arena(5, kHeads * kDim, k);
      rig.packet.operand[1] = rig.add_arena(5, kHeads * kDim, v);
      rig.packet.operand[2] = rig.packet.operand[3] = rig.add_cache(dtype, kHeads, kDim, kOffset);
      rig.packet.immediate[0] = kDim;
      rig.cover_columns(kHeads * kDim, kDim);
      ASSERT_EQ(unsupported_reason(rig.packet, rig.tensors.data()), "");
      rig.run(level);
      size_t written = 0;
      const uint32_t blocks[] = {2, 3, 3, 1, 2};
      for (uint32_t r = 0; r < 5; ++r) {
        for (uint32_t c = 0; c < kHeads * kDim; ++c) {
          const uint32_t h = c / kDim, d = c % kDim, t = rig.positions[r] % 16;
          const unsigned char* head = rig.pool.data() + blocks[r] * rig.kv_group.block_bytes + kOffset +
                                      size_t{h} * 2 * kDim * 16 * bytes;
          const auto read = [&](size_t at) {
            float f32;
            uint16_t bf16;
            std::memcpy(&f32, head + at * bytes, 4 * (bytes == 4));
            std::memcpy(&bf16, head + at * bytes, 2);
            return static_cast<double>(bytes == 4 ? f32 : bf16_to_float(bf16));
          };
          EXPECT_EQ(read(d * 16 + t), rounded(dtype, k[r * kHeads * kDim + c]));
          EXPECT_EQ(read(kDim * 16 + t * kDim + d), rounded(dtype, v[r * kHeads * kDim + c]));
          written += 2 * bytes;
        }
      }
      const auto untouched = static_cast<size_t>(std::count(rig.pool.begin(), rig.pool.end(), 0xee));
      EXPECT_GE(untouched, rig.pool.size() - written);  // a written byte may happen to be 0xee
    }
  }
}

}  // namespace
}  // namespace plow
