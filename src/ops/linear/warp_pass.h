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

// Of the team's memory: [warp][two chunks][rows, then the gain][atom of the part][column].
template <class B>
constexpr uint32_t stage_floats() {
  return 2 * (kPackedRows + 1) * part_atoms<B>() * kAtomColumns;
}

// The lane's two rows of A in half an atom, for M sets of 16 rows.
template <uint32_t M>
struct WarpRows {
  uint32_t words[M][2][4];
};

// What a warp knows of a pass.
struct WarpPass {
  const ProductRows* rows;
  const ProductPass* pass;
  TapePlace* tape;  // null: the weights are read where they lie
  float* stage;     // of the warp
};

// Begins to copy the part's columns of a chunk.
template <class B>
PLOW_DEVICE void stage_chunk(const WarpPass& self, uint32_t chunk) {
  const ProductRows& rows = *self.rows;
  const Product& product = *rows.product;
  constexpr uint32_t kUnits = kAtomColumns / 4;  // of 16 bytes
  const bool has_gain = product.gain != nullptr && product.gain->dtype == DType::kF32;
  const uint32_t n_atoms = rows.shape.chunk_atoms, n = (rows.n + (has_gain ? 1 : 0)) * part_atoms<B>() * kUnits;
  float* stage = self.stage + chunk % 2 * (stage_floats<B>() / 2);
  for (uint32_t i = lane<B>(); i < n; i += B::kLanes) {
    const uint32_t row = i / (part_atoms<B>() * kUnits), in_row = i % (part_atoms<B>() * kUnits);
    const uint32_t atom = wave<B>() + in_row / kUnits * parts_of<B>();
    const uint32_t column = (chunk * n_atoms + atom) * kAtomColumns + in_row % kUnits * 4;
    const float* from = row < rows.n ? rows.x(row) : tape_data<float>(*rows.ctx, *product.gain);
    const bool exists = atom < n_atoms && column < product.k.end;
    float* to = stage + (row < rows.n ? row : kPackedRows) * (part_atoms<B>() * kAtomColumns) + in_row * 4;
    // A row's last 16 bytes may reach into the padding of its stride; of the gain they are read one by one.
    if (row == rows.n && column + 4 > product.k.end) {
      for (uint32_t j = 0; j < 4; ++j) to[j] = column + j < product.k.end ? from[column + j] : 0.0f;
    } else {
      B::template stage<16>(to, from + (exists ? column : 0), exists);
    }
  }
  B::commit_stage();
}

