// The bodies of attention and of its parts for teams, alone on an emulated GPU, against softmax in double:
// head sizes, groups, windows, soft caps, cache dtypes, parts, lanes and waves. Blocks lie in shuffled order,
// and what no row may read is NaN.
#include "base/float16.h"
#include "interp/testing/emulated_team.h"
#include "isa/gpu/geometry.h"
#include "isa/gpu/support.h"
#include "ops/attention_merge/team_body.h"
#include "ops/attention_part/team_body.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>
#include <limits>
#include <random>
#include <vector>

namespace plow {
namespace {

constexpr uint32_t kSlots = 3, kBlocks = 24;  // blocks of a slot
constexpr float kUntouched = -12345.0f;

struct Problem {
  uint32_t kv_heads = 1, queries = 3, head_dim = 16;
  DType cache = DType::kBf16;
  uint32_t window = 0;
  float softcap = 0, scale = 0.25f;
  uint32_t parts = 0;                      // 0: attention itself
  std::vector<uint32_t> slots{}, positions{};  // of the rows
  bool sampled = false;                    // rows 1, 0, 2, ... of these
  uint32_t row_tile = 2;
  uint64_t seed = 1;  // of the order in which threads run

  uint32_t cols() const { return kv_heads * queries * head_dim; }
  uint32_t n_rows() const { return static_cast<uint32_t>(slots.size()); }
  // The row of the step that output row r is.
  uint32_t step_row(uint32_t r) const { return sampled ? r ^ 1u : r; }
  PositionRange attended(uint32_t r) const {
    const uint32_t end = positions[step_row(r)] + 1;
    return {window != 0 && end > window ? end - window : 0, end};
  }
};

// Queries and the cache of a problem.
struct Memory {
  const Problem& p;
  std::vector<float> q;
  std::vector<unsigned char> pool;
  std::vector<uint32_t> table;
  size_t block_bytes;

  explicit Memory(const Problem& problem)
      : p(problem),
        q(size_t{p.n_rows()} * p.cols()),
        block_bytes(dtype_bytes(p.cache) * 2 * p.kv_heads * p.head_dim * kAttentionUnit) {
    std::mt19937 random(p.head_dim + p.window);
    const auto draw = [&] { return static_cast<float>(static_cast<double>(random()) / 2147483648.0 - 1.0); };
    for (float& value : q) value = 2 * draw();
    for (uint32_t i = 0; i < kSlots * kBlocks; ++i) table.push_back((i * 7 + 3) % (kSlots * kBlocks));
    pool.assign(block_bytes * kSlots * kBlocks, 0xff);
    for (uint32_t r = 0; r < p.n_rows(); ++r) {
      const PositionRange all = p.attended(r);
      for (uint32_t position = all.begin; position < all.end; ++position) {
        for (uint32_t c = 0; c < 2 * p.kv_heads * p.head_dim; ++c)
          store(draw(), at(p.slots[p.step_row(r)], position, c / p.head_dim, c % p.head_dim));
      }
    }
  }

  // Element d of part 2 * kv_head (a key) or 2 * kv_head + 1 (a value).
  double load(uint32_t slot, uint32_t position, uint32_t of_head, uint32_t d) const {
    const unsigned char* from = pool.data() + at(slot, position, of_head, d);
    if (p.cache == DType::kF32) {
      float value;
      std::memcpy(&value, from, sizeof(value));
      return double{value};
    }
    uint16_t bits;
    std::memcpy(&bits, from, sizeof(bits));
    return double{bf16_to_float(bits)};
  }

