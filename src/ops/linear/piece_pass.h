// Products by the matrix unit of warps of 32 lanes (HasWarpUnit of interp/team.h), for bf16 and up to four rows
// at once. Their weights come in pieces: a tile of 8 outputs in one chunk of columns. A piece is one warp's, from
// the memory or from the slot of the tape that is this warp's alone, so that warps never meet while they multiply;
// its sums lie side by side until all of a pass are there, and are added in ascending order of chunks.
//
// The team splits the activations of a window of chunks into three sets of bf16 (split_activations.h) in its
// memory, once for all pieces of the window. The sets of up to four rows are rows of one A. Each set has sums of its
// own, and a row's sums depend on nothing but that row, so its bits are the same whatever shares the step.
#pragma once

#include "interp/tape.h"
#include "ops/linear/split_activations.h"
#include "ops/linear/team_product.h"
#include "ops/products.h"

namespace plow::dev {

// Most matrices' chunks are the largest that there are; where that is known to the compiler nothing is divided.
constexpr uint32_t kAtomUnits = kAtomRowBytes / kAtomUnitBytes, kMostUnits = kMostChunkAtoms * kAtomUnits;
PLOW_DEVICE uint32_t by_units(uint32_t n, uint32_t units) { return units == kMostUnits ? n / kMostUnits : n / units; }

// Rows that share a pass: three sets of each are 12 of the 16 rows of A.
constexpr uint32_t kPieceRows = 4;
// Chunks of a product that is made of pieces; others have no atoms worth a copy, such as a row of 223 x 64 columns.
constexpr uint32_t kMostPieceChunks = 32;
constexpr uint32_t kSegmentUnits = 32;  // units of eight columns whose squares a warp adds up
constexpr uint32_t kMostSegments = kMostPieceChunks * (kMostUnits / kSegmentUnits);

// A of a window is stored as lanes take it (HasWarpUnit): a unit of eight columns of rows
// g and g + 8 of A is two of 16 bytes, its first four columns in plane 0, the others in plane 1. Rows g of A: those of
// the first set from 0 on, of the second from 4 on, of the third from 8 on; a row that is not there has another's
// values, which count for nothing. Row `plane * 2 * n_rows + pair` begins at that many times `stride` units, pair
// being row for the first and third set, n_rows + row for the second. A stride is odd, so that neighbouring rows'
// equal units lie in different banks.
constexpr uint32_t kPieceUnits = 5120;  // 80 KiB: 9 chunks of 1024 columns of one row, 2 of four
constexpr uint32_t kPieceSums = 2048;   // of a pass: of 256 pieces of one row, 64 of four
constexpr uint32_t kPlanes = 2;

// How a packet's product is cut: the same for those who multiply and for those who bring the weights.
struct PiecePlan {
  Range chunks;
  uint32_t units;   // of eight columns, of a chunk
  uint32_t window;  // chunks whose activations are there at once
  uint32_t tiles;   // of a pass; of a gated product as many of either matrix
  uint32_t stride;  // units from a row of A to the next
};

PLOW_DEVICE AtomShape piece_shape(const TensorEntry& matrix) {
  constexpr uint32_t kColumns = kMostUnits * 8;
  if (matrix.cols % kColumns == 0) return {ceil_div(matrix.rows, kAtomRows), matrix.cols / kColumns, kMostChunkAtoms};
  return atom_shape(matrix.rows, matrix.cols, sizeof(Bf16));
}
PLOW_DEVICE bool comes_in_pieces(const Product& product) {
  return product.matrix->dtype == DType::kBf16 && piece_shape(*product.matrix).chunks <= kMostPieceChunks;
}
// What the tape brings must be one range of columns.
PLOW_DEVICE bool has_one_range(const Packet& packet) { return packet.col_stride == 1 || packet.col_count == 1; }
PLOW_DEVICE Range only_range(const Packet& packet, uint32_t cols) {
  return {packet.col_first * packet.tile_cols, min_u32((packet.col_first + packet.col_count) * packet.tile_cols, cols)};
}

// Chunks of columns that the product has to do with.
PLOW_DEVICE Range product_chunks(const Product& product, uint32_t chunk_atoms) {
  const uint32_t units = chunk_atoms * kAtomUnits;
  return {by_units(product.k.begin / 8, units), by_units(ceil_div(product.k.end, 8) + units - 1, units)};
}

PLOW_DEVICE PiecePlan piece_plan(Range chunks, uint32_t chunk_atoms, bool is_gated, uint32_t n_rows) {
  constexpr uint32_t kOfRow = kPieceUnits / (2 * kPlanes);
  const uint32_t units = chunk_atoms * kAtomUnits, n = chunks.end - chunks.begin;
  const uint32_t of_row = n_rows == 1 ? kOfRow : kOfRow / n_rows;
  const uint32_t of_tile = n * n_rows * kAtomRows * (is_gated ? 2u : 1u);
  const uint32_t window = min_u32(n, by_units(of_row - 1, units));
  return {chunks, units, window, kPieceSums / of_tile, window * units + 1};
}

// Calls f(first tile, tiles) for each pass over the columns [begin, end).
template <class F>
PLOW_DEVICE void for_piece_passes(const PiecePlan& plan, uint32_t begin, uint32_t end, const F& f) {
  const uint32_t last = ceil_div(end, kAtomRows);
  PLOW_UNROLL_BY(1)
  for (uint32_t tile = begin / kAtomRows; tile < last; tile += plan.tiles)
    f(tile, min_u32(plan.tiles, last - tile));
}

// Segments of a row's squares.
PLOW_DEVICE uint32_t chunk_segments(const PiecePlan& plan) { return ceil_div(plan.units, kSegmentUnits); }

// A packet's product, its rows [first_row, first_row + n_rows) and how it is cut.
struct PieceWork {
  Product product;
  AtomShape shape;
  PiecePlan plan;
  uint32_t first_row, n_rows;

