// A pass of a product by the matrix unit of warps of 32 lanes (HasWarpUnit of interp/team.h), for bf16. Warp p
// makes part p of every slot, so that each piece of the tape is read by all warps at once and none waits for a
// slot that is not there yet. The columns of A are the atoms', its rows are activations, each split into three
// sets: up to four rows lie in one A, row r's sets in rows 3 r to 3 r + 2; more (up to 16) lie in three, a set
// in each. Either way a set has a sum of its own, so that a row's bits do not depend on which it was.
//
// Few rows come by way of the team's memory, a chunk of columns ahead, so that nobody waits for them.
#pragma once

#include "interp/near.h"
#include "ops/linear/split_activations.h"
#include "ops/linear/team_product.h"

namespace plow::dev {

constexpr uint32_t kPackedRows = 4;
// Activations in an atom's columns.
constexpr uint32_t kAtomColumns = kAtomRowBytes / 2;

// Atoms of a chunk that a part has at most.
template <class B>
constexpr uint32_t part_atoms() {
  return (kMostChunkAtoms + parts_of<B>() - 1) / parts_of<B>();
}

// What a warp has of the team's memory. Units are eight columns: atom i of the part, half h, quarter q is unit
// 8 i + 4 h + q.
template <class B>
struct WarpStage {
  static constexpr uint32_t kUnits = part_atoms<B>() * kAtomColumns / 8;
  // Words of a row of A; four units more, so that two rows' equal quarters lie in different banks.
  static constexpr uint32_t kRowWords = (kUnits + 4) * 4;

  // Few rows: activations of a chunk, then the gain; then A.
  struct Few {
    alignas(16) float x[kPackedRows + 1][kUnits * 8];
    alignas(16) uint32_t a[kPackedRows * kSplit][kRowWords];
    float squares[kPackedRows][kUnits];  // of each unit's columns, over all chunks
  };
  struct Many {
    float squares[kPartRows][kUnits];
  };
  union {
    Few few;
    Many many;
  };
};

// The lane's two rows of A in half an atom, for M sets of 16 rows.
template <uint32_t M>
struct WarpRows {
  uint32_t words[M][2][4];
};

// What a warp knows of a pass.
template <class B>
struct WarpPass {
  const ProductRows* rows;
  const ProductPass* pass;
  TapePlace* tape;  // null: the weights are read where they lie
  WarpStage<B>* stage;

