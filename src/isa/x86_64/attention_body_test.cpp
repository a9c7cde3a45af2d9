// attention against softmax in double, over decode rows, chunks, windows, soft caps, head sizes, groups and
// cache dtypes; at once, and in parts that are merged. Blocks lie in shuffled order, and whatever no row may
// read is NaN.
#include "abi/attention_parts.h"
#include "isa/x86_64/body_rig.h"

#include <gtest/gtest.h>

#include <cmath>

namespace plow {
namespace {

constexpr double kUlp = 0x1p-24;
constexpr uint32_t kContext = 320;

struct Run {
  uint32_t slot, first, count;  // rows at positions first .. first + count - 1
};

struct Problem {
  uint32_t kv_heads, group, head_dim;
  DType cache = DType::kF32;
  uint32_t window = 0;
  float softcap = 0;
  float scale = 0.125f;
  uint32_t parts = 0;  // 0: attention itself
  std::vector<Run> runs;

  AttentionParts layout() const { return {head_dim, parts, group}; }

  uint32_t n_rows() const {
    uint32_t n = 0;
    for (const Run& run : runs) n += run.count;
    return n;
  }
};

// The cache of a problem: [slot][position][head][d], rounded to its dtype, and the queries.
struct Values {
  std::vector<double> k, v, q;
  size_t at(const Problem& p, uint32_t slot, uint32_t position, uint32_t head, uint32_t d) const {
    return ((size_t{slot} * kContext + position) * p.kv_heads + head) * p.head_dim + d;
  }
};

constexpr uint32_t kSlots = 3;

Values make_values(const Problem& p) {
  const size_t n = size_t{kSlots} * kContext * p.kv_heads * p.head_dim;
  Values values{random_values(n, 1, 2), random_values(n, 2),
                random_values(size_t{p.n_rows()} * p.kv_heads * p.group * p.head_dim, 3, 2)};
  for (double& x : values.k) x = rounded(p.cache, x);
  for (double& x : values.v) x = rounded(p.cache, x);
  for (double& x : values.q) x = rounded(DType::kF32, x);
  return values;
}

void store(DType dtype, double value, unsigned char* to) {
  const auto f32 = static_cast<float>(value);
  const uint16_t bf16 = float_to_bf16(f32);
  if (dtype == DType::kBf16) {
    std::memcpy(to, &bf16, sizeof(bf16));
  } else {
    std::memcpy(to, &f32, sizeof(f32));
  }
}

// Fills the pool: positions that rows of the step may read hold values, all others NaN.
void fill_pool(const Problem& p, const Values& values, BodyRig& rig) {
  const size_t bytes = dtype_bytes(p.cache);
  const uint32_t blocks_a_slot = kContext / 16;
  rig.table_width = blocks_a_slot;
  rig.kv_group.block_bytes = size_t{2} * p.kv_heads * p.head_dim * 16 * bytes;
  rig.pool.assign(kSlots * blocks_a_slot * rig.kv_group.block_bytes, 0xff);  // NaN in both dtypes
  rig.block_table.resize(kSlots * blocks_a_slot);
  for (uint32_t i = 0; i < rig.block_table.size(); ++i)
    rig.block_table[i] = (i * 7 + 3) % (kSlots * blocks_a_slot);  // 7 and 60: coprime
  for (const Run& run : p.runs) {
    const uint32_t end = run.first + run.count;
    const uint32_t begin = p.window != 0 && run.first + 1 > p.window ? run.first + 1 - p.window : 0;
    for (uint32_t position = begin; position < end; ++position) {
      unsigned char* block = rig.pool.data() + rig.block_table[run.slot * blocks_a_slot + position / 16] *
                                                   rig.kv_group.block_bytes;
      for (uint32_t h = 0; h < p.kv_heads; ++h) {
        unsigned char* head = block + size_t{h} * 2 * p.head_dim * 16 * bytes;
        for (uint32_t d = 0; d < p.head_dim; ++d) {
          const size_t at = values.at(p, run.slot, position, h, d);
          store(p.cache, values.k[at], head + (d * 16 + position % 16) * bytes);
          store(p.cache, values.v[at],
                head + (size_t{p.head_dim} * 16 + position % 16 * p.head_dim + d) * bytes);
        }
      }
    }
  }
}

BodyRig make_rig(const Problem& p, const Values& values, uint32_t row_tile) {
  BodyRig rig(p.n_rows(), 0, row_tile);
  fill_pool(p, values, rig);
  uint32_t row = 0;
  for (const Run& run : p.runs) {
    for (uint32_t t = 0; t < run.count; ++t, ++row) {
      rig.row_slots[row] = run.slot;
      rig.positions[row] = run.first + t;
    }
  }
  const uint32_t cols = p.kv_heads * p.group * p.head_dim;
  const auto part_cols = static_cast<uint32_t>(p.layout().cols(p.kv_heads));
  rig.packet.body = static_cast<uint16_t>(p.parts == 0 ? Op::kAttention : Op::kAttentionPart);
  rig.packet.operand[0] = rig.add_arena(p.n_rows(), cols, values.q);
  rig.packet.operand[1] = rig.add_cache(p.cache, p.kv_heads, p.head_dim, 0);
  if (p.parts != 0) rig.packet.operand[2] = rig.add_arena(p.n_rows(), part_cols);
  const uint16_t out = rig.add_arena(p.n_rows(), cols);
  if (p.parts == 0) rig.packet.operand[2] = out;
  rig.packet.immediate[0] = p.head_dim;
  rig.packet.immediate[1] = p.window;
  rig.packet.immediate[2] = std::bit_cast<uint32_t>(p.scale);
  rig.packet.immediate[3] = std::bit_cast<uint32_t>(p.softcap);
  rig.packet.immediate[4] = p.parts;
  if (p.parts == 0) {
    rig.cover_columns(cols, p.group * p.head_dim);
  } else {
    rig.cover_columns(part_cols, static_cast<uint32_t>(p.layout().tile_cols()));
  }
  return rig;
}

// Attention, or its parts and then what merges them.
void run(const Problem& p, BodyRig& rig, IsaLevel level) {
  ASSERT_EQ(unsupported_reason(rig.packet, rig.tensors.data()), "");
  rig.run(level);
  if (p.parts == 0) return;
  const Packet part = rig.packet;
  rig.packet.body = static_cast<uint16_t>(Op::kAttentionMerge);
  rig.packet.operand[0] = part.operand[2];
  rig.packet.operand[1] = static_cast<uint16_t>(rig.tensors.size() - 1);
  rig.packet.operand[2] = kNoTensor;
  std::fill(std::begin(rig.packet.immediate), std::end(rig.packet.immediate), 0);
  rig.packet.immediate[0] = p.head_dim;
  rig.packet.immediate[1] = p.parts;
  rig.packet.immediate[2] = p.group;
  rig.cover_columns(p.kv_heads * p.group * p.head_dim, p.group * p.head_dim);
  ASSERT_EQ(unsupported_reason(rig.packet, rig.tensors.data()), "");
  rig.run(level);
  rig.packet = part;
}

// One query's output in double, and how far a float computation may be from it.
void attend(const Problem& p, const Values& values, const Run& run, uint32_t row, uint32_t position,
            uint32_t head, std::vector<double>& out, std::vector<double>& tolerance) {
  const double* q = values.q.data() + (size_t{row} * p.kv_heads * p.group + head) * p.head_dim;
  const uint32_t begin = p.window != 0 && position + 1 > p.window ? position + 1 - p.window : 0;
  std::vector<double> weight;
  double largest = -INFINITY, score_error = 0;
  for (uint32_t j = begin; j <= position; ++j) {
    double score = 0, magnitude = 0;
    for (uint32_t d = 0; d < p.head_dim; ++d) {
      const double term = q[d] * values.k[values.at(p, run.slot, j, head / p.group, d)];
      score += term;
      magnitude += std::abs(term);
    }
    score *= static_cast<double>(p.scale);
    if (p.softcap > 0)
      score = static_cast<double>(p.softcap) * std::tanh(score / static_cast<double>(p.softcap));
    // head_dim roundings of partial sums, the scale's, and the cap's (tanh 4 u, two products).
    const double error =
        kUlp * (magnitude * static_cast<double>(p.scale) * (p.head_dim + 1) + 6 * std::abs(score));
    score_error = std::max(score_error, error);
    largest = std::max(largest, score);
    weight.push_back(score);
  }
  double sum = 0;
  for (double& w : weight) sum += w = std::exp(w - largest);
  // A weight is off by the errors of its score and of the maximum, the difference (u of up to |score| * 2),
  // exp (4 u) and at most one rescale for each unit of 64 (5 u each); sums of n terms by n u; numerator and
  // denominator each.
  const double n = static_cast<double>(weight.size());
  // A part more is a rescale more, and a term.
  const double relative =
      2 * (2 * score_error + kUlp * (2 * std::abs(largest) + 40 + 5 * (n / 64 + 1 + p.parts) + n + p.parts));
  for (uint32_t d = 0; d < p.head_dim; ++d) {
    double value = 0, magnitude = 0;
    for (uint32_t j = begin; j <= position; ++j) {
      const double term = weight[j - begin] * values.v[values.at(p, run.slot, j, head / p.group, d)];
      value += term;
      magnitude += std::abs(term);
    }
    out[d] = value / sum;
    tolerance[d] = magnitude / sum * relative;
  }
}

void check(const Problem& p, uint32_t row_tile) {
  const Values values = make_values(p);
  for (IsaLevel level : available_isa_levels()) {
    BodyRig rig = make_rig(p, values, row_tile);
    std::vector<float> before = rig.arena;
    run(p, rig, level);
    if (testing::Test::HasFatalFailure()) return;
    std::vector<float> after = rig.arena;
    const auto output = static_cast<uint16_t>(rig.tensors.size() - 1);
    for (uint32_t r = 0; p.parts != 0 && r < p.n_rows(); ++r) {
      const auto at = rig.row(rig.packet.operand[2], r) - rig.arena.data();
      std::copy_n(after.begin() + at, p.layout().cols(p.kv_heads), before.begin() + at);
    }
    std::vector<double> out(p.head_dim), tolerance(p.head_dim);
    uint32_t row = 0;
    for (const Run& run : p.runs) {
      for (uint32_t t = 0; t < run.count; ++t, ++row) {
        for (uint32_t head = 0; head < p.kv_heads * p.group; ++head) {
          attend(p, values, run, row, run.first + t, head, out, tolerance);
          for (uint32_t d = 0; d < p.head_dim; ++d) {
            const size_t at =
                static_cast<size_t>(rig.row(output, row) + head * p.head_dim + d - rig.arena.data());
            ASSERT_NEAR(static_cast<double>(after[at]), out[d], tolerance[d])
                << isa_level_name(level) << ": position " << run.first + t << ", head " << head << ", column "
                << d;
            after[at] = before[at];
          }
        }
      }
    }
    EXPECT_EQ(std::memcmp(after.data(), before.data(), after.size() * sizeof(float)), 0)
        << "something else was written";
  }
}

const std::vector<Run> kMixed = {{2, 0, 1}, {0, 37, 1}, {1, 100, 23}};

TEST(AttentionBody, IsSoftmaxForEveryHeadSize) {
  for (uint32_t head_dim : {2u, 10u, 16u, 20u, 64u, 80u, 128u, 256u, 512u}) {
    for (DType cache : {DType::kF32, DType::kBf16}) {
      SCOPED_TRACE("head_dim " + std::to_string(head_dim) + " " + dtype_name(cache));
      check({.kv_heads = 2, .group = 3, .head_dim = head_dim, .cache = cache, .runs = kMixed}, 8);
    }
  }
}

TEST(AttentionBody, SharesAPassAmongAnyNumberOfQueryHeads) {
  for (uint32_t group : {1u, 2u, 4u, 5u, 7u, 8u, 64u, 71u}) {
    SCOPED_TRACE("group " + std::to_string(group));
    check({.kv_heads = 1, .group = group, .head_dim = 16, .runs = kMixed}, 16);
  }
}

TEST(AttentionBody, AWindowHidesWhatIsBeforeIt) {
  for (uint32_t window : {1u, 2u, 15u, 16u, 17u, 63u, 64u, 65u, 100u, 130u}) {
    SCOPED_TRACE("window " + std::to_string(window));
    check({.kv_heads = 2,
           .group = 2,
           .head_dim = 20,
           .window = window,
           .runs = {{0, 0, 40}, {1, 90, 33}, {2, 255, 1}}},
          16);
  }
}

TEST(AttentionBody, ACapBendsScores) {
  check({.kv_heads = 2, .group = 2, .head_dim = 64, .softcap = 5, .scale = 0.5f, .runs = kMixed}, 16);
}

TEST(AttentionBody, LongChunksAndLongSequencesWork) {
  check({.kv_heads = 1, .group = 3, .head_dim = 64, .cache = DType::kBf16, .runs = {{0, 0, 130}}}, 64);
  check({.kv_heads = 1, .group = 2, .head_dim = 32, .runs = {{0, 319, 1}, {1, 256, 64}}}, 33);
}

void expect_same_bits(const Problem& p) {
  const Values values = make_values(p);
  for (IsaLevel level : available_isa_levels()) {
    BodyRig all = make_rig(p, values, 128);
    run(p, all, level);
    for (uint32_t row_tile : {1u, 2u, 7u, 16u, 64u}) {
      BodyRig few = make_rig(p, values, row_tile);
      run(p, few, level);
      ASSERT_EQ(std::memcmp(all.arena.data(), few.arena.data(), all.arena.size() * sizeof(float)), 0)
          << isa_level_name(level) << ", row tile " << row_tile << ", window " << p.window << ", parts "
          << p.parts;
    }
  }
}

TEST(AttentionBody, ARowHasTheSameBitsWhateverSharesItsTile) {
  for (uint32_t window : {0u, 50u}) {
    const Problem p{.kv_heads = 2,
                    .group = 3,
                    .head_dim = 36,
                    .window = window,
                    .runs = {{0, 30, 90}, {1, 10, 1}, {2, 200, 14}}};
    expect_same_bits(p);
    Problem in_parts = p;
    in_parts.parts = 3;
    expect_same_bits(in_parts);
  }
}

TEST(AttentionBody, PartsThatAreMergedAreSoftmax) {
  for (uint32_t parts : {1u, 2u, 3u, 5u, 16u, 17u, 32u}) {
    for (uint32_t window : {0u, 1u, 64u, 65u, 130u}) {
      SCOPED_TRACE("parts " + std::to_string(parts) + ", window " + std::to_string(window));
      check({.kv_heads = 2,
             .group = 3,
             .head_dim = 20,
             .window = window,
             .parts = parts,
             .runs = {{2, 0, 1}, {0, 255, 1}, {1, 100, 70}}},
            16);
    }
  }
  check({.kv_heads = 2, .group = 2, .head_dim = 64, .softcap = 5, .scale = 0.5f, .parts = 4, .runs = kMixed},
        16);
  check(
      {.kv_heads = 1, .group = 71, .head_dim = 16, .cache = DType::kBf16, .parts = 4, .runs = {{0, 250, 3}}},
      64);
}

// Positions 12 to 191 and 13 to 192: three units over four parts, one of which has none, and four.
TEST(AttentionBody, APartHoldsTheOutputsTheMaximaAndTheSumsOfItsPositions) {
  const Problem p{
      .kv_heads = 2, .group = 3, .head_dim = 12, .window = 180, .parts = 4, .runs = {{0, 191, 2}}};
  const Values values = make_values(p);
  for (IsaLevel level : available_isa_levels()) {
    BodyRig rig = make_rig(p, values, 16);
    rig.run(level);
    for (uint32_t row = 0; row < p.n_rows(); ++row) {
      const uint32_t position = p.runs[0].first + row;
      for (uint32_t tile = 0; tile < p.kv_heads * p.parts; ++tile) {
        const PositionRange own =
            positions_of_part({position + 1 - p.window, position + 1}, tile % p.parts, p.parts);
        const float* found = rig.row(rig.packet.operand[2], row) + tile * p.layout().tile_cols();
        for (uint32_t query = 0; query < p.group; ++query) {
          const uint32_t head = tile / p.parts * p.group + query;
          const double* q = values.q.data() + (size_t{row} * p.kv_heads * p.group + head) * p.head_dim;
          double maximum = -INFINITY, sum = 0;
          std::vector<double> scores, out(p.head_dim);
          for (uint32_t j = own.begin; j < own.end; ++j) {
            double score = 0;
            for (uint32_t d = 0; d < p.head_dim; ++d)
              score += q[d] * values.k[values.at(p, 0, j, head / p.group, d)];
            scores.push_back(score * static_cast<double>(p.scale));
            maximum = std::max(maximum, scores.back());
          }
          for (uint32_t j = own.begin; j < own.end; ++j) {
            const double weight = std::exp(scores[j - own.begin] - maximum);
            sum += weight;
            for (uint32_t d = 0; d < p.head_dim; ++d)
              out[d] += weight * values.v[values.at(p, 0, j, head / p.group, d)];
          }
          if (own.begin >= own.end) {
            EXPECT_EQ(found[p.layout().maximum(query)], -INFINITY);
          } else {
            EXPECT_NEAR(static_cast<double>(found[p.layout().maximum(query)]), maximum, 1e-5);
          }
          EXPECT_NEAR(static_cast<double>(found[p.layout().sum(query)]), sum, 1e-5 * sum)
              << "part " << tile % p.parts;
          for (uint32_t d = 0; d < p.head_dim; ++d)
            EXPECT_NEAR(static_cast<double>(found[p.layout().output(query) + d]), out[d], 1e-5 * sum);
        }
      }
    }
  }
}

// Whole units, in order, all of them, none twice, and no part more than one unit longer than another.
TEST(AttentionBody, PartsOfPositionsAreWholeUnitsInOrder) {
  std::mt19937 random(4);
  for (int round = 0; round < 2000; ++round) {
    const auto end = 1 + static_cast<uint32_t>(random() % 3000),
               begin = static_cast<uint32_t>(random() % end);
    const uint32_t parts = 1 + static_cast<uint32_t>(random() % kMostAttentionParts);
    uint32_t next = begin, least = UINT32_MAX, most = 0;
    for (uint32_t part = 0; part < parts; ++part) {
      const PositionRange own = positions_of_part({begin, end}, part, parts);
      const bool empty = own.begin >= own.end;
      const uint32_t units = empty ? 0 : (own.end - 1) / 64 - own.begin / 64 + 1;
      least = std::min(least, units), most = std::max(most, units);
      if (empty) continue;
      ASSERT_EQ(own.begin, next);
      ASSERT_TRUE(own.begin == begin || own.begin % 64 == 0);
      ASSERT_TRUE(own.end == end || own.end % 64 == 0);
      next = own.end;
    }
    ASSERT_EQ(next, end);
    ASSERT_LE(most - least, 1u);
  }
}

TEST(AttentionBody, Avx2AndAvx512GiveTheSameBits) {
  const auto levels = available_isa_levels();
  if (std::find(levels.begin(), levels.end(), IsaLevel::kAvx512) == levels.end())
    GTEST_SKIP() << "no AVX-512 on this processor";
  for (uint32_t parts : {0u, 2u}) {
    const Problem p{.kv_heads = 2,
                    .group = 3,
                    .head_dim = 36,
                    .cache = DType::kBf16,
                    .window = 90,
                    .softcap = 20,
                    .parts = parts,
                    .runs = kMixed};
    const Values values = make_values(p);
    BodyRig narrow = make_rig(p, values, 16), wide = make_rig(p, values, 16);
    run(p, narrow, IsaLevel::kAvx2);
    run(p, wide, IsaLevel::kAvx512);
    EXPECT_EQ(std::memcmp(narrow.arena.data(), wide.arena.data(), narrow.arena.size() * sizeof(float)), 0);
  }
}

}  // namespace
}  // namespace plow