 private:
  size_t at(uint32_t slot, uint32_t position, uint32_t of_head, uint32_t d) const {
    const size_t row = of_head * kAttentionUnit + position % kAttentionUnit;
    return table[slot * kBlocks + position / kAttentionUnit] * block_bytes +
           (row * p.head_dim + d) * dtype_bytes(p.cache);
  }
  void store(float value, size_t offset) {
    const uint16_t bf16 = float_to_bf16(value);
    if (p.cache == DType::kF32) {
      std::memcpy(pool.data() + offset, &value, sizeof(value));
    } else {
      std::memcpy(pool.data() + offset, &bf16, sizeof(bf16));
    }
  }
};

struct alignas(64) Line {
  float values[16];
};

template <class Team>
constexpr uint64_t team_bytes() {
  const uint64_t bytes = dev::attention_team_bytes(Team::kLanes, 256 / Team::kLanes);
  if constexpr (dev::HasWarpUnit<Team>) return std::max<uint64_t>(bytes, dev::matrix_pass_bytes<Team>());
  return bytes;
}

// Runs the packets of a problem, one team after the other.
class Rig {
 public:
  Rig(const Problem& p, const Memory& memory) : p_(p) {
    const auto part_cols = static_cast<uint32_t>(layout().cols(p.kv_heads));
    add(Space::kArena, p.cols());
    add(Space::kKv, p.kv_heads * p.head_dim);
    add(Space::kArena, p.cols());
    if (p.parts != 0) add(Space::kArena, part_cols);
    arena_.assign(bytes_ / sizeof(Line), [] {
      Line line;
      std::fill(std::begin(line.values), std::end(line.values), kUntouched);
      return line;
    }());
    for (uint32_t r = 0; r < p.n_rows(); ++r)
      std::copy_n(memory.q.begin() + r * p.cols(), p.cols(), row(0, r));
    for (uint32_t r = 0; r < p.n_rows(); ++r) sample_rows_.push_back(p.step_row(r));
    pool_ = memory.pool;
    tables_[0] = memory.table.data();
    pools_[0] = pool_.data();
    group_.block_tokens = kAttentionUnit;
    group_.block_bytes = memory.block_bytes;
    step_.n_rows = step_.n_samples = p.n_rows();
    step_.positions = const_cast<uint32_t*>(p.positions.data());
    step_.row_slots = p.slots.data();
    step_.sample_rows = sample_rows_.data();
    step_.block_tables = tables_;
    step_.table_width = kBlocks;
    program_.tensors = tensors_.data();
    program_.token_row_tile = program_.sample_row_tile = p.row_tile;
    device_.arena = reinterpret_cast<unsigned char*>(arena_.data());
    device_.kv_pools = pools_;
    device_.kv_groups = &group_;
  }

  // The outputs, row by row.
  template <class Team>
  std::vector<float> run(uint32_t waves) {
    const bool whole = p_.parts == 0;
    Packet packet =
        packet_of(whole ? Op::kAttention : Op::kAttentionPart, {0, 1, whole ? uint16_t{2} : uint16_t{3}});
    packet.immediate[1] = p_.window;
    packet.immediate[2] = std::bit_cast<uint32_t>(p_.scale);
    packet.immediate[3] = std::bit_cast<uint32_t>(p_.softcap);
    packet.immediate[4] = p_.parts;
    play<Team>(packet, whole ? p_.queries * p_.head_dim : static_cast<uint32_t>(layout().tile_cols()), waves);
    if (!whole) {
      packet = packet_of(Op::kAttentionMerge, {3, 2});
      packet.immediate[1] = p_.parts;
      packet.immediate[2] = p_.queries;
      play<Team>(packet, p_.queries * p_.head_dim, waves);
    }
    std::vector<float> out;
    for (uint32_t r = 0; r < p_.n_rows(); ++r) out.insert(out.end(), row(2, r), row(2, r) + p_.cols());
    return out;
  }
  const float* part(uint32_t r) { return row(3, r); }

