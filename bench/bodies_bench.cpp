// How fast the bodies that matter run, one worker alone. CPU time counts, so other programs on the machine
// disturb less.
//
// linear: "bytes" are those of the weights; decode is compared with the memory's read bandwidth, prefill with
// the FMA peak. attention: "bytes" are those of keys and values that the rows read, once a KV head.
#include "isa/x86_64/body_rig.h"

#include <benchmark/benchmark.h>

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
  rig.packet.operand[1] = rig.add_tape(dtype, Layout::kRows16Pairs, n, k, random_values(size_t{n} * k, 2));
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
    rig.run(level);
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
    rig.run(level);
    benchmark::DoNotOptimize(rig.arena.data());
  }
  using benchmark::Counter;
  const double pairs = rows * (position + (rows + 1) / 2.0);  // of a row and a position that it attends to
  state.counters["flops"] =
      Counter(4 * pairs * cols, Counter::kIsIterationInvariantRate, Counter::OneK::kIs1000);
  state.counters["kv_bytes"] = Counter(2.0 * (position + rows) * kKvHeads * head_dim * dtype_bytes(dtype),
                                       Counter::kIsIterationInvariantRate, Counter::OneK::kIs1000);
}

void register_all() {
  for (IsaLevel level : available_isa_levels()) {
    for (DType dtype : {DType::kBf16, DType::kF32}) {
      const std::string name = std::string("linear/") + isa_level_name(level) + "/" + dtype_name(dtype);
      auto* bench = benchmark::RegisterBenchmark(
          name.c_str(), [=](benchmark::State& state) { linear(state, level, dtype); });
      bench->ArgNames({"rows", "k", "n", "far"});
      for (int64_t rows : {1, 2, 4, 8}) bench->Args({rows, 576, 1536, 1});
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
