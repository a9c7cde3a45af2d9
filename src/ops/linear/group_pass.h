// Products of many rows by the unit of a group of four warps (HasGroupUnit of interp/team.h), for bf16. A tile is 64 rows by
// 256 outputs (of a gated product 128 of either matrix), whose sums the group holds in registers. Its other warps bring
// the weights, an atom's 64 columns of all outputs a step, into a ring in the team's memory; each warp of the group reads its
// rows of activations itself, 32 columns at a time and a step ahead, and splits them into three sets of bf16
// (split_activations.h).
//
// The sums of a set are not kept apart: a step of 16 columns adds the products of the last bits, of the middle, of the
// leading ones. A row's sums depend on nothing but that row, in ascending order of columns, so its bits are the same
// whatever shares the step.
#pragma once

#include "ops/linear/split_activations.h"
#include "ops/linear/team_product.h"
#include "ops/products.h"

namespace plow::dev {

constexpr uint32_t kTileRows = 64, kTileOutputs = 256;  // m64n256k16
constexpr uint32_t kStepAtoms = kTileOutputs / kAtomRows;
constexpr uint32_t kStepColumns = kAtomRowBytes / sizeof(Bf16);
constexpr uint32_t kStepSlices = kAtomRowBytes / 32;  // of 16 columns, in an atom
constexpr uint32_t kPartColumns = 32;  // of activations, that a warp brings at once: a line of the cache
constexpr uint32_t kPartSlices = kPartColumns / 16, kStepParts = kStepColumns / kPartColumns;
// What is multiplied, what comes next, and what comes while the group may still read the one before.
constexpr uint32_t kGroupSteps = 3;

struct alignas(kAtomBytes) GroupMemory {
  // From a row of sums to the next: rows' equal columns lie in different banks.
  static constexpr uint32_t kSumsStride = kTileOutputs + 4;
  // From a row of activations to the next: half a warp reads two columns each of four rows at once.
  static constexpr uint32_t kPartStride = kPartColumns + 8;

  union {
    unsigned char steps[kGroupSteps][kStepAtoms * kAtomBytes];
    float sums[kTileRows * kSumsStride];
  };
  float parts[kTileRows / 16][16 * kPartStride];  // of each warp of the group
  float gains[kGroupSteps][kStepColumns];
  float factors[kTileRows];  // of each row: the sum of its squares, then norm_factor()
};

// The same for the team and its tape, which brings no pieces for them.
template <class B>
PLOW_DEVICE bool is_for_group(const ProgramTable& program, const Packet& packet) {
  Product product{};
  return HasGroupUnit<B> && has_many_rows(program, packet) && product_of(packet, program.tensors, product) &&
         product.matrix->dtype == DType::kBf16 && (product.gain == nullptr || product.gain->dtype == DType::kF32);
}
template <class B>
PLOW_DEVICE bool is_for_group(const BodyContext& ctx, const Packet& packet) {
  return is_for_group<B>(*ctx.program, packet);
}

// Outputs of a tile.
PLOW_DEVICE uint32_t tile_width(const Product& product) { return product.up != nullptr ? kTileOutputs / 2 : kTileOutputs; }

// A tile of a packet's product.
struct GroupTile {
  const Product* product;
  AtomShape shape;
  uint32_t first_row, n_rows;
  uint32_t column, end;       // outputs of it, of either matrix; before `end`
  uint32_t first_atom, n_steps;  // of a row of the matrix

