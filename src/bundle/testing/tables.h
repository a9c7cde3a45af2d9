// Entries of a bundle's tables by hand, for tests.
#pragma once

#include "abi/step.h"
#include "bundle/bundle.h"

#include <algorithm>
#include <vector>

namespace plow {

// f32, row-major, without padding.
inline TensorEntry matrix(Space space, uint64_t offset, Rows kind, uint32_t rows, uint32_t cols) {
  return {.offset = offset,
          .bytes = uint64_t{rows} * cols * 4,
          .rows = rows,
          .cols = cols,
          .row_stride = cols * 4,
          .source = kNoSource,
          .kv_group = 0,
          .node = 0,
          .dtype = DType::kF32,
          .row_kind = kind,
          .space = space,
          .layout = Layout::kRowMajor,
          .reserved = 0};
}

inline TensorEntry column(StepColumn which, Rows kind, uint32_t rows) {
  TensorEntry tensor = matrix(Space::kStep, static_cast<uint64_t>(which), kind, rows, 1);
  tensor.dtype = DType::kU32;
  return tensor;
}

// `count` column tiles of an operator from tile `first` on, for every row tile.
inline Packet operation(Op op, Rows rows, std::vector<uint16_t> operands, uint32_t tile_cols, uint32_t first,
                        uint16_t count) {
  Packet packet{};
  packet.body = static_cast<uint16_t>(op);
  packet.row_kind = static_cast<uint8_t>(rows);
  packet.col_first = first;
  packet.col_count = count;
  packet.col_stride = 1;
  packet.row_stride = 1;
  packet.tile_cols = tile_cols;
  for (uint16_t& operand : packet.operand) operand = kNoTensor;
  std::copy(operands.begin(), operands.end(), packet.operand);
  return packet;
}

}  // namespace plow
