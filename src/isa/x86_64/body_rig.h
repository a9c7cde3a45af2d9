// One body alone, for tests and benchmarks: a program of one packet, with its tensors, tape, arena, KV pool
// and step.
#pragma once

#include "abi/layout.h"
#include "base/check.h"
#include "base/float16.h"
#include "isa/x86_64/interpreter.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <random>
#include <span>
#include <vector>

namespace plow {

// Numbers around 1 with both signs, the same for the same seed.
inline std::vector<double> random_values(size_t n, uint32_t seed, double scale = 1) {
  std::mt19937 bits(seed);
  std::vector<double> values(n);
  for (double& v : values) v = scale * (static_cast<double>(bits()) / 2147483648.0 - 1.0);
  return values;
}

inline uint16_t double_to_f16(double value) {
  const auto half = static_cast<_Float16>(value);
  return std::bit_cast<uint16_t>(half);
}

// What a dtype keeps of a value.
inline double rounded(DType dtype, double value) {
  switch (dtype) {
    case DType::kBf16:
      return static_cast<double>(bf16_to_float(float_to_bf16(static_cast<float>(value))));
    case DType::kF16:
      return static_cast<double>(f16_to_float(double_to_f16(value)));
    case DType::kF32:
      return static_cast<double>(static_cast<float>(value));
    default:
      return value;
  }
}

// The bytes of a tape.
struct TapeBytes {
  std::vector<unsigned char> bytes;

  // Appends a matrix as its layout says, padded with zeros, at a multiple of 64; returns its offset.
  uint64_t append(DType dtype, Layout layout, uint32_t rows, uint32_t cols, std::span<const double> values) {
    const uint64_t offset = (bytes.size() + 63) / 64 * 64;
    const size_t padded_cols = (cols + 1) / 2 * 2, size = dtype_bytes(dtype);
    const AtomShape atoms = atom_shape(rows, cols, dtype_bytes(dtype));
    const auto place = [&](uint32_t r, uint32_t c) -> size_t {
      if (layout == Layout::kAtoms8x128) return atoms.offset(r, c * size);
      if (layout == Layout::kRows16Pairs)
        return (((r / 16 * (padded_cols / 2) + c / 2) * 16 + r % 16) * 2 + c % 2) * size;
      return (size_t{r} * cols + c) * size;
    };
    const size_t all = layout == Layout::kAtoms8x128    ? atoms.bytes()
                       : layout == Layout::kRows16Pairs ? (rows + 15) / 16 * 16 * padded_cols * size
                                                        : size_t{rows} * cols * size;
    bytes.resize(offset + all);
    for (uint32_t r = 0; r < rows; ++r) {
      for (uint32_t c = 0; c < cols; ++c)
        write(dtype, values[size_t{r} * cols + c], bytes.data() + offset + place(r, c));
    }
    return offset;
  }

  // Bytes that are packed already.
  uint64_t append(std::span<const unsigned char> packed) {
    const uint64_t offset = (bytes.size() + 63) / 64 * 64;
    bytes.resize(offset);
    bytes.insert(bytes.end(), packed.begin(), packed.end());
    return offset;
  }

  static void write(DType dtype, double value, unsigned char* to) {
    const auto f32 = static_cast<float>(value);
    const uint16_t bf16 = float_to_bf16(f32), f16 = double_to_f16(value);
    const void* from = dtype == DType::kF64   ? static_cast<const void*>(&value)
                       : dtype == DType::kF32 ? &f32
                                              : static_cast<const void*>(dtype == DType::kF16 ? &f16 : &bf16);
    std::memcpy(to, from, dtype_bytes(dtype));
  }
};

class BodyRig {
 public:
  static constexpr float kUntouched = -12345.0f;       // fills the arena before a run
  static constexpr unsigned char kScratchByte = 0xff;  // fills the scratch: NaN, and a bound

  // Sizes of the step. Rows get positions 0, 1, ... of slot 0 unless the test changes them.
  BodyRig(uint32_t n_rows, uint32_t n_samples, uint32_t row_tile) {
    token_ids.resize(n_rows);
    positions.resize(n_rows);
    row_slots.resize(n_rows);
    for (uint32_t i = 0; i < n_rows; ++i) positions[i] = i;
    sample_rows.resize(n_samples);
    for (uint32_t i = 0; i < n_samples; ++i) sample_rows[i] = i;
    sampling.resize(n_samples);
    sampled.resize(n_samples);
    program_.token_row_tile = program_.sample_row_tile = row_tile;
    packet.row_stride = packet.col_stride = packet.col_count = 1;
    for (uint16_t& operand : packet.operand) operand = kNoTensor;
    packet.row_kind = static_cast<uint8_t>(Rows::kTokens);
  }

  // An activation of so many columns; its rows lie `gap` floats further apart than they are long.
  uint16_t add_arena(uint32_t rows, uint32_t cols, std::span<const double> values = {}, uint32_t gap = 3) {
    TensorEntry entry = tensor(DType::kF32, Space::kArena, Layout::kRowMajor, rows, cols);
    entry.offset = arena.size() * sizeof(float);
    entry.row_stride = (cols + gap) * static_cast<uint32_t>(sizeof(float));
    arena.resize(arena.size() + size_t{rows} * (cols + gap), kUntouched);
    for (uint32_t r = 0; r < rows && !values.empty(); ++r) {
      for (uint32_t c = 0; c < cols; ++c) row(entry, r)[c] = static_cast<float>(values[size_t{r} * cols + c]);
    }
    return add(entry);
  }