  PLOW_DEVICE_MEMBER uint32_t n_chunks() const { return plan.chunks.end - plan.chunks.begin; }
  PLOW_DEVICE_MEMBER bool is_gated() const { return product.up != nullptr; }
};

// The team's memory. What the work is lies there, too, for the functions below that are not inlined, since all in one would
// not fit into the registers: handed over by reference it would lie in the threads' local memory, of which little is cached
// beside a full shared memory, and made again by each it would take as long as the arithmetic.
struct PieceMemory {
  WeightUnit a[kPieceUnits];
  float sums[kPieceSums];                     // [slot][chunk][row][output]
  float squares[kPieceRows * kMostSegments];  // [row][segment]
  PieceWork work;
};
PLOW_DEVICE PieceMemory& piece_memory(const BodyContext& ctx) { return *reinterpret_cast<PieceMemory*>(ctx.shared); }

PLOW_DEVICE PieceWork piece_work(const Product& product, uint32_t first_row, uint32_t n_rows) {
  PieceWork work{};
  work.product = product;
  work.shape = piece_shape(*work.product.matrix);
  work.plan = piece_plan(product_chunks(work.product, work.shape.chunk_atoms), work.shape.chunk_atoms,
                         work.is_gated(), n_rows);
  work.first_row = first_row;
  work.n_rows = n_rows;
  return work;
}

// A lane's unit of a segment of a window, on its way to A.
struct UnitOnWay {
  float x[8], gain[8];
  uint32_t row, unit, segment;  // unit of the window, segment of the row
  bool exists;
};

// Gains that are not stored as floats, which plowc never writes.
template <class B>
PLOW_DEVICE void load_gains(const BodyContext& ctx, const Product& product, uint32_t column, float (&to)[8]) {
  float gains[8];  // of its own, since a loop makes it lie in the threads' memory
  PLOW_UNROLL_BY(1)
  for (uint32_t j = 0; j < 8; ++j)
    gains[j] = column + j < product.k.end ? gain_of<B>(ctx, *product.gain, column + j) : 0.0f;
  PLOW_UNROLL
  for (uint32_t j = 0; j < 8; ++j) to[j] = gains[j];
}

// A row of the arena, and one of the tape, may be read up to the next multiple of 8 columns.
template <class B>
PLOW_DEVICE void load_unit(const BodyContext& ctx, const PieceWork& work, Range window, uint32_t i, UnitOnWay& on_way) {
  const Product& product = work.product;
  const PiecePlan& plan = work.plan;
  const uint32_t segments = chunk_segments(plan), of_row = (window.end - window.begin) * segments;
  const uint32_t row = work.n_rows == 1 ? 0 : i / of_row, in_row = i - row * of_row;
  const uint32_t chunk = by_units(in_row * kSegmentUnits, segments * kSegmentUnits);
  const uint32_t in_chunk = (in_row - chunk * segments) * kSegmentUnits + lane<B>();
  const uint32_t column = ((window.begin + chunk) * plan.units + in_chunk) * 8;
  const Range k = product.k;
  on_way.row = row;
  on_way.unit = chunk * plan.units + in_chunk;
  on_way.segment = (window.begin - plan.chunks.begin) * segments + in_row;
  on_way.exists = in_chunk < plan.units;
  PLOW_UNROLL
  for (uint32_t j = 0; j < 8; ++j) on_way.x[j] = 0, on_way.gain[j] = 1;
  if (!on_way.exists || column >= k.end) return;
  load_floats(arena_row(ctx, *product.x, work.first_row + row) + column, on_way.x);
  if (product.gain != nullptr) {
    if (product.gain->dtype == DType::kF32) {
      load_floats(tape_data<float>(ctx, *product.gain) + column, on_way.gain);
    } else {
      load_gains<B>(ctx, product, column, on_way.gain);
    }
  }
  if (column >= k.begin && column + 8 <= k.end) return;
  PLOW_UNROLL
  for (uint32_t j = 0; j < 8; ++j) {
    const bool counts = column + j >= k.begin && column + j < k.end;
    on_way.x[j] = counts ? on_way.x[j] : 0.0f;
    on_way.gain[j] = counts ? on_way.gain[j] : 1.0f;
  }
}

template <class B>
PLOW_DEVICE void store_unit(const PieceWork& work, UnitOnWay& on_way, PieceMemory& memory) {
  if (work.product.gain != nullptr) {
    float square = 0;
    PLOW_UNROLL
    for (uint32_t j = 0; j < 8; ++j) {
      square = B::fma(on_way.x[j], on_way.x[j], square);
      on_way.x[j] = B::mul(on_way.x[j], B::add(on_way.gain[j], work.product.offset));
    }
    square = reduce_lanes<B>(square, B::kLanes, Sum{});
    if (lane<B>() == 0) memory.squares[on_way.row * kMostSegments + on_way.segment] = square;
  }
  if (!on_way.exists) return;
  const SplitActivations three = split(on_way.x);
  WeightUnit* first = memory.a + on_way.row * work.plan.stride + on_way.unit;
  PLOW_UNROLL
  for (uint32_t plane = 0; plane < kPlanes; ++plane) {
    const uint32_t w = 2 * plane;
    first[2 * plane * work.n_rows * work.plan.stride] = {
        {three.words[0][w], three.words[2][w], three.words[0][w + 1], three.words[2][w + 1]}};
    first[(2 * plane + 1) * work.n_rows * work.plan.stride] = {{three.words[1][w], 0, three.words[1][w + 1], 0}};
  }
}

// A of the window: a loop that loads a unit and stores the one before. Each is there once, and for rows with a
// norm and without: between two products other bodies run, so that instructions come from far, and what is unrolled or
// there twice waits for them longer than it saves.
template <class B>
PLOW_DEVICE_CALL void split_window(const BodyContext& ctx, uint32_t begin, uint32_t end) {
  constexpr uint32_t kAhead = 1;
  PieceMemory& memory = piece_memory(ctx);
  const PieceWork work = memory.work;
  const uint32_t n = work.n_rows * (end - begin) * chunk_segments(work.plan);
  UnitOnWay units[kAhead + 1] = {};
  PLOW_UNROLL_BY(1)
  for (uint32_t i = wave<B>(); i < n + kAhead * B::kWaves; i += B::kWaves) {
    if (i < n) load_unit<B>(ctx, work, {begin, end}, i, units[kAhead]);
    if (i >= kAhead * B::kWaves) store_unit<B>(work, units[0], memory);
    PLOW_UNROLL
    for (uint32_t j = 0; j < kAhead; ++j) units[j] = units[j + 1];
  }
}

// A lane's share of a piece that lies where the tape is, or in the team's memory: by half of an atom.
template <class B>
struct PieceInMemory {
  const unsigned char* half[2];