// The lane's rows of A in half an atom, the i-th of the part, whose columns begin at `column`.
template <class B, uint32_t M>
PLOW_DEVICE void load_warp_rows(const WarpPass& self, uint32_t chunk, uint32_t i, uint32_t half,
                                WarpRows<M>& a, float (&squares)[2]) {
  const ProductRows& rows = *self.rows;
  const uint32_t in_atom = half * 32 + lane<B>() % 4 * 8;
  const uint32_t column =
      (chunk * rows.shape.chunk_atoms + wave<B>() + i * parts_of<B>()) * kAtomColumns + in_atom;
  constexpr uint32_t kStride = part_atoms<B>() * kAtomColumns;
  const float* stage = self.stage + chunk % 2 * (stage_floats<B>() / 2) + i * kAtomColumns + in_atom;
  PLOW_UNROLL
  for (uint32_t upper = 0; upper < 2; ++upper) {
    const uint32_t in_a = lane<B>() / 4 + 8 * upper, row = M == 1 ? in_a / kSplit : in_a, set = in_a % kSplit;
    PLOW_UNROLL
    for (uint32_t m = 0; m < M; ++m) {
      PLOW_UNROLL
      for (uint32_t j = 0; j < 4; ++j) a.words[m][upper][j] = 0;
    }
    if (row >= rows.n) continue;
    float x[8];
    if constexpr (M == 1) {
      load_activations<B>(rows, stage + row * kStride, stage + kPackedRows * kStride, column, x, squares[upper]);
    } else {
      load_activations<B>(rows, rows.x(row) + column, gain_at(rows, column), column, x, squares[upper]);
    }
    const SplitActivations three = split(x);
    PLOW_UNROLL
    for (uint32_t j = 0; j < 4; ++j) {
      if constexpr (M == 1) {
        a.words[0][upper][j] = set == 0 ? three.words[0][j] : set == 1 ? three.words[1][j] : three.words[2][j];
      } else {
        PLOW_UNROLL
        for (uint32_t m = 0; m < M; ++m) a.words[m][upper][j] = three.words[m][j];
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

// One chunk of columns of a pass.
template <class B, uint32_t M, bool kByTape>
PLOW_DEVICE void warp_chunk(const WarpPass& self, uint32_t chunk, float (&sums)[kPassSlots][M][4],
                            float (&squares)[2]) {
  // Half atoms whose A is in registers: all of the part for few rows, one for many.
  constexpr uint32_t kHeld = M == 1 ? 2 * part_atoms<B>() : 1;
  // Slots whose weights are asked for at once where they are not the tape's.
  constexpr uint32_t kSlotsAtOnce = M == 1 ? 2 : 4;
  const uint32_t n_atoms = self.rows->shape.chunk_atoms;
  uint32_t first_piece = 0;
  if constexpr (kByTape) first_piece = self.tape->n_pieces;
  for (uint32_t first = 0; first < 2 * part_atoms<B>(); first += kHeld) {
    WarpRows<M> a[kHeld];
    PLOW_UNROLL
    for (uint32_t i = 0; i < kHeld; ++i) {
      if (wave<B>() + (first + i) / 2 * parts_of<B>() < n_atoms)
        load_warp_rows<B, M>(self, chunk, (first + i) / 2, (first + i) % 2, a[i], squares);
      B::settle_wave();  // no more activations in registers than those of one
    }
    if constexpr (kByTape) self.tape->n_pieces = first_piece;
    PLOW_UNROLL
    for (uint32_t slot = 0; slot < kPassSlots; ++slot) {
      if (slot >= self.pass->n_slots()) break;
      if constexpr (kByTape) {
        multiply_piece<B, M>(next_piece<B>(*self.tape), first, n_atoms, a, sums[slot]);
        if (first + kHeld >= 2 * part_atoms<B>()) {
          done_with_piece<B>(*self.tape);
        } else {
          ++self.tape->n_pieces;
        }
      } else {
        if (slot % kSlotsAtOnce == 0) B::settle_wave();
        multiply_piece<B, M>(slot_chunk(*self.rows, *self.pass, slot, chunk), first, n_atoms, a, sums[slot]);
      }
    }
  }
}

template <class B, uint32_t M, bool kByTape>
PLOW_DEVICE void warp_chunks(const WarpPass& self, float (&sums)[kPassSlots][M][4], float (&squares)[2]) {
  const Range chunks = self.rows->chunks();
  if constexpr (M == 1) stage_chunk<B>(self, chunks.begin);
  for (uint32_t chunk = chunks.begin; chunk < chunks.end; ++chunk) {
    if constexpr (M == 1) {
      if (chunk + 1 < chunks.end) stage_chunk<B>(self, chunk + 1);
      B::await_stage(chunk + 1 < chunks.end);
      B::settle_wave();
    }
    warp_chunk<B, M, kByTape>(self, chunk, sums, squares);
    B::settle_wave();  // the stage of this chunk is the next but one's
  }
}

// The lane's sums become parts.
template <class B, uint32_t M>
PLOW_DEVICE void store_parts(const ProductRows& rows, const ProductPass& pass,
                             const float (&sums)[kPassSlots][M][4], const float (&square)[2], float* squares,
                             float* parts) {
  const uint32_t part = wave<B>(), quarter = lane<B>() % 4;
  PLOW_UNROLL
  for (uint32_t upper = 0; upper < 2; ++upper) {
    const uint32_t row = lane<B>() / 4 + 8 * upper;
    if (squares != nullptr && rows.product->gain != nullptr) {
      const float total = reduce_lanes<B>(square[upper], 4, Sum{});
      const uint32_t of_row = M == 1 ? row / kSplit : row;
      if (quarter == 0 && (M > 1 || row % kSplit == 0)) squares[part * kPartRows + of_row] = total;
    }
    if (row >= (M == 1 ? kSplit : 1) * rows.n) continue;
    PLOW_UNROLL
    for (uint32_t slot = 0; slot < kPassSlots; ++slot) {
      if (slot >= pass.n_slots()) break;
      float* to = parts + slot * slot_floats<B>() + (part * kPartRows + row) * kAtomRows + 2 * quarter;
      PLOW_UNROLL
      for (uint32_t i = 0; i < 2; ++i) {
        const uint32_t c = 2 * upper + i;
        float sum = sums[slot][M - 1][c];
        PLOW_UNROLL
        for (uint32_t m = M - 1; m > 0; --m) sum = B::add(sums[slot][m - 1][c], sum);
        to[i] = sum;
      }
    }
  }
}

// All parts of a pass against up to 4 rows (M = 1) or 16 (M = 3). `stage`: stage_floats for each warp. A
// function for each way: in one for all of them the compiler keeps the sums of none in registers.
template <class B, uint32_t M, bool kByTape>
PLOW_DEVICE_BODY void warp_pass(const ProductRows& rows, const ProductPass& pass, TapePlace* tape, float* stage,
                                float* squares, float* parts) {
  static_assert(B::kLanes == 32);
  float sums[kPassSlots][M][4] = {}, square[2] = {};
  TapePlace place;
  if constexpr (kByTape) place = *tape;
  const WarpPass self{&rows, &pass, kByTape ? &place : nullptr, stage + wave<B>() * stage_floats<B>()};
  warp_chunks<B, M, kByTape>(self, sums, square);
  store_parts<B, M>(rows, pass, sums, square, squares, parts);
  if constexpr (kByTape) tape->n_pieces = place.n_pieces;
}

}  // namespace plow::dev