 private:
  AttentionParts layout() const { return {p_.head_dim, p_.parts, p_.queries}; }
  float* row(uint16_t tensor, uint32_t r) {
    return arena_[0].values +
           (tensors_[tensor].offset + size_t{r} * tensors_[tensor].row_stride) / sizeof(float);
  }
  void add(Space space, uint32_t cols) {
    TensorEntry entry{};
    entry.space = space;
    entry.dtype = space == Space::kKv ? p_.cache : DType::kF32;
    entry.layout = space == Space::kKv ? Layout::kKvRows : Layout::kRowMajor;
    entry.row_kind = p_.sampled ? Rows::kSamples : Rows::kTokens;
    entry.cols = cols;
    if (space == Space::kArena) {
      entry.offset = bytes_;
      entry.row_stride = (cols + 16) / 16 * static_cast<uint32_t>(sizeof(Line));
      bytes_ += size_t{entry.row_stride} * p_.n_rows();
    }
    tensors_.push_back(entry);
  }
  Packet packet_of(Op op, std::vector<uint16_t> operands) const {
    Packet packet{};
    packet.body = static_cast<uint16_t>(op);
    packet.row_kind = static_cast<uint8_t>(p_.sampled ? Rows::kSamples : Rows::kTokens);
    packet.row_stride = packet.col_stride = 1;
    std::fill(std::begin(packet.operand), std::end(packet.operand), kNoTensor);
    std::copy(operands.begin(), operands.end(), packet.operand);
    packet.immediate[0] = p_.head_dim;
    return packet;
  }
  // A packet of every tile but the last, and one of that.
  template <class Team>
  void play(Packet packet, uint32_t tile_cols, uint32_t waves) {
    EXPECT_EQ(gpu::unsupported_reason(packet, tensors_.data()), "");
    const uint16_t output = packet.operand[2] == kNoTensor ? packet.operand[1] : packet.operand[2];
    const uint32_t tiles = tensors_[output].cols / tile_cols;
    packet.tile_cols = tile_cols;
    for (const auto& [first, count] : {std::pair{0u, tiles - 1}, std::pair{tiles - 1, 1u}}) {
      if (count == 0) continue;
      packet.col_first = first;
      packet.col_count = static_cast<uint16_t>(count);
      constexpr uint64_t kSharedBytes = team_bytes<Team>();
      emulated::EmulatedGpu gpu(1, waves * Team::kLanes, 0, Team::kLanes, kSharedBytes, p_.seed);
      gpu.run([&](uint32_t, unsigned char* shared) {
        const BodyContext context{&device_, &program_, &step_, nullptr, 0, shared};
        for (uint32_t r = 0; r * program_.token_row_tile < p_.n_rows(); ++r) {
          if (static_cast<Op>(packet.body) == Op::kAttentionMerge) {
            dev::attention_merge_team_body<Team>(context, packet, r);
            continue;
          }
          if (dev::attends_by_matrices<Team>(context, packet)) dev::attention_matrices_team_body<Team>(context, packet, r);
          dev::attention_team_body<Team>(context, packet, r);
        }
      });
    }
  }

