// The tile graph of one program: every operator cut into column tiles, and the tile-to-tile edges that overlap of regions makes. Rows are a
// parameter: a tile stands for its instances r = 0 .. R - 1, one a row tile, and an edge says how instances relate. So the graph is finite
// while the row count is not known, and what is proved of it holds for every legal row count.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/error.h"
#include "base/ids.h"
#include "graph/graph.h"
#include "ops/tile_rule.h"

namespace plow {

using TileOpId = Id<struct TileOpTag>;

// How the instances of a consumer relate to those of its producer.
enum class Relation : uint8_t {
  kSame,  // instance r of the consumer needs instance r of the producer
  kAll,   // every instance of the consumer needs every instance of the producer
};

// One way of cutting the work: the limits and the row tiles of a program.
struct ProgramShape {
  uint32_t max_rows = 1;         // T
  uint32_t max_samples = 1;      // S
  uint32_t token_row_tile = 1;   // rows of a row tile that counts T
  uint32_t sample_row_tile = 1;  // ... S
};

// How an operator is shared out among workers.
enum class Split : uint8_t {
  kAuto,     // as the schedule finds best
  kColumns,  // each worker has a run of column tiles
  kRows,     // each worker has every n-th row tile
  kGrid,     // each worker has every n-th row tile of a column tile, or several
  kOne,      // one worker has it all
};

constexpr const char* split_name(Split split) {
  switch (split) {
    case Split::kAuto: return "auto";
    case Split::kColumns: return "columns";
    case Split::kRows: return "rows";
    case Split::kGrid: return "grid";
    case Split::kOne: return "one";
  }
  return nullptr;
}
std::optional<Split> parse_split(std::string_view name);

// An operator that runs (leaves are not in the tile graph).
struct TileOp {
  NodeId from;
  Rows row_kind = Rows::kTokens;  // kTokens or kSamples
  uint32_t tile_cols = 0;         // output columns of a tile
  uint32_t n_tiles = 0;           // column tiles
  Split split = Split::kAuto;
  uint32_t first_tile = 0;        // its tiles are first_tile .. first_tile + n_tiles - 1 of the graph
};

// A consumer's tile needs tiles [first, first + count) (counted within the producer) of the producer.
struct TileEdge {
  TileOpId producer;
  uint32_t first = 0;
  uint32_t count = 0;
  Relation relation = Relation::kSame;
};

struct TileGraph {
  ProgramShape shape;
  std::vector<TileOp> ops;           // in topological order
  std::vector<uint32_t> edge_begin;  // CSR by tile: edges of tile t are [edge_begin[t], edge_begin[t + 1])
  std::vector<TileEdge> edges;
  std::vector<TileOpId> op_of_node;  // by graph node; not valid for leaves

  std::span<const TileEdge> edges_of(const TileOp& op, uint32_t tile) const {
    const uint32_t t = op.first_tile + tile;
    return {edges.data() + edge_begin[t], edge_begin[t + 1] - edge_begin[t]};
  }
};

// What is wanted for all operators of one kind and shape.
struct OpSetting {
  Op op = Op::kLinear;
  uint32_t inputs = 0;   // columns of the first input
  uint32_t outputs = 0;  // columns of the output
  uint32_t tile_cols = 0;  // 0: as for any other
  Split split = Split::kAuto;
};

// How wide the column tiles of an operator should be; the tuner's and the cost model's choice, rounded to the operator's unit.
struct TileOptions {
  ProgramShape shape;
  uint32_t linear_cols = kDefaultTileCols;      // of products
  uint32_t row_wise_cols = kDefaultTileCols;  // of operators that work element by element
  std::vector<OpSetting> settings;  // of single operators; at most one for each
};

TileGraph tile_graph(const OpGraph& graph, const TileOptions& options);

// Errors (kVerification): an output element that no tile or two tiles write; an edge that is missing for an overlap; an order that is not topological.
Status verify_tile_graph(const OpGraph& graph, const TileGraph& tiles);

std::string print_tile_graph(const OpGraph& graph, const TileGraph& tiles);
Result<TileGraph> parse_tile_graph(std::string_view text);

}  // namespace plow
