// How fast the bodies that matter run, one worker alone. CPU time counts, so other programs on the machine
// disturb less.
//
// linear: "bytes" are those of the weights; decode is compared with the memory's read bandwidth, prefill with
// the FMA peak. attention: "bytes" are those of keys and values that the rows read, once a KV head.
//
// fused: a fused operator beside the operators that it stands for, in one run.
#include "isa/x86_64/block_rig.h"

#include <benchmark/benchmark.h>
#include <time.h>

#include <algorithm>

namespace plow {
namespace {

// Weights of so many bytes come from memory, not from a cache, when a benchmark goes round them.
constexpr size_t kFarBytes = size_t{256} << 20;

void linear(benchmark::State& state, IsaLevel level, DType dtype) {
  const auto rows = static_cast<uint32_t>(state.range(0)), k = static_cast<uint32_t>(state.range(1)),
             n = static_cast<uint32_t>(state.range(2));
  const bool far = state.range(3) != 0;
  BodyRig rig(rows, 0, rows);
  rig.packet.body = static_cast<uint16_t>(Op::kLinear);
  rig.packet.operand[0] = rig.add_arena(rows, k, random_values(size_t{rows} * k, 1), 0);
  rig.packet.operand[1] =
      is_of_blocks(dtype) ? rig.add_blocks(dtype, n, k, random_blocks(dtype, n, k, 2).packed)
                          : rig.add_tape(dtype, Layout::kRows16Pairs, n, k, random_values(size_t{n} * k, 2));
  rig.packet.operand[2] = rig.add_arena(rows, n, {}, 0);
  rig.cover_columns(n, 16);
  const size_t matrix = rig.tape.bytes.size(), copies = far ? kFarBytes / matrix + 1 : 1;
  const std::vector<unsigned char> one = rig.tape.bytes;
  rig.tape.bytes.resize(matrix * copies);
  for (size_t i = 1; i < copies; ++i) std::memcpy(rig.tape.bytes.data() + i * matrix, one.data(), matrix);
  size_t copy = 0;
  for (auto _ : state) {
    rig.tensors[rig.packet.operand[1]].offset = copy * matrix;
    copy = (copy + 1) % copies;
    rig.run(level, false);
    benchmark::DoNotOptimize(rig.arena.data());
  }
  using benchmark::Counter;
  const double products = 2.0 * rows * k * n;
  state.counters["flops"] = Counter(products, Counter::kIsIterationInvariantRate, Counter::OneK::kIs1000);
  state.counters["weight_bytes"] =
      Counter(static_cast<double>(matrix), Counter::kIsIterationInvariantRate, Counter::OneK::kIs1000);
}

void attention(benchmark::State& state, IsaLevel level, DType dtype) {
  const auto rows = static_cast<uint32_t>(state.range(0)), position = static_cast<uint32_t>(state.range(1));
  const auto group = static_cast<uint32_t>(state.range(2)), head_dim = static_cast<uint32_t>(state.range(3));
  constexpr uint32_t kKvHeads = 3;
  BodyRig rig(rows, 0, rows);
  const uint32_t cols = kKvHeads * group * head_dim;
  for (uint32_t r = 0; r < rows; ++r) rig.positions[r] = position + r;
  rig.table_width = (position + rows + 15) / 16;
  rig.kv_group.block_bytes = uint64_t{2} * kKvHeads * head_dim * 16 * dtype_bytes(dtype);
  rig.pool.assign(rig.table_width * rig.kv_group.block_bytes, 0);
  for (uint32_t i = 0; i < rig.table_width; ++i) rig.block_table.push_back(i);
  rig.packet.body = static_cast<uint16_t>(Op::kAttention);
  rig.packet.operand[0] = rig.add_arena(rows, cols, random_values(size_t{rows} * cols, 1), 0);
  rig.packet.operand[1] = rig.add_cache(dtype, kKvHeads, head_dim, 0);
  rig.packet.operand[2] = rig.add_arena(rows, cols, {}, 0);
  rig.packet.immediate[0] = head_dim;
  rig.packet.immediate[2] = std::bit_cast<uint32_t>(0.125f);
  rig.cover_columns(cols, group * head_dim);
  for (auto _ : state) {
    rig.run(level, false);
    benchmark::DoNotOptimize(rig.arena.data());
  }
  using benchmark::Counter;
  const double pairs = rows * (position + (rows + 1) / 2.0);  // of a row and a position that it attends to
  state.counters["flops"] =
      Counter(4 * pairs * cols, Counter::kIsIterationInvariantRate, Counter::OneK::kIs1000);
  state.counters["kv_bytes"] = Counter(2.0 * (position + rows) * kKvHeads * head_dim * dtype_bytes(dtype),
                                       Counter::kIsIterationInvariantRate, Counter::OneK::kIs1000);
}

// One operator of a pair's arm, all columns in one packet.
Packet packet_of(const BodyRig& rig, Op op, std::initializer_list<uint16_t> operands,
                 std::initializer_list<uint32_t> immediates, uint32_t unit) {
  BodyRig one(1, 0, 1);
  one.packet.body = static_cast<uint16_t>(op);
  std::copy(operands.begin(), operands.end(), one.packet.operand);
  std::copy(immediates.begin(), immediates.end(), one.packet.immediate);
  one.cover_columns(rig.tensors[std::data(operands)[operands.size() - 1]].cols, unit);
  return one.packet;
}

// The sizes of SmolLM2-135M, and a rig with all that its layer's operators take.
constexpr uint32_t kHidden = 576, kFfn = 1536, kHeadDim = 64, kHeads = 9, kKvHeads = 3;
constexpr uint32_t kQ = kHeads * kHeadDim, kKv = kKvHeads * kHeadDim;

struct Layer {
  BodyRig rig;
  uint16_t x, gain, square, gate, up, down, h, wide, wide2, out, out2, q, q2, k, k2, v, table, cache,
      attended;