  const Problem& p_;
  size_t bytes_ = 0;
  std::vector<TensorEntry> tensors_;
  std::vector<Line> arena_;
  std::vector<unsigned char> pool_;
  std::vector<uint32_t> sample_rows_;
  const uint32_t* tables_[1] = {};
  unsigned char* pools_[1] = {};
  KvGroup group_{};
  StepDescriptor step_{};
  ProgramTable program_{};
  Device device_{};
};

// One query's output in double over some positions, not divided; its largest score and its sum.
struct Softmax {
  std::vector<double> out;
  double maximum = -std::numeric_limits<double>::infinity(), sum = 0;
};
Softmax softmax_of(const Problem& p, const Memory& memory, uint32_t r, uint32_t head,
                   PositionRange positions) {
  const uint32_t slot = p.slots[p.step_row(r)], kv_head = head / p.queries;
  Softmax result{std::vector<double>(p.head_dim)};
  std::vector<double> scores;
  for (uint32_t position = positions.begin; position < positions.end; ++position) {
    double score = 0;
    for (uint32_t d = 0; d < p.head_dim; ++d)
      score += double{memory.q[size_t{r} * p.cols() + head * p.head_dim + d]} *
               memory.load(slot, position, 2 * kv_head, d);
    score *= double{p.scale};
    if (p.softcap > 0) score = double{p.softcap} * std::tanh(score / double{p.softcap});
    scores.push_back(score);
    result.maximum = std::max(result.maximum, score);
  }
  for (uint32_t position = positions.begin; position < positions.end; ++position) {
    const double weight = std::exp(scores[position - positions.begin] - result.maximum);
    result.sum += weight;
    for (uint32_t d = 0; d < p.head_dim; ++d)
      result.out[d] += weight * memory.load(slot, position, 2 * kv_head + 1, d);
  }
  return result;
}

// Scores are below 2 sqrt(d) or so; head_dim roundings of 2^-24 each, and an exponential: far below this.
constexpr double kTolerance = 3e-5;

// Rows whose parts are not all there.
template <class Team>
bool left_to_one_part(const Problem& p, uint32_t r) {
  const bool before = r > 0 && p.slots[r - 1] == p.slots[r], behind = r + 1 < p.n_rows() && p.slots[r + 1] == p.slots[r];
  return dev::HasWarpUnit<Team> && p.row_tile > 16 && p.cache == DType::kBf16 && p.head_dim <= 128 && p.head_dim % 8 == 0 && (before || behind);
}

template <class Team>
void check_waves(const Problem& p, uint32_t waves) {
  SCOPED_TRACE(std::to_string(Team::kLanes) + " lanes, " + std::to_string(waves) + " waves, head " +
               std::to_string(p.head_dim) + ", parts " + std::to_string(p.parts) + ", window " +
               std::to_string(p.window));
  const Memory memory(p);
  Rig rig(p, memory);
  const std::vector<float> found = rig.run<Team>(waves);
  const AttentionParts layout{p.head_dim, p.parts, p.queries};
  for (uint32_t r = 0; r < p.n_rows(); ++r) {
    for (uint32_t head = 0; head < p.kv_heads * p.queries; ++head) {
      const Softmax expected = softmax_of(p, memory, r, head, p.attended(r));
      for (uint32_t d = 0; d < p.head_dim; ++d)
        ASSERT_NEAR(double{found[size_t{r} * p.cols() + head * p.head_dim + d]},
                    expected.out[d] / expected.sum, kTolerance)
            << "row " << r << ", head " << head << ", column " << d;
      if (left_to_one_part<Team>(p, r)) continue;
      for (uint32_t part = 0; part < p.parts; ++part) {
        const PositionRange own = positions_of_part(p.attended(r), part, p.parts);
        const Softmax of_part = softmax_of(p, memory, r, head, own);
        const float* tile = rig.part(r) + (head / p.queries * p.parts + part) * layout.tile_cols();
        const uint32_t query = head % p.queries;
        if (own.begin >= own.end) {
          ASSERT_EQ(tile[layout.maximum(query)], -std::numeric_limits<float>::infinity());
        } else {
          ASSERT_NEAR(double{tile[layout.maximum(query)]}, of_part.maximum, kTolerance);
        }
        ASSERT_NEAR(double{tile[layout.sum(query)]}, of_part.sum, kTolerance * of_part.sum);
        for (uint32_t d = 0; d < p.head_dim; ++d)
          ASSERT_NEAR(double{tile[layout.output(query) + d]}, of_part.out[d],
                      kTolerance * std::max(1.0, of_part.sum));
      }
    }
  }
}

void check(const Problem& p) {
  check_waves<emulated::EmulatedTeam<32>>(p, 2);
  check_waves<emulated::EmulatedTeam<32>>(p, 8);
  check_waves<emulated::EmulatedTeam<64>>(p, 4);
}

const std::vector<uint32_t> kMixedSlots = {2, 0, 1}, kMixedPositions = {0, 200, 63};

TEST(TeamAttention, IsSoftmaxForEveryHeadSizeAtOnceAndInParts) {
  for (const uint32_t head_dim : {2u, 8u, 20u, 64u, 80u, 128u, 250u, 256u, 264u, 512u}) {
    for (const uint32_t parts : {0u, 3u}) {
      const DType cache = head_dim % 16 == 0 || head_dim > 256 ? DType::kBf16 : DType::kF32;
      check({.kv_heads = 2,
             .queries = 2,
             .head_dim = head_dim,
             .cache = cache,
             .parts = parts,
             .slots = kMixedSlots,
             .positions = kMixedPositions});
      if (HasFatalFailure()) return;
    }
  }
  for (const DType cache : {DType::kBf16, DType::kF32})
    check({.head_dim = 130, .cache = cache, .parts = 2, .slots = {1}, .positions = {90}});
}

TEST(TeamAttention, TakesAnyNumberOfQueryHeadsWindowsAndCaps) {
  for (const uint32_t queries : {1u, 4u, 5u, 8u})
    check({.queries = queries, .parts = 2, .slots = kMixedSlots, .positions = kMixedPositions});
  for (const uint32_t window : {1u, 2u, 63u, 64u, 65u, 130u}) {
    for (const uint32_t parts : {0u, 1u, 2u, 5u, 32u})
      check({.kv_heads = 2,
             .queries = 2,
             .window = window,
             .parts = parts,
             .slots = {0, 1},
             .positions = {255, 128}});
  }
  check({.softcap = 1.5f, .parts = 2, .slots = {0}, .positions = {300}});
  check({.parts = 3, .slots = {0, 1}, .positions = {1000, 30}, .sampled = true});
  check({.head_dim = 64, .parts = 2, .slots = {0}, .positions = {1500}});
}

// `n` rows of slot `slot` from position `first` on, behind what is there.
void add_rows(Problem& p, uint32_t slot, uint32_t first, uint32_t n) {
  for (uint32_t i = 0; i < n; ++i) {
    p.slots.push_back(slot);
    p.positions.push_back(first + i);
  }
}

// A prompt's chunk that ends in another row tile, a row of decode, a chunk of two rows and one behind what is cached.
Problem many_rows(Problem p) {
  p.row_tile = 24;
  add_rows(p, 0, 0, 41);
  add_rows(p, 1, 70, 1);
  add_rows(p, 2, 126, 4);
  return p;
}

TEST(TeamAttention, ManyRowsGoByMatrices) {
  using Team = emulated::EmulatedWarpTeam;
  for (const uint32_t head_dim : {8u, 56u, 64u, 72u, 128u}) {
    for (const uint32_t parts : {0u, 3u}) {
      check_waves<Team>(many_rows({.kv_heads = 2, .queries = head_dim == 64 ? 4u : 1u, .head_dim = head_dim, .parts = parts}), 3);
      if (HasFatalFailure()) return;
    }
  }
  for (const uint32_t window : {1u, 17u, 64u, 65u, 100u}) {
    check_waves<Team>(many_rows({.queries = 3, .window = window, .parts = 2}), 3);
    if (HasFatalFailure()) return;
  }
  check_waves<Team>(many_rows({.queries = 5, .softcap = 1.5f}), 3);
  check_waves<Team>(many_rows({.head_dim = 20, .parts = 2}), 3);                        // not by matrices:
  check_waves<Team>(many_rows({.head_dim = 136, .parts = 2}), 3);                       // registers
  check_waves<Team>(many_rows({.head_dim = 64, .cache = DType::kF32, .parts = 2}), 3);  // or the cache's type forbid it
}

// A chunk alone, and behind a chunk or a row of others, so that tiles of rows and of the unit begin elsewhere.
TEST(TeamAttention, AChunksRowsHaveTheSameBitsWhateverSharesTheStep) {
  using Team = emulated::EmulatedWarpTeam;
  for (const uint32_t parts : {0u, 4u}) {
    std::vector<std::vector<float>> seen;
    for (const uint32_t before : {0u, 1u, 7u}) {
      Problem p{.queries = 3, .head_dim = 64, .window = 90, .parts = parts, .row_tile = 24, .seed = before + 1};
      add_rows(p, 1, 5, before);
      add_rows(p, 0, 60, 30);
      Problem chunk = p;
      chunk.slots.assign(30, 0), chunk.positions.assign(p.positions.end() - 30, p.positions.end());
      const Memory of_chunk(chunk);
      Memory memory(p);
      memory.pool = of_chunk.pool;
      for (uint32_t block = 0; block < 2; ++block) {  // of slot 1, any numbers
        const size_t at = memory.table[kBlocks + block] * memory.block_bytes;
        std::fill_n(memory.pool.begin() + static_cast<std::ptrdiff_t>(at), memory.block_bytes, static_cast<unsigned char>(0x3f));
      }
      std::copy(of_chunk.q.begin(), of_chunk.q.end(), memory.q.end() - static_cast<std::ptrdiff_t>(of_chunk.q.size()));
      const std::vector<float> found = Rig(p, memory).run<Team>(3);
      seen.emplace_back(found.end() - static_cast<std::ptrdiff_t>(of_chunk.q.size()), found.end());
    }
    EXPECT_EQ(seen[0], seen[1]);
    EXPECT_EQ(seen[0], seen[2]);
  }
}

// Decode and prompts, alone and among others, in whatever order threads run.
TEST(TeamAttention, ARowHasTheSameBitsWhateverSharesTheStepAndWhateverTheOrder) {
  using Team = emulated::EmulatedTeam<32>;
  for (const uint32_t parts : {0u, 4u}) {
    Problem all{.kv_heads = 2,
                .head_dim = 64,
                .window = 150,
                .parts = parts,
                .slots = {0, 1, 1, 2, 0},
                .positions = {300, 77, 78, 0, 301}};
    const Memory memory(all);
    Rig rig(all, memory);
    const std::vector<float> together = rig.run<Team>(8);
    for (uint32_t r = 0; r < all.n_rows(); ++r) {
      Problem alone = all;
      alone.slots = {all.slots[r]}, alone.positions = {all.positions[r]};
      alone.seed = r + 2;
      Memory own = memory;
      own.q.assign(memory.q.begin() + r * all.cols(), memory.q.begin() + (r + 1) * all.cols());
      const std::vector<float> found = Rig(alone, own).run<Team>(8);
      ASSERT_EQ(std::memcmp(found.data(), together.data() + r * all.cols(), found.size() * sizeof(float)), 0)
          << "row " << r << ", parts " << parts;
    }
  }
}

}  // namespace
}  // namespace plow
