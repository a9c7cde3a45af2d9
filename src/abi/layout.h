// Where the elements of a matrix in Layout::kAtoms8x128 lie; for packers, checkers and device bodies alike.
// It does not depend on how many workers there are.
//
// An atom is 8 rows x 128 bytes of columns, 1 KiB: row r's 16-byte unit u lies at 128 r + 16 (u ^ r). (That
// is the operand tile that Hopper's wgmma calls the 128-byte swizzle, and eight rows' equal units lie in
// eight different groups of shared memory's banks.) A chunk is 8 rows of consecutive atoms: as many as the
// largest divisor of a row's atoms that is at most 16. The matrix is [chunk of columns][tile of 8
// rows][chunk]. Rows and columns are padded with zeros to whole atoms.
#pragma once

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

}  // namespace plow