  // A matrix of the tape, padded as its layout says.
  uint16_t add_tape(DType dtype, Layout layout, uint32_t rows, uint32_t cols,
                    std::span<const double> values) {
    TensorEntry entry = tensor(dtype, Space::kTape, layout, rows, cols);
    entry.offset = tape.append(dtype, layout, rows, cols, values);
    return add(entry);
  }

  // A matrix of blocks.
  uint16_t add_blocks(DType dtype, uint32_t rows, uint32_t cols, std::span<const unsigned char> packed) {
    TensorEntry entry = tensor(dtype, Space::kTape, Layout::kRows16Blocks, rows, cols);
    entry.offset = tape.append(packed);
    return add(entry);
  }

  uint16_t add_step(StepColumn column) {
    TensorEntry entry = tensor(DType::kU32, Space::kStep, Layout::kRowMajor, 1, 1);
    entry.offset = static_cast<uint64_t>(column);
    return add(entry);
  }

  // One layer's cache in KV group 0, at `offset` of its blocks.
  uint16_t add_cache(DType dtype, uint32_t kv_heads, uint32_t head_dim, uint64_t offset,
                     Layout layout = Layout::kKvBlocks) {
    TensorEntry entry = tensor(dtype, Space::kKv, layout, 1, kv_heads * head_dim);
    entry.offset = offset;
    entry.bytes = uint64_t{2} * kv_heads * head_dim * kv_group.block_tokens * dtype_bytes(dtype);
    return add(entry);
  }

  // All columns in one packet, as tiles of `tile_cols`.
  void cover_columns(uint32_t cols, uint32_t tile_cols) {
    packet.tile_cols = tile_cols;
    packet.col_count = static_cast<uint16_t>((cols + tile_cols - 1) / tile_cols);
  }

  // `poison`: fills the scratch first, so that nothing can be read that the body did not write.
  void run(IsaLevel level, bool poison = true) {
    run_by([&](const BodyContext& context,
               uint32_t row_tile) { x86_64_interpreter(level).run_body(context, packet, row_tile); },
           body_scratch_bytes(packet, tensors.data(), program_.token_row_tile), poison);
  }

  // body(context, row tile) runs each row tile with `scratch` bytes of scratch.
  template <class F>
  void run_by(const F& body, size_t scratch, bool poison = true) {
    StepDescriptor step{};
    step.n_rows = static_cast<uint32_t>(token_ids.size());
    step.n_samples = static_cast<uint32_t>(sample_rows.size());
    step.n_steps = 1;
    step.token_ids = token_ids.data();
    step.positions = positions.data();
    step.row_slots = row_slots.data();
    step.sample_rows = sample_rows.data();
    step.sampling = sampling.data();
    step.sampled = sampled.data();
    step.history = history.data();
    step.table_width = table_width;
    const uint32_t* tables[] = {block_table.data()};
    step.block_tables = tables;
    program_.tensors = tensors.data();
    unsigned char* pools[] = {pool.data()};
    Device device;
    device.tape = tape.bytes.data();
    device.arena = reinterpret_cast<unsigned char*>(arena.data());
    device.kv_pools = pools;
    device.kv_groups = &kv_group;
    device.history_stride = history_stride;
    const uint32_t tile = program_.token_row_tile;
    const uint32_t rows =
        packet.row_kind == static_cast<uint8_t>(Rows::kSamples) ? step.n_samples : step.n_rows;
    if (poison || scratch_.size() < scratch + 256) scratch_.assign(scratch + 256, kScratchByte);
    auto* aligned =
        reinterpret_cast<unsigned char*>((reinterpret_cast<uintptr_t>(scratch_.data()) + 63) / 64 * 64);
    const BodyContext context{&device, &program_, &step, aligned, 0};
    for (uint32_t r = 0; r * tile < rows; ++r) body(context, r);
    const bool inside = !poison || std::all_of(aligned + scratch, scratch_.data() + scratch_.size(),
                                               [](unsigned char byte) { return byte == kScratchByte; });
    PLOW_CHECK(inside, "{} writes past its {} bytes of scratch", op_name(static_cast<Op>(packet.body)),
               scratch);
  }

  float* row(const TensorEntry& entry, uint32_t r) {
    return arena.data() + entry.offset / sizeof(float) + size_t{r} * (entry.row_stride / sizeof(float));
  }
  float* row(uint16_t index, uint32_t r) { return row(tensors[index], r); }

  Packet packet{};
  std::vector<TensorEntry> tensors;
  TapeBytes tape;
  std::vector<unsigned char> pool;
  std::vector<float> arena;
  std::vector<uint32_t> token_ids, positions, row_slots, sample_rows, block_table, history;
  std::vector<SamplingParams> sampling;
  std::vector<Sampled> sampled;
  KvGroup kv_group{0, 16, 0, 1, 0};
  uint32_t table_width = 0, history_stride = 0;

 private:
  static TensorEntry tensor(DType dtype, Space space, Layout layout, uint32_t rows, uint32_t cols) {
    TensorEntry entry{};
    entry.dtype = dtype;
    entry.space = space;
    entry.layout = layout;
    entry.rows = rows;
    entry.cols = cols;
    return entry;
  }
  uint16_t add(const TensorEntry& entry) {
    tensors.push_back(entry);
    return static_cast<uint16_t>(tensors.size() - 1);
  }

  ProgramTable program_;
  std::vector<unsigned char> scratch_;
};

}  // namespace plow