  PLOW_DEVICE_MEMBER bool is_gated() const { return product->up != nullptr; }
  PLOW_DEVICE_MEMBER uint32_t width() const { return tile_width(*product); }
};

// Which of a packet's tiles.
struct TileIndex {
  uint32_t row_tile, column, row;  // column and row: tiles of this file, in the packet's columns and in the row tile
};

// The columns of tile `column` of those of the packet, which has one range or ranges of one tile of its own; none: end <= begin.
PLOW_DEVICE Range tile_columns(const Packet& packet, uint32_t cols, uint32_t width, uint32_t column) {
  const uint32_t of_range = (packet.col_stride == 1 ? packet.col_count : 1) * packet.tile_cols, n = ceil_div(of_range, width);
  const uint32_t range = column / n, first = (packet.col_first + range * packet.col_stride) * packet.tile_cols;
  return {first + (column - range * n) * width, min_u32(first + of_range, cols)};
}
PLOW_DEVICE uint32_t column_tiles(const Packet& packet, uint32_t width) {
  if (packet.col_stride == 1) return ceil_div(packet.col_count * packet.tile_cols, width);
  return packet.col_count * ceil_div(packet.tile_cols, width);
}

// Each of the functions that are not inlined makes its tile of the index, for the reason that piece_pass.h gives.
// `product` becomes the packet's, to which the tile points.
PLOW_DEVICE GroupTile group_tile(const BodyContext& ctx, const Packet& packet, const TileIndex& index, Product& product) {
  (void)product_of(packet, ctx.program->tensors, product);
  const Range rows = packet_rows(ctx, packet, index.row_tile);
  const Range columns = tile_columns(packet, product.out->cols, tile_width(product), index.column);
  const uint32_t row = rows.begin + index.row * kTileRows, first_atom = product.k.begin / kStepColumns;
  return {&product,
          atom_shape(product.matrix->rows, product.matrix->cols, sizeof(Bf16)),
          row,
          min_u32(kTileRows, rows.end - row),
          columns.begin,
          columns.end,
          first_atom,
          ceil_div(product.k.end, kStepColumns) - first_atom};
}

// The threads that bring: those behind the group.
template <class B>
PLOW_DEVICE void bring_step(const BodyContext& ctx, const GroupTile& tile, uint32_t step, GroupMemory& memory) {
  constexpr uint32_t kUnits = kAtomBytes / kAtomUnitBytes, kThreads = B::kWaves * B::kLanes - B::kGroupThreads;
  unsigned char* to = memory.steps[step % kGroupSteps];
  if (step < tile.n_steps) {
    const uint32_t atom = tile.first_atom + step, chunk = atom / tile.shape.chunk_atoms;
    const uint64_t in_matrix = tile.shape.chunk_offset(chunk, tile.column / kAtomRows) +
                               uint64_t{atom - chunk * tile.shape.chunk_atoms} * kAtomBytes;
    const uint32_t of_one = tile.width() / kAtomRows, there = tile.end <= tile.column ? 0 : min_u32(of_one, ceil_div(tile.end - tile.column, kAtomRows));
    const unsigned char* matrix = ctx.device->tape + tile.product->matrix->offset + in_matrix;
    const unsigned char* up = tile.is_gated() ? ctx.device->tape + tile.product->up->offset + in_matrix : matrix;
    PLOW_UNROLL_BY(4)
    for (uint32_t i = B::thread() - B::kGroupThreads; i < kStepAtoms * kUnits; i += kThreads) {
      const uint32_t slot = i / kUnits, of = slot < of_one ? slot : slot - of_one;
      const unsigned char* from = (slot < of_one ? matrix : up) + of * tile.shape.chunk_bytes() + i % kUnits * kAtomUnitBytes;
      B::template stage<kAtomUnitBytes>(to + i * kAtomUnitBytes, of < there ? from : matrix, of < there);
    }
    const uint32_t t = B::thread() - B::kGroupThreads, first = atom * kStepColumns + 4 * t;
    if (tile.product->gain != nullptr && t < kStepColumns / 4) {
      const float* gain = tape_data<float>(ctx, *tile.product->gain);
      PLOW_UNROLL
      for (uint32_t i = 0; i < 4; ++i)
        B::template stage<4>(memory.gains[step % kGroupSteps] + 4 * t + i, gain + min_u32(first + i, tile.product->k.end - 1), true);
    }
  }
  B::commit_stage();
}

// Two meetings a step: its weights are there; the group has done with the step before.
template <class B>
PLOW_DEVICE void bring_tile(const BodyContext& ctx, const GroupTile& tile, GroupMemory& memory) {
  bring_step<B>(ctx, tile, 0, memory);
  bring_step<B>(ctx, tile, 1, memory);
  PLOW_UNROLL_BY(1)
  for (uint32_t step = 0; step < tile.n_steps; ++step) {
    B::await_stage(true);
    B::staged_for_group();
    B::settle();
    B::settle();
    bring_step<B>(ctx, tile, step + 2, memory);
  }
  B::await_stage(false);
}

struct alignas(8) TwoFloats {
  float value[2];
};

// A warp's 16 rows of a part: a lane asks for four columns of rows l / 8, l / 8 + 4 and so on, whole lines of the cache a row.
struct LanePart {
  FourFloats rows[4];
};
// Where they are, and which columns are the product's: held in registers, since what meets forgets what was read.
struct LaneRows {
  const float* tile;
  uint32_t offset[4];
  Range k;
  uint32_t first;  // of the lane's columns, in part 0
};
template <class B>
PLOW_DEVICE LaneRows lane_rows(const BodyContext& ctx, const GroupTile& tile) {
  const TensorEntry& x = *tile.product->x;
  LaneRows rows{arena_row(ctx, x, tile.first_row), {}, tile.product->k, tile.first_atom * kStepColumns + lane<B>() % 8 * 4};
  PLOW_UNROLL
  for (uint32_t i = 0; i < 4; ++i)
    rows.offset[i] = min_u32(wave<B>() * 16 + lane<B>() / 8 + 4 * i, tile.n_rows - 1) * (x.row_stride / static_cast<uint32_t>(sizeof(float)));
  return rows;
}

// Of rows that are not there others', whose sums count for nothing. Without a branch, like what follows: between products that
// are under way the group's threads must not part.
PLOW_DEVICE void load_part(const LaneRows& from, uint32_t part, LanePart& to) {
  const uint32_t column = from.first + part * kPartColumns;
  const uint32_t there = column < from.k.end ? column : from.k.begin / 4 * 4;
  PLOW_UNROLL
  for (uint32_t i = 0; i < 4; ++i) to.rows[i] = *reinterpret_cast<const FourFloats*>(from.tile + from.offset[i] + there);
}
// 0 outside of the product's columns: only here, since a look at what was asked for waits for it.
template <class B>
PLOW_DEVICE void leave_part(const LaneRows& from, uint32_t part, LanePart& own, float* rows) {
  const uint32_t column = from.first + part * kPartColumns;
  PLOW_UNROLL
  for (uint32_t i = 0; i < 4; ++i) {
    PLOW_UNROLL
    for (uint32_t j = 0; j < 4; ++j)
      own.rows[i].value[j] = column + j >= from.k.begin && column + j < from.k.end ? own.rows[i].value[j] : 0.0f;
    *reinterpret_cast<FourFloats*>(rows + (lane<B>() / 8 + 4 * i) * GroupMemory::kPartStride + lane<B>() % 8 * 4) = own.rows[i];
  }
}

// A lane's activations of a slice, as HasGroupUnit takes them.
template <class B>
PLOW_DEVICE void load_slice(const float* rows, uint32_t slice, float (&x)[8]) {
  const float* own = rows + lane<B>() / 4 * GroupMemory::kPartStride + slice * 16 + lane<B>() % 4 * 2;
  PLOW_UNROLL
  for (uint32_t half = 0; half < 2; ++half) {
    PLOW_UNROLL
    for (uint32_t u = 0; u < 2; ++u) {
      const TwoFloats two = *reinterpret_cast<const TwoFloats*>(own + 8 * u * GroupMemory::kPartStride + 8 * half);
      x[4 * half + 2 * u] = two.value[0];
      x[4 * half + 2 * u + 1] = two.value[1];
    }
  }
}

// The norm's part in a slice: squares, and gains.
template <class B>
PLOW_DEVICE void apply_gain(const float* gains, float offset, uint32_t slice, float (&slice_x)[8], float (&square)[2]) {
  const float* own = gains + slice * 16 + lane<B>() % 4 * 2;
  PLOW_UNROLL
  for (uint32_t half = 0; half < 2; ++half) {
    const TwoFloats gain = *reinterpret_cast<const TwoFloats*>(own + 8 * half);
    PLOW_UNROLL
    for (uint32_t i = 0; i < 4; ++i) {
      float& x = slice_x[4 * half + i];
      square[i / 2] = B::fma(x, x, square[i / 2]);
      x = B::mul(x, B::add(gain.value[i % 2], offset));
    }
  }
}

// All steps of a tile. `squares`: of a norm, the lane's parts of its two rows' sums of squares.
template <class B, bool kHasGain>
PLOW_DEVICE void multiply_steps(const BodyContext& ctx, const GroupTile& tile, GroupMemory& memory, float (&sums)[128],
                               float (&squares)[2]) {
  constexpr uint32_t kOnWay = kStepParts;  // parts of which a lane has activations on their way: one comes too late
  const LaneRows from = lane_rows<B>(ctx, tile);
  float* rows = memory.parts[wave<B>()];
  LanePart parts[kOnWay];
  PLOW_UNROLL
  for (uint32_t part = 0; part < kOnWay; ++part) load_part(from, part, parts[part]);
  squares[0] = squares[1] = 0;
  SplitActivations sets[2];
  PLOW_UNROLL_BY(1)
  for (uint32_t step = 0; step < tile.n_steps; ++step) {
    B::settle();
    const auto weights = B::group_operand(memory.steps[step % kGroupSteps]);
    PLOW_UNROLL
    for (uint32_t slice = 0; slice < kStepSlices; ++slice) {
      const uint32_t part = slice / kPartSlices;
      if (slice % kPartSlices == 0) {
        B::settle_wave();  // nobody reads the part before
        leave_part<B>(from, step * kStepParts + part, parts[part % kOnWay], rows);
        load_part(from, step * kStepParts + part + kOnWay, parts[part % kOnWay]);
        B::settle_wave();
      }
      B::template group_await<1>();
      if (slice == 1) B::settle();
      float x[8];
      load_slice<B>(rows, slice % kPartSlices, x);
      if constexpr (kHasGain) apply_gain<B>(memory.gains[step % kGroupSteps], tile.product->offset, slice, x, squares);
      sets[slice % 2] = split(x);
      B::group_begin();
      PLOW_UNROLL
      for (uint32_t set = kSplit; set-- > 0;)
        B::group_multiply_add(sets[slice % 2].words[set], weights, slice, step > 0 || slice > 0 || set + 1 < kSplit, sums);
      B::group_commit();
    }
  }
  B::template group_await<0>();
}

// The group's sums, and those of rows' squares, to the memory. (A root's slow path is a call, beside which ptxas would not
// let products be under way.)
template <class B, bool kHasGain>
PLOW_DEVICE void leave_sums(const float (&sums)[128], const float (&squares)[2], GroupMemory& memory) {
  const uint32_t row = wave<B>() * 16 + lane<B>() / 4;
  PLOW_UNROLL
  for (uint32_t u = 0; u < 2; ++u) {
    PLOW_UNROLL
    for (uint32_t j = 0; j < kTileOutputs / 8; ++j) {
      TwoFloats two{{sums[4 * j + 2 * u], sums[4 * j + 2 * u + 1]}};
      *reinterpret_cast<TwoFloats*>(memory.sums + (row + 8 * u) * GroupMemory::kSumsStride + 8 * j + lane<B>() % 4 * 2) = two;
    }
    if (!kHasGain) continue;
    float square = B::add(squares[u], B::lane_xor(squares[u], 1));
    square = B::add(square, B::lane_xor(square, 2));
    if (lane<B>() % 4 == 0) memory.factors[row + 8 * u] = square;
  }
}

// Four outputs of a row, and what is added to them.
struct GroupOutputs {
  uint32_t row, output;  // of the tile
  bool exist;
  FourFloats added;
};

template <class B>
PLOW_DEVICE void load_outputs(const BodyContext& ctx, const GroupTile& tile, uint32_t i, GroupOutputs& four) {
  const uint32_t of_row = tile.is_gated() ? kTileOutputs / 8 : kTileOutputs / 4;
  four.row = tile.is_gated() ? i / (kTileOutputs / 8) : i / (kTileOutputs / 4);
  four.output = (i - four.row * of_row) * 4;
  const uint32_t column = tile.column + four.output;
  four.exist = four.row < tile.n_rows && column < tile.end;
  if (!four.exist || tile.product->added == nullptr) return;
  four.added = *reinterpret_cast<const FourFloats*>(arena_row(ctx, *tile.product->added, tile.first_row + four.row) + column);
}

template <class B>
PLOW_DEVICE void store_outputs(const BodyContext& ctx, const GroupTile& tile, const GroupMemory& memory, const GroupOutputs& four) {
  const Product& product = *tile.product;
  const uint32_t column = tile.column + four.output;
  const float* at = memory.sums + four.row * GroupMemory::kSumsStride + four.output;
  FourFloats out = *reinterpret_cast<const FourFloats*>(at), up{};
  if (tile.is_gated()) up = *reinterpret_cast<const FourFloats*>(at + tile.width());
  PLOW_UNROLL
  for (uint32_t i = 0; i < 4; ++i)
    out.value[i] = output_of<B>(ctx, product, column + i, out.value[i], up.value[i], memory.factors[four.row], four.added.value[i]);
  float* to = arena_row(ctx, *product.out, tile.first_row + four.row) + column;
  if (column + 4 <= tile.end) {
    *reinterpret_cast<FourFloats*>(to) = out;
  } else {
    for (uint32_t i = 0; column + i < tile.end; ++i) to[i] = out.value[i];
  }
}

// The team: sums become outputs. What is added to some is asked for at once.
template <class B>
PLOW_DEVICE void finish_tile(const BodyContext& ctx, const GroupTile& tile, GroupMemory& memory) {
  constexpr uint32_t kAtOnce = 4;
  if (tile.product->gain != nullptr) {
    if (B::thread() < kTileRows) memory.factors[B::thread()] = norm_factor<B>(*tile.product, memory.factors[B::thread()]);
    B::settle();
  }
  const uint32_t n = tile.n_rows * tile.width() / 4;
  PLOW_UNROLL_BY(1)
  for (uint32_t base = B::thread(); base < n; base += kAtOnce * B::n_threads()) {
    GroupOutputs four[kAtOnce];
    PLOW_UNROLL
    for (uint32_t u = 0; u < kAtOnce; ++u) load_outputs<B>(ctx, tile, base + u * B::n_threads(), four[u]);
    PLOW_UNROLL
    for (uint32_t u = 0; u < kAtOnce; ++u) {
      if (four[u].exist) store_outputs<B>(ctx, tile, memory, four[u]);
    }
  }
}

PLOW_DEVICE GroupMemory& group_memory(const BodyContext& ctx) {
  const uintptr_t place = reinterpret_cast<uintptr_t>(ctx.shared);
  return *reinterpret_cast<GroupMemory*>(ctx.shared + (kAtomBytes - place % kAtomBytes) % kAtomBytes);
}

// The group's part of a tile.
PLOW_KEEPS_FEW_REGISTERS
template <class B, bool kHasGain>
PLOW_DEVICE_CALL void multiply_tile(const BodyContext& ctx, const Packet& packet, TileIndex index) {
  Product product{};
  const GroupTile tile = group_tile(ctx, packet, index, product);
  GroupMemory& memory = group_memory(ctx);
  float sums[128], squares[2];
  multiply_steps<B, kHasGain>(ctx, tile, memory, sums, squares);
  B::settle();  // no step is read any more
  leave_sums<B, kHasGain>(sums, squares, memory);
}

// The other warps' part, and then all threads'.
PLOW_KEEPS_FEW_REGISTERS
template <class B>
PLOW_DEVICE_CALL void bring_weights(const BodyContext& ctx, const Packet& packet, TileIndex index) {
  Product product{};
  bring_tile<B>(ctx, group_tile(ctx, packet, index, product), group_memory(ctx));
  B::settle();
}
PLOW_KEEPS_FEW_REGISTERS
template <class B>
PLOW_DEVICE_CALL void store_tile(const BodyContext& ctx, const Packet& packet, TileIndex index) {
  Product product{};
  finish_tile<B>(ctx, group_tile(ctx, packet, index, product), group_memory(ctx));
}

template <class B>
PLOW_DEVICE void make_tile(const BodyContext& ctx, const Packet& packet, bool has_gain, TileIndex index) {
  if (B::thread() >= B::kGroupThreads) {
    bring_weights<B>(ctx, packet, index);
  } else if (has_gain) {
    multiply_tile<B, true>(ctx, packet, index);
  } else {
    multiply_tile<B, false>(ctx, packet, index);
  }
  B::settle();
  store_tile<B>(ctx, packet, index);
  B::settle();
}

// REQUIRES is_for_group().
template <class B>
PLOW_DEVICE void group_product_team_body(const BodyContext& ctx, const Packet& packet, uint32_t row_tile) {
  Product product{};
  (void)product_of(packet, ctx.program->tensors, product);
  const Range rows = packet_rows(ctx, packet, row_tile);
  const uint32_t n_rows = ceil_div(rows.end - rows.begin, kTileRows), n = column_tiles(packet, tile_width(product)) * n_rows;
  const bool has_gain = product.gain != nullptr;
  PLOW_UNROLL_BY(1)
  for (uint32_t i = 0; i < n; ++i) {
    if constexpr (HasGroupUnit<B>) make_tile<B>(ctx, packet, has_gain, {row_tile, i / n_rows, i % n_rows});
  }
}

}  // namespace plow::dev