  PLOW_DEVICE_MEMBER uint32_t n_atoms() const { return rows->shape.chunk_atoms; }
  PLOW_DEVICE_MEMBER uint32_t atom(uint32_t i) const { return wave<B>() + i * parts_of<B>(); }
  PLOW_DEVICE_MEMBER uint32_t column(uint32_t chunk, uint32_t unit) const {
    return (chunk * n_atoms() + atom(unit / 8)) * kAtomColumns + unit % 8 * 8;
  }
};

// Few rows. Begins to copy the part's columns of a chunk.
template <class B>
PLOW_DEVICE void stage_chunk(const WarpPass<B>& self, uint32_t chunk) {
  const ProductRows& rows = *self.rows;
  const Product& product = *rows.product;
  constexpr uint32_t kHalves = WarpStage<B>::kUnits * 2;  // of 16 bytes
  PLOW_UNROLL_BY(1)
  for (uint32_t row = 0; row <= rows.n; ++row) {
    if (row == rows.n && !has_float_gain(product)) break;
    const float* from = row < rows.n ? rows.x(row) : float_gain(rows);
    float* to = self.stage->few.x[row < rows.n ? row : kPackedRows];
    PLOW_UNROLL_BY(1)
    for (uint32_t i = lane<B>(); i < kHalves; i += B::kLanes) {
      const uint32_t column = self.column(chunk, i / 2) + i % 2 * 4;
      const bool exists = self.atom(i / 16) < self.n_atoms() &&
                          column + (row < rows.n ? 0 : 3) < product.k.end;  // a row of the arena is padded
      B::template stage<16>(to + i * 4, from + (exists ? column : 0), exists);
    }
  }
  B::commit_stage();
}

// What was staged becomes A.
template <class B>
PLOW_DEVICE void split_chunk(const WarpPass<B>& self, uint32_t chunk) {
  auto& few = self.stage->few;
  const ProductRows& rows = *self.rows;
  const uint32_t unit = lane<B>();
  static_assert(WarpStage<B>::kUnits <= 2 * B::kLanes);
  PLOW_UNROLL_BY(1)
  for (uint32_t i = 0; i < rows.n * 2; ++i) {
    const uint32_t row = i / 2, u = unit + i % 2 * B::kLanes;
    if (u >= WarpStage<B>::kUnits || self.atom(u / 8) >= self.n_atoms()) continue;
    float x[8], square = few.squares[row][u];
    load_activations<B>(rows, few.x[row] + u * 8,
                        has_float_gain(*rows.product) ? few.x[kPackedRows] + u * 8 : nullptr,
                        self.column(chunk, u), x, square);
    few.squares[row][u] = square;
    const SplitActivations three = split(x);
    PLOW_UNROLL
    for (uint32_t set = 0; set < kSplit; ++set) {
      PLOW_UNROLL
      for (uint32_t j = 0; j < 4; ++j) few.a[row * kSplit + set][u * 4 + j] = three.words[set][j];
    }
  }
}

// The lane's rows of A in a half atom of the part, the first column of which is that of unit `unit`.
template <class B, uint32_t M>
PLOW_DEVICE void load_warp_rows(const WarpPass<B>& self, uint32_t chunk, uint32_t unit, WarpRows<M>& a) {
  const ProductRows& rows = *self.rows;
  unit += lane<B>() % 4;
  PLOW_UNROLL
  for (uint32_t upper = 0; upper < 2; ++upper) {
    const uint32_t row = lane<B>() / 4 + 8 * upper;
    if constexpr (M == 1) {
      WeightUnit words = {};
      if (row < kSplit * rows.n) words = *reinterpret_cast<const WeightUnit*>(self.stage->few.a[row] + unit * 4);
      PLOW_UNROLL
      for (uint32_t j = 0; j < 4; ++j) a.words[0][upper][j] = words.words[j];
    } else {
      SplitActivations three = {};
      if (row < rows.n) {
        const uint32_t column = self.column(chunk, unit);
        float x[8], square = self.stage->many.squares[row][unit];
        load_activations<B>(rows, rows.x(row) + column,
                            has_float_gain(*rows.product) ? float_gain(rows) + column : nullptr, column, x, square);
        self.stage->many.squares[row][unit] = square;
        three = split(x);
      }
      PLOW_UNROLL
      for (uint32_t m = 0; m < M; ++m) {
        PLOW_UNROLL
        for (uint32_t j = 0; j < 4; ++j) a.words[m][upper][j] = three.words[m][j];
      }
    }
  }
}

// Adds the products of the part's half atoms [first, first + kHeld) that there are in a piece.
template <class B, uint32_t M, uint32_t kHeld>
PLOW_DEVICE void multiply_piece(const unsigned char* piece, uint32_t first, uint32_t n_atoms,
                                const WarpRows<M> (&a)[kHeld], float (&sums)[M][4]) {
  const uint32_t row = lane<B>() / 4, quarter = lane<B>() % 4;
  const auto atom = [&](uint32_t i) { return wave<B>() + (first + i) / 2 * parts_of<B>(); };
  WeightUnit units[kHeld] = {};
  PLOW_UNROLL
  for (uint32_t i = 0; i < kHeld; ++i) {
    if (atom(i) < n_atoms)
      units[i] = *reinterpret_cast<const WeightUnit*>(piece + atom(i) * kAtomBytes + row * kAtomRowBytes +
                                                      (((first + i) % 2 * 4 + quarter) ^ row) * kAtomUnitBytes);
  }
  PLOW_UNROLL
  for (uint32_t i = 0; i < kHeld; ++i) {
    if (atom(i) >= n_atoms) continue;
    PLOW_UNROLL
    for (uint32_t m = 0; m < M; ++m) B::multiply_add(a[i].words[m], units[i].words, sums[m]);
  }
}

// The squares of the rows' columns in this part.
template <class B>
PLOW_DEVICE void store_squares(uint32_t n_rows, const float* of_units, float* squares) {
  PLOW_UNROLL_BY(1)
  for (uint32_t row = 0; row < n_rows; ++row) {
    float sum = 0;
    PLOW_UNROLL_BY(1)
    for (uint32_t u = lane<B>(); u < WarpStage<B>::kUnits; u += B::kLanes)
      sum = B::add(sum, of_units[row * WarpStage<B>::kUnits + u]);
    sum = reduce_lanes<B>(sum, B::kLanes, Sum{});
    if (lane<B>() == 0) squares[wave<B>() * kPartRows + row] = sum;
  }
}

// One chunk of columns of a pass for few rows, whose sums are where the parts will be: a slot is one turn of a
// loop, and all of it stays in the instruction cache.
template <class B, bool kByTape>
PLOW_DEVICE void few_rows_chunk(const WarpPass<B>& self, uint32_t chunk, float* parts) {
  constexpr uint32_t kHalfAtoms = 2 * part_atoms<B>();
  const uint32_t n_atoms = self.n_atoms(), n_slots = self.pass->n_slots(), n_rows = kSplit * self.rows->n;
  WarpRows<1> a[kHalfAtoms];
  PLOW_UNROLL
  for (uint32_t i = 0; i < kHalfAtoms; ++i) {
    if (self.atom(i / 2) < n_atoms) load_warp_rows<B, 1>(self, chunk, i * 4, a[i]);
  }
  const uint32_t row = lane<B>() / 4;
  float* sum = parts + (wave<B>() * kPartRows + row) * kAtomRows + 2 * (lane<B>() % 4);
  PLOW_UNROLL_BY(1)
  for (uint32_t slot = 0; slot < n_slots; ++slot, sum += slot_floats<B>()) {
    float c[1][4] = {};
    if (row < n_rows) c[0][0] = sum[0], c[0][1] = sum[1];
    if (row + 8 < n_rows) c[0][2] = sum[8 * kAtomRows], c[0][3] = sum[8 * kAtomRows + 1];
    if constexpr (kByTape) {
      multiply_piece<B, 1>(next_piece<B>(*self.tape), 0, n_atoms, a, c);
      done_with_piece<B>(*self.tape);
    } else {
      multiply_piece<B, 1>(slot_chunk(*self.rows, *self.pass, slot, chunk), 0, n_atoms, a, c);
    }
    if (row < n_rows) sum[0] = c[0][0], sum[1] = c[0][1];
    if (row + 8 < n_rows) sum[8 * kAtomRows] = c[0][2], sum[8 * kAtomRows + 1] = c[0][3];
  }
}

// All parts of a pass against up to 4 rows.
template <class B, bool kByTape>
PLOW_DEVICE_BODY void few_rows_pass(const ProductRows& rows, const ProductPass& pass, TapePlace* tape,
                                    WarpStage<B>* stages, float* squares, float* parts) {
  static_assert(B::kLanes == 32);
  TapePlace place;
  if constexpr (kByTape) place = *tape;
  const WarpPass<B> self{&rows, &pass, kByTape ? &place : nullptr, stages + wave<B>()};
  const Range chunks = rows.chunks();
  float* of_units = self.stage->few.squares[0];
  stage_chunk<B>(self, chunks.begin);
  PLOW_UNROLL_BY(1)
  for (uint32_t i = lane<B>(); i < rows.n * WarpStage<B>::kUnits; i += B::kLanes) of_units[i] = 0;
  PLOW_UNROLL_BY(1)
  for (uint32_t i = lane<B>(); i < pass.n_slots() * kPartRows * kAtomRows; i += B::kLanes)
    parts[i / (kPartRows * kAtomRows) * slot_floats<B>() + wave<B>() * kPartRows * kAtomRows +
          i % (kPartRows * kAtomRows)] = 0;
  PLOW_UNROLL_BY(1)
  for (uint32_t chunk = chunks.begin; chunk < chunks.end; ++chunk) {
    B::await_stage(false);
    B::settle_wave();
    split_chunk<B>(self, chunk);
    B::settle_wave();
    if (chunk + 1 < chunks.end) stage_chunk<B>(self, chunk + 1);
    few_rows_chunk<B, kByTape>(self, chunk, parts);
    B::settle_wave();  // the next chunk's A takes the place of this one's
  }
  if (squares != nullptr && rows.product->gain != nullptr) store_squares<B>(rows.n, of_units, squares);
  if constexpr (kByTape) tape->n_pieces = place.n_pieces;
}

// One chunk of columns of a pass for many rows.
template <class B, bool kByTape>
PLOW_DEVICE void many_rows_chunk(const WarpPass<B>& self, uint32_t chunk, float (&sums)[kPassSlots][kSplit][4]) {
  // Registers hold the A of half an atom at a time.
  constexpr uint32_t kHalfAtoms = 2 * part_atoms<B>();
  const uint32_t n_atoms = self.n_atoms();
  uint32_t first_piece = 0;
  if constexpr (kByTape) first_piece = self.tape->n_pieces;
  PLOW_UNROLL_BY(1)
  for (uint32_t half = 0; half < kHalfAtoms; ++half) {
    WarpRows<kSplit> a[1];
    if (self.atom(half / 2) < n_atoms) load_warp_rows<B, kSplit>(self, chunk, half * 4, a[0]);
    if constexpr (kByTape) self.tape->n_pieces = first_piece;
    PLOW_UNROLL
    for (uint32_t slot = 0; slot < kPassSlots; ++slot) {
      if (slot >= self.pass->n_slots()) break;
      if constexpr (kByTape) {
        multiply_piece<B, kSplit>(next_piece<B>(*self.tape), half, n_atoms, a, sums[slot]);
        if (half + 1 == kHalfAtoms) {
          done_with_piece<B>(*self.tape);
        } else {
          ++self.tape->n_pieces;
        }
      } else {
        multiply_piece<B, kSplit>(slot_chunk(*self.rows, *self.pass, slot, chunk), half, n_atoms, a, sums[slot]);
      }
    }
  }
}

// The lane's sums of many rows become parts.
template <class B>
PLOW_DEVICE void store_parts(const ProductRows& rows, const ProductPass& pass,
                             const float (&sums)[kPassSlots][kSplit][4], float* parts) {
  const uint32_t quarter = lane<B>() % 4;
  PLOW_UNROLL
  for (uint32_t upper = 0; upper < 2; ++upper) {
    const uint32_t row = lane<B>() / 4 + 8 * upper;
    if (row >= rows.n) continue;
    PLOW_UNROLL
    for (uint32_t slot = 0; slot < kPassSlots; ++slot) {
      if (slot >= pass.n_slots()) break;
      float* to = parts + slot * slot_floats<B>() + (wave<B>() * kPartRows + row) * kAtomRows + 2 * quarter;
      PLOW_UNROLL
      for (uint32_t i = 0; i < 2; ++i) {
        const uint32_t c = 2 * upper + i;
        float sum = sums[slot][kSplit - 1][c];
        PLOW_UNROLL
        for (uint32_t m = kSplit - 1; m > 0; --m) sum = B::add(sums[slot][m - 1][c], sum);
        to[i] = sum;
      }
    }
  }
}

// All parts of a pass against up to 16 rows.
template <class B, bool kByTape>
PLOW_DEVICE_BODY void many_rows_pass(const ProductRows& rows, const ProductPass& pass, TapePlace* tape,
                                     WarpStage<B>* stages, float* squares, float* parts) {
  static_assert(B::kLanes == 32);
  float sums[kPassSlots][kSplit][4] = {};
  TapePlace place;
  if constexpr (kByTape) place = *tape;
  const WarpPass<B> self{&rows, &pass, kByTape ? &place : nullptr, stages + wave<B>()};
  const Range chunks = rows.chunks();
  float* of_units = self.stage->many.squares[0];
  PLOW_UNROLL_BY(1)
  for (uint32_t i = lane<B>(); i < rows.n * WarpStage<B>::kUnits; i += B::kLanes) of_units[i] = 0;
  B::settle_wave();
  PLOW_UNROLL_BY(1)
  for (uint32_t chunk = chunks.begin; chunk < chunks.end; ++chunk) many_rows_chunk<B, kByTape>(self, chunk, sums);
  B::settle_wave();
  if (squares != nullptr && rows.product->gain != nullptr) store_squares<B>(rows.n, of_units, squares);
  store_parts<B>(rows, pass, sums, parts);
  if constexpr (kByTape) tape->n_pieces = place.n_pieces;
}

}  // namespace plow::dev
