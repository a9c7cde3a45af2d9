// One body alone on an emulated team: BodyRig, its memory laid out as GPUs have it.
#pragma once

#include "graph/eval_context.h"
#include "graph/op_def.h"
#include "interp/testing/emulated_team.h"
#include "isa/emulated/bodies.h"
#include "isa/gpu/geometry.h"
#include "isa/gpu/support.h"
#include "isa/x86_64/body_rig.h"

#include <algorithm>
#include <vector>

namespace plow {

// Which column tiles a packet has. count 0: all.
struct TileColumns {
  uint32_t tile_cols, first = 0, count = 0, stride = 1;
};

template <class Team>
class TeamRig : public BodyRig {
 public:
  TeamRig(uint32_t n_rows, uint32_t n_samples, uint32_t row_tile) : BodyRig(n_rows, n_samples, row_tile) {
    kv_group.block_tokens = gpu::kKvBlockTokens;
  }

  // An activation whose rows begin at multiples of 16 bytes and have something behind them.
  uint16_t add_rows(uint32_t rows, uint32_t cols, std::span<const double> values = {}) {
    return add_arena(rows, cols, values, 4 + (4 - cols % 4) % 4);
  }
  uint16_t add_row_of_tape(DType dtype, std::span<const double> values) {
    return add_tape(dtype, Layout::kRowMajor, 1, static_cast<uint32_t>(values.size()), values);
  }

  // Runs one operator; the last operand is its output.
  void call(Op op, std::vector<uint16_t> operands, const std::vector<uint32_t>& immediates,
            const TileColumns& columns, Rows rows = Rows::kTokens) {
    packet = {};
    packet.body = static_cast<uint16_t>(op);
    packet.row_kind = static_cast<uint8_t>(rows);
    packet.row_stride = packet.col_stride = 1;
    std::fill(std::begin(packet.operand), std::end(packet.operand), kNoTensor);
    std::copy(operands.begin(), operands.end(), packet.operand);
    std::copy(immediates.begin(), immediates.end(), packet.immediate);
    cover_columns(tensors[operands.back()].cols, columns.tile_cols);
    packet.col_first = columns.first;
    packet.col_stride = static_cast<uint16_t>(columns.stride);
    if (columns.count != 0) packet.col_count = static_cast<uint16_t>(columns.count);
    run_team();
  }

  // The packet as it stands, by two waves.
  void run_team() {
    const std::string reason = gpu::unsupported_reason(packet, tensors.data());
    PLOW_CHECK(reason.empty(), "{}", reason);
    constexpr uint64_t kSharedBytes = 61440;  // the least that a GPU's team has
    run_by(
        [&](const BodyContext& context, uint32_t row_tile) {
          emulated::EmulatedGpu gpu(1, 2 * Team::kLanes, 0, Team::kLanes, kSharedBytes, seed_++);
          gpu.run([&](uint32_t, unsigned char* shared) {
            BodyContext own = context;
            own.shared = shared;
            emulated::Bodies::run<Team>(own, packet, row_tile);
          });
        },
        gpu::body_scratch_bytes(packet, tensors.data()));
  }

  // What an activation or a row of the tape holds.
  Matrix matrix(uint16_t index) {
    const TensorEntry& entry = tensors[index];
    Matrix out(entry.rows, entry.cols);
    for (uint32_t r = 0; r < entry.rows; ++r) {
      for (uint32_t c = 0; c < entry.cols; ++c) {
        out.row(r)[c] = entry.space == Space::kTape ? tape_value(entry, size_t{r} * entry.cols + c)
                                                    : static_cast<double>(row(entry, r)[c]);
      }
    }
    return out;
  }

 private:
  double tape_value(const TensorEntry& entry, size_t i) const {
    const unsigned char* at = tape.bytes.data() + entry.offset + i * dtype_bytes(entry.dtype);
    if (entry.dtype == DType::kF32) {
      float value;
      std::memcpy(&value, at, sizeof(value));
      return static_cast<double>(value);
    }
    uint16_t bits;
    std::memcpy(&bits, at, sizeof(bits));
    return static_cast<double>(entry.dtype == DType::kBf16 ? bf16_to_float(bits) : f16_to_float(bits));
  }

  uint64_t seed_ = 1;  // of the order in which threads run
};

}  // namespace plow
