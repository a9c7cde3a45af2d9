// Where the elements of a matrix in Layout::kAtoms8x128 and in Layout::kRows16Blocks lie; for packers,
// checkers and device bodies alike. It does not depend on how many workers there are.
//
// kRows16Blocks is [row group of 16][block of 32 columns][the 16 rows' f16 scales, then their integers]. The
// integers are lines of 32: two columns of 16 rows, as in Layout::kRows16Pairs, so that a product of pairs of
// 16-bit numbers gives the sums of 16 rows side by side. Of kQ4_0 two lines share 32 bytes, the first in the
// low halves. Rows are padded with zeros to a multiple of 16; columns are a multiple of 32.
//
// An atom is 8 rows x 128 bytes of columns, 1 KiB: row r's 16-byte unit u lies at 128 r + 16 (u ^ r). (That
// is the operand tile that Hopper's wgmma calls the 128-byte swizzle, and eight rows' equal units lie in
// eight different groups of shared memory's banks.) A chunk is 8 rows of consecutive atoms: as many as the
// largest divisor of a row's atoms that is at most 16. The matrix is [chunk of columns][tile of 8
// rows][chunk]. Rows and columns are padded with zeros to whole atoms.
#pragma once

#include "abi/tensor.h"

#include <stdint.h>

namespace plow {

constexpr uint32_t kAtomRows = 8;
constexpr uint32_t kAtomRowBytes = 128;
constexpr uint32_t kAtomBytes = kAtomRows * kAtomRowBytes;
constexpr uint32_t kAtomUnitBytes = 16;
constexpr uint32_t kMostChunkAtoms = 16;

struct AtomShape {
  uint32_t row_tiles;    // of 8 rows
  uint32_t chunks;       // of columns
  uint32_t chunk_atoms;  // atoms of 8 rows in a chunk

  constexpr uint64_t chunk_bytes() const { return uint64_t{chunk_atoms} * kAtomBytes; }
  constexpr uint64_t bytes() const { return uint64_t{chunks} * row_tiles * chunk_bytes(); }
  // Of the chunk of columns `chunk` of row tile `tile`.
  constexpr uint64_t chunk_offset(uint32_t chunk, uint32_t tile) const {
    return (uint64_t{chunk} * row_tiles + tile) * chunk_bytes();
  }
  // Of byte `byte` of row `row`.
  constexpr uint64_t offset(uint32_t row, uint64_t byte) const {
    const uint64_t atom = byte / kAtomRowBytes;
    const uint32_t r = row % kAtomRows, unit = static_cast<uint32_t>(byte % kAtomRowBytes) / kAtomUnitBytes;
    return chunk_offset(static_cast<uint32_t>(atom / chunk_atoms), row / kAtomRows) +
           atom % chunk_atoms * kAtomBytes + r * kAtomRowBytes + (unit ^ r) * kAtomUnitBytes +
           byte % kAtomUnitBytes;
  }
};

// REQUIRES rows, cols and element_bytes above 0.
constexpr AtomShape atom_shape(uint32_t rows, uint32_t cols, uint32_t element_bytes) {
  const uint64_t row_bytes = uint64_t{cols} * element_bytes;
  const uint32_t atoms = static_cast<uint32_t>((row_bytes + kAtomRowBytes - 1) / kAtomRowBytes);
  uint32_t chunk_atoms = atoms < kMostChunkAtoms ? atoms : kMostChunkAtoms;
  while (atoms % chunk_atoms != 0) --chunk_atoms;
  return {rows / kAtomRows + (rows % kAtomRows != 0 ? 1 : 0), atoms / chunk_atoms, chunk_atoms};
}

constexpr uint32_t kBlockRows = 16;     // of a row group
constexpr uint32_t kBlockColumns = 32;  // dtype_block_values()
constexpr uint32_t kBlockScaleBytes = 2 * kBlockRows;
constexpr uint32_t kBlockLineBytes = 2 * kBlockRows;

// Bytes of a block of a row group. REQUIRES a dtype of blocks, as below.
constexpr uint32_t row_block_bytes(DType dtype) { return kBlockRows * dtype_bytes(dtype); }

// From the start of the matrix to the block that holds the element.
constexpr uint64_t row_block_offset(DType dtype, uint32_t cols, uint32_t row, uint32_t col) {
  return (uint64_t{row / kBlockRows} * (cols / kBlockColumns) + col / kBlockColumns) * row_block_bytes(dtype);
}

// From the start of a block to the byte that holds the element, or half of it.
constexpr uint32_t in_block_offset(DType dtype, uint32_t row, uint32_t col) {
  const uint32_t pair = col % kBlockColumns / 2, line = dtype == DType::kQ4_0 ? pair / 2 : pair;
  return kBlockScaleBytes + line * kBlockLineBytes + row % kBlockRows * 2 + col % 2;
}

// The integer that the byte at in_block_offset() says.
constexpr int32_t block_integer(DType dtype, uint8_t byte, uint32_t col) {
  if (dtype == DType::kQ8_0) return static_cast<int8_t>(byte);
  return (col / 2 % 2 == 0 ? byte & 15 : byte >> 4) - 8;
}

}  // namespace plow