  Layer(uint32_t rows, uint32_t position) : rig(rows, 0, rows) {
    const auto arena = [&](uint32_t cols) {
      return rig.add_arena(rows, cols, random_values(size_t{rows} * cols, cols), 0);
    };
    const auto matrix = [&](uint32_t n, uint32_t k_) {
      return rig.add_tape(DType::kBf16, Layout::kRows16Pairs, n, k_,
                          random_values(size_t{n} * k_, n, 1 / std::sqrt(k_)));
    };
    gain = rig.add_tape(DType::kF32, Layout::kRowMajor, 1, kHidden, random_values(kHidden, 1));
    square = matrix(kHidden, kHidden);
    gate = matrix(kFfn, kHidden);
    up = matrix(kFfn, kHidden);
    down = matrix(kHidden, kFfn);
    for (uint16_t* tensor : {&x, &h, &out, &out2}) *tensor = arena(kHidden);
    for (uint16_t* tensor : {&wide, &wide2}) *tensor = arena(kFfn);
    for (uint16_t* tensor : {&q, &q2, &attended}) *tensor = arena(kQ);
    for (uint16_t* tensor : {&k, &k2, &v}) *tensor = arena(kKv);
    table = arena(kHeadDim);
    for (uint32_t r = 0; r < rows; ++r) rig.positions[r] = position + r;
    rig.table_width = (position + rows + 15) / 16;
    rig.kv_group.block_bytes = uint64_t{2} * kKv * 16 * sizeof(uint16_t);
    rig.pool.assign(rig.table_width * rig.kv_group.block_bytes, 0);
    for (uint32_t i = 0; i < rig.table_width; ++i) rig.block_table.push_back(i);
    cache = rig.add_cache(DType::kBf16, kKvHeads, kHeadDim, 0);
  }
  Packet op(Op op, std::initializer_list<uint16_t> operands, std::initializer_list<uint32_t> immediates,
            uint32_t unit = 16) const {
    return packet_of(rig, op, operands, immediates, unit);
  }
};

struct Pair {
  const char* name;
  std::vector<Packet> apart, fused;
};

std::vector<Pair> pairs_of(const Layer& l) {
  const uint32_t eps = std::bit_cast<uint32_t>(1e-5f), scale = std::bit_cast<uint32_t>(0.125f);
  const Packet norm = l.op(Op::kRmsNorm, {l.x, l.gain, l.h}, {eps, 0, kHidden}, kHidden);
  const uint32_t queries = kHeads / kKvHeads * kHeadDim;
  return {
      {"linear_add/576x576",
       {l.op(Op::kLinear, {l.h, l.square, l.out}, {}), l.op(Op::kAdd, {l.x, l.out, l.out2}, {})},
       {l.op(Op::kLinearAdd, {l.h, l.square, l.x, l.out2}, {0, kHidden})}},
      {"linear_add/1536x576",
       {l.op(Op::kLinear, {l.wide, l.down, l.out}, {}), l.op(Op::kAdd, {l.x, l.out, l.out2}, {})},
       {l.op(Op::kLinearAdd, {l.wide, l.down, l.x, l.out2}, {0, kFfn})}},
      {"norm_linear/576x576",
       {norm, l.op(Op::kLinear, {l.h, l.square, l.out}, {})},
       {l.op(Op::kNormLinear, {l.x, l.gain, l.square, l.out}, {eps, 0})}},
      {"glu_linear/576x1536",
       {l.op(Op::kLinear, {l.h, l.gate, l.wide}, {}), l.op(Op::kLinear, {l.h, l.up, l.wide2}, {}),
        l.op(Op::kGlu, {l.wide, l.wide2, l.wide}, {0})},
       {l.op(Op::kGluLinear, {l.h, l.gate, l.up, l.wide}, {0})}},
      {"norm_glu_linear/576x1536",
       {norm, l.op(Op::kLinear, {l.h, l.gate, l.wide}, {}), l.op(Op::kLinear, {l.h, l.up, l.wide2}, {}),
        l.op(Op::kGlu, {l.wide, l.wide2, l.wide}, {0})},
       {l.op(Op::kNormGluLinear, {l.x, l.gain, l.gate, l.up, l.wide}, {eps, 0, 0})}},
      {"norm_add/576",
       {norm, l.op(Op::kAdd, {l.out, l.h, l.out2}, {})},
       {l.op(Op::kNormAdd, {l.x, l.gain, l.out, l.out2}, {eps, 0}, kHidden)}},
      {"rope_kv_append/3x64",
       {l.op(Op::kRope, {l.k, l.table, l.k2}, {kHeadDim}, kHeadDim),
        l.op(Op::kKvAppend, {l.k2, l.v, l.cache, l.cache}, {kHeadDim}, kHeadDim)},
       {l.op(Op::kRopeKvAppend, {l.k, l.v, l.table, l.cache, l.cache}, {kHeadDim}, kHeadDim)}},
      {"rope_attention/9x64@512",
       {l.op(Op::kRope, {l.q, l.table, l.q2}, {kHeadDim}, kHeadDim),
        l.op(Op::kAttention, {l.q2, l.cache, l.attended}, {kHeadDim, 0, scale, 0}, queries)},
       {l.op(Op::kRopeAttention, {l.q, l.table, l.cache, l.attended}, {kHeadDim, 0, scale, 0}, queries)}},
  };
}

double cpu_seconds() {
  timespec now;
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
  return static_cast<double>(now.tv_sec) + static_cast<double>(now.tv_nsec) * 1e-9;
}

// Both arms in turn, so that what else the machine does falls on both: medians of the processor's time.
// Weights are in the caches as far as they fit.
void fused_pair(benchmark::State& state, IsaLevel level, size_t index) {
  Layer layer(static_cast<uint32_t>(state.range(0)), 512);
  const Pair pair = pairs_of(layer)[index];
  std::vector<double> apart, fused, ratios;
  const auto time = [&](const std::vector<Packet>& packets) {
    const double begin = cpu_seconds();
    for (const Packet& packet : packets) {
      layer.rig.packet = packet;
      layer.rig.run(level, false);
    }
    return cpu_seconds() - begin;
  };
  for (auto _ : state) {
    apart.push_back(time(pair.apart));
    fused.push_back(time(pair.fused));
    ratios.push_back(fused.back() / apart.back());
  }
  const auto median = [](std::vector<double>& values) {
    std::nth_element(values.begin(), values.begin() + static_cast<std::ptrdiff_t>(values.size() / 2),
                     values.end());
    return values[values.size() / 2];
  };
  state.counters["apart_us"] = median(apart) * 1e6;
  state.counters["fused_us"] = median(fused) * 1e6;
  state.counters["ratio"] = median(ratios);
}

void register_pairs(IsaLevel level) {
  const Layer layer(1, 512);
  const std::vector<Pair> pairs = pairs_of(layer);
  for (size_t i = 0; i < pairs.size(); ++i) {
    const std::string name = std::string("fused/") + isa_level_name(level) + "/" + pairs[i].name;
    auto* bench = benchmark::RegisterBenchmark(name.c_str(),
                                               [=](benchmark::State& state) { fused_pair(state, level, i); });
    bench->ArgName("rows")->Arg(1)->Arg(4)->Arg(64)->MinTime(0.4);
  }
}

void register_all() {
  for (IsaLevel level : available_isa_levels()) {
    for (DType dtype : {DType::kBf16, DType::kF32, DType::kQ8_0, DType::kQ4_0}) {
      const std::string name = std::string("linear/") + isa_level_name(level) + "/" + dtype_name(dtype);
      auto* bench = benchmark::RegisterBenchmark(
          name.c_str(), [=](benchmark::State& state) { linear(state, level, dtype); });
      bench->ArgNames({"rows", "k", "n", "far"});
      for (int64_t rows : {1, 2, 4, 8}) bench->Args({rows, 576, 1536, 1});
      bench->Args({1, 576, 1536, 0});
      bench->Args({1, 2048, 8192, 1});
      bench->Args({64, 576, 1536, 0});
      bench->Args({64, 2048, 2048, 0});
      bench->Args({256, 2048, 2048, 0});
    }
    for (DType dtype : {DType::kF32, DType::kBf16}) {
      const std::string name = std::string("attention/") + isa_level_name(level) + "/" + dtype_name(dtype);
      auto* bench = benchmark::RegisterBenchmark(
          name.c_str(), [=](benchmark::State& state) { attention(state, level, dtype); });
      bench->ArgNames({"rows", "position", "group", "head_dim"});
      for (int64_t position : {128, 2048, 16384}) bench->Args({1, position, 3, 64});
      bench->Args({1, 2048, 1, 64});
      bench->Args({1, 2048, 8, 128});
      bench->Args({64, 0, 3, 64});
      bench->Args({64, 2048, 3, 64});
      bench->Args({64, 2048, 4, 256});
    }
    register_pairs(level);
  }
}

}  // namespace
}  // namespace plow

int main(int argc, char** argv) {
  plow::register_all();
  benchmark::Initialize(&argc, argv);
  benchmark::RunSpecifiedBenchmarks();
  return 0;
}
