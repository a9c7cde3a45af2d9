// How an operator is cut into tiles, and what a tile reads and writes. Mandatory for every operator: the tile
// graph's edges, the schedule's waits, the checker and the reference machine all rest on it. It is stated
// over packets' terms (operands' shapes and immediates), not over the graph, so that the same function serves
// the compiler and whoever reads a bundle's bytes.
//
// A tile is (row tile r, column tile c): rows [r * row_tile, ...) and columns [c * tile_cols, ...) of the
// operator's output. How many row tiles there are is known when the step begins; column tiles are counted at
// compile time.
#pragma once

#include "abi/op.h"
#include "abi/packet.h"
#include "abi/tensor.h"

#include <array>
#include <cstdint>
#include <span>
#include <vector>

namespace plow {

struct OperandShape {
  Rows row_kind = Rows::kFixed;
  uint32_t rows = 1;  // when fixed
  uint32_t cols = 0;
};

// An operator with its operands: the inputs in order, then the output.
struct OpInstance {
  Op op;
  std::array<uint32_t, kPacketImmediates> attributes{};
  std::span<const OperandShape> operands;

  const OperandShape& output() const { return operands.back(); }
};

enum class RowAccess : uint8_t {
  kTile,   // the rows of the row tile: of a tensor with the operator's own row kind
  kAll,    // any row: of a tensor of another row kind, or of the KV state (other positions of the sequence)
  kFixed,  // rows [row_begin, row_end) of a tensor with fixed rows (weights, constants)
};

struct Access {
  uint8_t operand;  // index into OpInstance::operands
  bool writes;
  RowAccess rows;
  uint32_t row_begin, row_end;  // for kFixed
  uint32_t col_begin, col_end;
};

struct TileRule {
  Op op;
  uint32_t n_operands;  // inputs and the output
  // Legal tile widths are the multiples of this many output columns (or the whole width when this is at least
  // as wide). 0 when the operands' shapes or the attributes do not fit the operator: of a graph that
  // verifies, never; of a bundle's bytes, a reason to refuse it. REQUIRES n_operands operands.
  uint32_t (*column_unit)(const OpInstance& instance);
  // Appends what the tile of output columns [col_begin, col_end) reads and writes; everything lies inside the
  // operands. REQUIRES column_unit() != 0, col_begin a multiple of it, col_begin < col_end <= output().cols,
  // and col_end a multiple of it or output().cols.
  void (*footprint)(const OpInstance& instance, uint32_t col_begin, uint32_t col_end,
                    std::vector<Access>& out);
};

// Columns of a tile where nothing asks for another width.
constexpr uint32_t kDefaultTileCols = 16;

// The width of the tiles of `cols` output columns: the wanted one, rounded up to the rule's unit, never wider
// than the output.
inline uint32_t tile_width(uint32_t wanted, uint32_t unit, uint32_t cols) {
  const uint32_t rounded = (wanted + unit - 1) / unit * unit;
  return rounded < cols ? rounded : cols;
}

// What the row tiles of an operator count: its output's rows; of one that appends to the KV state, which is
// its output, its keys' rows.
inline Rows instance_rows(const OpInstance& instance) {
  return appends_kv(instance.op) ? instance.operands.front().row_kind : instance.output().row_kind;
}

// Null for leaves and protocol packets.
const TileRule* tile_rule(Op op);

}  // namespace plow
