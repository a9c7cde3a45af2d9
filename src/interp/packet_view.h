// Reading a packet: its rows, its column ranges, and where its operands lie.
#pragma once

#include "interp/context.h"

namespace plow::dev {

struct Range {
  uint32_t begin, end;
};

PLOW_DEVICE uint32_t step_rows(const StepDescriptor& step, Rows rows) {
  if (rows == Rows::kTokens) return step.n_rows;
  return rows == Rows::kSamples ? step.n_samples : 1;
}

PLOW_DEVICE uint32_t row_tile_size(const ProgramTable& program, Rows rows) {
  if (rows == Rows::kTokens) return program.token_row_tile;
  return rows == Rows::kSamples ? program.sample_row_tile : 1;
}

PLOW_DEVICE uint32_t n_row_tiles(const ProgramTable& program, const StepDescriptor& step, Rows rows) {
  return ceil_div(step_rows(step, rows), row_tile_size(program, rows));
}

// Rows of a row tile up to which a program's weights stream past all its rows at once, as 16 rows of a matrix unit.
constexpr uint32_t kStreamedRows = 16;
// A program of more: GPUs that can make its products and its attention in tiles of many rows.
PLOW_DEVICE bool has_many_rows(const ProgramTable& program, const Packet& packet) {
  return row_tile_size(program, static_cast<Rows>(packet.row_kind)) > kStreamedRows;
}

// The rows of row tile `row_tile` of the packet in this step.
PLOW_DEVICE Range packet_rows(const BodyContext& ctx, const Packet& packet, uint32_t row_tile) {
  const Rows rows = static_cast<Rows>(packet.row_kind);
  const uint32_t size = row_tile_size(*ctx.program, rows);
  return {row_tile * size, min_u32((row_tile + 1) * size, step_rows(*ctx.step, rows))};
}

// The row of the step that row `row` of the packet's rows is. REQUIRES rows of tokens or samples.
PLOW_DEVICE uint32_t step_row(const BodyContext& ctx, const Packet& packet, uint32_t row) {
  return packet.row_kind == static_cast<uint8_t>(Rows::kSamples) ? ctx.step->sample_rows[row] : row;
}

// Calls f(begin, end) for the packet's ranges of output columns, neighbouring tiles as one range.
template <class F>
PLOW_DEVICE void for_columns(const Packet& packet, uint32_t cols, const F& f) {
  const uint32_t tiles_a_range = packet.col_stride == 1 ? packet.col_count : 1;
  PLOW_UNROLL_BY(1)
  for (uint32_t i = 0; i < packet.col_count; i += tiles_a_range) {
    const uint32_t begin = (packet.col_first + i * packet.col_stride) * packet.tile_cols;
    const uint32_t end = min_u32(begin + tiles_a_range * packet.tile_cols, cols);
    if (begin < end) f(begin, end);
  }
}

PLOW_DEVICE const TensorEntry& operand(const BodyContext& ctx, const Packet& packet, uint32_t i) {
  return ctx.program->tensors[packet.operand[i]];
}

// Row `row` of an activation.
PLOW_DEVICE float* arena_row(const BodyContext& ctx, const TensorEntry& tensor, uint32_t row) {
  return reinterpret_cast<float*>(ctx.device->arena + tensor.offset + size_t{row} * tensor.row_stride);
}

template <class T>
PLOW_DEVICE const T* tape_data(const BodyContext& ctx, const TensorEntry& tensor) {
  return reinterpret_cast<const T*>(ctx.device->tape + tensor.offset);
}

PLOW_DEVICE float immediate_f32(const Packet& packet, uint32_t i) {
  return bits_to<float>(packet.immediate[i]);
}

// Calls f(first element) with the tape tensor's elements as their type. REQUIRES f32, bf16 or f16.
template <class F>
PLOW_DEVICE void with_tape_type(const BodyContext& ctx, const TensorEntry& tensor, const F& f) {
  if (tensor.dtype == DType::kBf16) {
    f(tape_data<Bf16>(ctx, tensor));
  } else if (tensor.dtype == DType::kF16) {
    f(tape_data<F16>(ctx, tensor));
  } else {
    f(tape_data<float>(ctx, tensor));
  }
}

// Where the block that holds `position` of `slot` begins for this layer's tensor.
PLOW_DEVICE unsigned char* kv_block(const BodyContext& ctx, const TensorEntry& tensor, uint32_t slot,
                                    uint32_t position) {
  const KvGroup& group = ctx.device->kv_groups[tensor.kv_group];
  const uint32_t* table = ctx.step->block_tables[tensor.kv_group] + size_t{slot} * ctx.step->table_width;
  const uint32_t block = table[position / group.block_tokens];
  return ctx.device->kv_pools[tensor.kv_group] + size_t{block} * group.block_bytes + tensor.offset;
}

}  // namespace plow::dev
