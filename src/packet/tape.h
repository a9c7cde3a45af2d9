// The tape: every weight and constant of a model, once, in the order in which a step first uses it. Its layout does not depend on the number of workers.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "abi/header.h"
#include "abi/tensor.h"
#include "graph/graph.h"

namespace plow {

struct TapeTensor {
  NodeId node;
  uint64_t offset = 0;  // a multiple of kTapeAlignment
  uint64_t bytes = 0;
  uint32_t rows = 0, cols = 0;
  DType dtype = DType::kF32;
  Layout layout = Layout::kRowMajor;
};

struct TapePlan {
  std::vector<TapeTensor> tensors;
  std::vector<uint32_t> of_node;  // by graph node: index into tensors, or kNoSource
  uint64_t bytes = 0;
};

// A page, so that a tensor can be mapped and advised on alone.
constexpr uint64_t kTapeAlignment = 4096;

// Rows that a group of Layout::kRows16Pairs has, and columns of a pair.
constexpr uint32_t kRowGroup = 16;
constexpr uint32_t kColumnPair = 2;

// Matrices lie as the ISA's bodies read them: see layout_of_matrices.
TapePlan plan_tape(const OpGraph& graph, Isa isa);

// How the ISA's bodies want the matrices of a dtype that linear maps and look-ups read. REQUIRES that they read it: has_block_bodies().
Layout layout_of_matrices(Isa isa, DType dtype);

// Whether the ISA's bodies read matrices of blocks.
bool has_block_bodies(Isa isa);

// Whether a tensor's rows (or groups of kRowGroup rows) follow each other, so that it can be packed piece by piece.
bool packs_by_rows(Layout layout);

// Bytes of a matrix in a layout; a row-major row has no padding. Of columns that are not whole blocks those that they begin count.
uint64_t layout_bytes(Layout layout, DType dtype, uint32_t rows, uint32_t cols);

// Writes rows [first_row, first_row + n_rows), given as floats [n_rows, cols], into `out`, the bytes of the whole tensor; padding is left as it is
// (zeros, where the caller began with zeros). REQUIRES out.size() == layout_bytes(layout, dtype, rows, cols). Values are rounded to nearest even
// where the dtype has fewer bits.
void pack_rows(const TapeTensor& tensor, uint32_t first_row, uint32_t n_rows, const float* values, std::span<std::byte> out);

// The same of a tensor of blocks, whose rows are given as GGUF stores them: blocks of an f16 scale and 32 integers, of 8 bits in their order, or of
// 4 bits of which value i is the low and value i + 16 the high half of byte i. REQUIRES zeros in `out`.
void pack_blocks(const TapeTensor& tensor, uint32_t first_row, uint32_t n_rows, std::span<const std::byte> blocks, std::span<std::byte> out);

}  // namespace plow