  template <uint32_t kOffset>
  PLOW_DEVICE_MEMBER WeightUnit load(uint32_t h) const {
    return *reinterpret_cast<const WeightUnit*>(half[h] + kOffset);
  }
};
template <class B>
struct PieceInTeam {
  typename B::TeamAddress half[2];

  template <uint32_t kOffset>
  PLOW_DEVICE_MEMBER WeightUnit load(uint32_t h) const {
    WeightUnit unit;
    B::template load_team<kOffset>(half[h], unit.words);
    return unit;
  }
};

// Of A's: by plane.
template <class B>
struct LaneOfA {
  typename B::TeamAddress plane[kPlanes];
};

// In atoms, half h of a lane is unit 2 q + h of its quarter q: so the quarters of two neighbouring rows lie in
// different banks.
template <class B>
PLOW_DEVICE uint32_t lane_of_piece(uint32_t half) {
  const uint32_t row = lane<B>() / 4, quarter = lane<B>() % 4;
  return row * kAtomRowBytes + ((2 * quarter + half) ^ row) * kAtomUnitBytes;
}
template <class B>
PLOW_DEVICE LaneOfA<B> lane_of_a(const PieceWork& work, const WeightUnit* a) {
  const uint32_t row = lane<B>() / 4, quarter = lane<B>() % 4, stride = work.plan.stride;
  const uint32_t pair = row / 4 * work.n_rows + min_u32(row % 4, work.n_rows - 1);
  const WeightUnit* first = a + pair * stride + 2 * quarter;
  return {{B::team_address(first), B::team_address(first + 2 * work.n_rows * stride)}};
}

// Adds the products of the next kAtoms atoms.
template <class B, uint32_t kAtoms, class Piece>
PLOW_DEVICE void multiply_atoms(const Piece& piece, const LaneOfA<B>& of_a, float (&sums)[4][4]) {
  WeightUnit w[kAtoms][2], a[kAtoms][2][kPlanes];
  const auto load = [&]<uint32_t i>(const auto& self) {
    if constexpr (i < kAtoms) {
      w[i][0] = piece.template load<i * kAtomBytes>(0);
      w[i][1] = piece.template load<i * kAtomBytes>(1);
      PLOW_UNROLL
      for (uint32_t plane = 0; plane < kPlanes; ++plane) {
        B::template load_team<i * kAtomRowBytes>(of_a.plane[plane], a[i][0][plane].words);
        B::template load_team<i * kAtomRowBytes + kAtomUnitBytes>(of_a.plane[plane], a[i][1][plane].words);
      }
      self.template operator()<i + 1>(self);
    }
  };
  load.template operator()<0>(load);
  PLOW_UNROLL
  for (uint32_t i = 0; i < kAtoms; ++i) {
    PLOW_UNROLL
    for (uint32_t plane = 0; plane < kPlanes; ++plane) {
      PLOW_UNROLL
      for (uint32_t half = 0; half < 2; ++half)
        B::multiply_add(a[i][half][plane].words, w[i][half].words[2 * plane], w[i][half].words[2 * plane + 1],
                        sums[i % 2 * 2 + half]);
    }
  }
}

// A piece against the rows of A: lane l's sums of row l / 4, if there is one, and outputs 2 (l % 4) and the next.
template <class B, class Piece>
PLOW_DEVICE void multiply_piece(Piece piece, LaneOfA<B> a, uint32_t n_atoms, float (&sum)[2]) {
  constexpr uint32_t kAtOnce = 4;
  float sums[4][4] = {};
  const auto multiply = [&]<uint32_t kAtoms>() {
    multiply_atoms<B, kAtoms>(piece, a, sums);
    PLOW_UNROLL
    for (uint32_t i = 0; i < 2; ++i) piece.half[i] += kAtoms * kAtomBytes, a.plane[i] += kAtoms * kAtomRowBytes;
    n_atoms -= kAtoms;
  };
  PLOW_UNROLL_BY(1)
  while (n_atoms >= kAtOnce) multiply.template operator()<kAtOnce>();
  PLOW_UNROLL_BY(1)
  while (n_atoms > 0) multiply.template operator()<1>();
  float c[4];
  PLOW_UNROLL
  for (uint32_t i = 0; i < 4; ++i) c[i] = B::add(B::add(sums[0][i], sums[1][i]), B::add(sums[2][i], sums[3][i]));
  PLOW_UNROLL
  for (uint32_t i = 0; i < 2; ++i) sum[i] = B::add(c[i], B::add(B::lane_xor(c[i], 16), c[2 + i]));
}

// The sums of a slot's output, over all chunks.
template <class B>
PLOW_DEVICE float sum_of_pieces(const PieceMemory& memory, uint32_t n_chunks, uint32_t n_rows, uint32_t slot,
                                uint32_t row, uint32_t output) {
  const float* first = memory.sums + (slot * n_chunks * n_rows + row) * kAtomRows + output;
  float sum = 0;
  PLOW_UNROLL_BY(4)
  for (uint32_t chunk = 0; chunk < n_chunks; ++chunk) sum = B::add(sum, first[chunk * n_rows * kAtomRows]);
  return sum;
}

// This warp's pieces of a window of a pass. `n_pieces`: that the tape has brought before them.
template <class B, bool kByTape>
PLOW_DEVICE void multiply_window(const BodyContext& ctx, const PieceWork& work, uint32_t first_tile, uint32_t n_tiles,
                                 Range window, uint32_t n_pieces, PieceMemory& memory) {
  const uint32_t width = window.end - window.begin, n = n_tiles * (work.is_gated() ? 2 : 1) * width;
  const uint32_t first = kByTape ? (wave<B>() + B::kWaves - n_pieces % B::kWaves) % B::kWaves : wave<B>();
  const uint32_t row = lane<B>() / 4, n_chunks = work.n_chunks(), n_rows = work.n_rows;
  const uint32_t n_atoms = work.shape.chunk_atoms, chunk_bytes = work.plan.units * kAtomUnitBytes;
  const LaneOfA<B> a = lane_of_a<B>(work, memory.a);
  float* sums = memory.sums + (window.begin - work.plan.chunks.begin) * n_rows * kAtomRows +
                row * kAtomRows + 2 * (lane<B>() % 4);
  TapePlace place;
  if constexpr (kByTape) place = *ctx.tape;
  PLOW_UNROLL_BY(1)
  for (uint32_t i = first; i < n; i += B::kWaves) {
    const uint32_t slot = i / width, chunk = i - slot * width;
    const LaneOfA<B> of_chunk{{a.plane[0] + chunk * chunk_bytes, a.plane[1] + chunk * chunk_bytes}};
    float sum[2];
    if constexpr (kByTape) {
      const unsigned char* piece = await_piece<B>(place, n_pieces + i);
      const PieceInTeam<B> in_team{
          {B::team_address(piece + lane_of_piece<B>(0)), B::team_address(piece + lane_of_piece<B>(1))}};
      multiply_piece<B>(in_team, of_chunk, n_atoms, sum);
      done_with_piece<B>(place);
    } else {
      const bool of_up = slot >= n_tiles;
      const unsigned char* matrix = ctx.device->tape + (of_up ? work.product.up : work.product.matrix)->offset;
      const uint64_t at = work.shape.chunk_offset(window.begin + chunk, first_tile + slot - (of_up ? n_tiles : 0));
      const PieceInMemory<B> in_memory{{matrix + at + lane_of_piece<B>(0), matrix + at + lane_of_piece<B>(1)}};
      multiply_piece<B>(in_memory, of_chunk, n_atoms, sum);
    }
    if (row >= n_rows) continue;
    float* to = sums + (slot * n_chunks + chunk) * n_rows * kAtomRows;
    to[0] = sum[0], to[1] = sum[1];
  }
}

// The sums of a pass become outputs.
template <class B>
PLOW_DEVICE_CALL void finish_pieces(const BodyContext& ctx, uint32_t first_tile, uint32_t n_tiles, uint32_t end) {
  const PieceMemory& memory = piece_memory(ctx);
  const PieceWork work = memory.work;
  const uint32_t width = n_tiles * kAtomRows, segments = work.n_chunks() * chunk_segments(work.plan);
  PLOW_UNROLL_BY(1)
  for (uint32_t i = B::thread(); i < width * work.n_rows; i += B::n_threads()) {
    const uint32_t row = work.n_rows == 1 ? 0 : i / width, in_row = i - row * width;
    const uint32_t slot = in_row / kAtomRows, output = in_row % kAtomRows, column = first_tile * kAtomRows + in_row;
    if (column >= end) continue;
    float square = 0, up = 0;
    if (work.product.gain != nullptr) {
      PLOW_UNROLL_BY(4)
      for (uint32_t s = 0; s < segments; ++s) square = B::add(square, memory.squares[row * kMostSegments + s]);
    }
    const float sum = sum_of_pieces<B>(memory, work.n_chunks(), work.n_rows, slot, row, output);
    if (work.is_gated()) up = sum_of_pieces<B>(memory, work.n_chunks(), work.n_rows, n_tiles + slot, row, output);
    store_output<B>(ctx, work.product, work.first_row + row, column, sum, up, square);
  }
}

// The columns [begin, end) of a packet's product against up to kPieceRows rows. `n_pieces`: that the tape has brought before
// them, and then with them.
template <class B, bool kByTape>
PLOW_DEVICE void multiply_columns(const BodyContext& ctx, const PieceWork& work, uint32_t begin, uint32_t end, bool first,
                                  uint32_t& n_pieces) {
  PieceMemory& memory = piece_memory(ctx);
  const PiecePlan& plan = work.plan;
  for_piece_passes(plan, begin, end, [&](uint32_t first_tile, uint32_t n_tiles) {
    PLOW_UNROLL_BY(1)
    for (uint32_t chunk = plan.chunks.begin; chunk < plan.chunks.end; chunk += plan.window) {
      const Range window{chunk, min_u32(chunk + plan.window, plan.chunks.end)};
      if (!first) B::settle();  // what is in the memory is not needed any more
      if (first || plan.window < work.n_chunks()) {
        split_window<B>(ctx, window.begin, window.end);
        B::settle();
      }
      first = false;
      multiply_window<B, kByTape>(ctx, work, first_tile, n_tiles, window, n_pieces, memory);
      n_pieces += n_tiles * (work.is_gated() ? 2 : 1) * (window.end - window.begin);
    }
    B::settle();
    finish_pieces<B>(ctx, first_tile, n_tiles, end);
  });
}

// A packet's product that comes in pieces.
template <class B>
PLOW_DEVICE_BODY void piece_team_body(const BodyContext& ctx, const Packet& packet, const Product& product, uint32_t row_tile) {
  const Range rows = packet_rows(ctx, packet, row_tile);
  PLOW_UNROLL_BY(1)
  for (uint32_t row = rows.begin; row < rows.end; row += kPieceRows) {
    if (row > rows.begin) B::settle();
    const PieceWork work = piece_work(product, row, min_u32(kPieceRows, rows.end - row));
    if (B::thread() == 0) piece_memory(ctx).work = work;
    B::settle();
    uint32_t n_pieces = 0;
    if constexpr (HasTape<B>) {
      if (has_one_range(packet)) {
        n_pieces = ctx.tape->n_pieces;
        const Range columns = only_range(packet, work.product.out->cols);
        multiply_columns<B, true>(ctx, work, columns.begin, columns.end, true, n_pieces);
        if (B::thread() == 0) ctx.tape->n_pieces = n_pieces;  // the team settles before the next product
        continue;
      }
    }
    for_columns(packet, work.product.out->cols, [&](uint32_t begin, uint32_t end) {
      multiply_columns<B, false>(ctx, work, begin, end, n_pieces == 0, n_pieces);
    });
  }
}

}  // namespace plow::dev
