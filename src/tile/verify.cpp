#include <algorithm>

#include "ops/tile_rule.h"
#include "tile/op_instance.h"
#include "tile/tile_graph.h"

namespace plow {

namespace {

Error at(const TileGraph& tiles, uint32_t op, uint32_t tile, const std::string& what) {
  return verification_error(
      fmt::format("tile graph: op {} (node %{}), column tile {}: {}", op, tiles.ops[op].from.value, tile, what));
}

// Whether some edge of the tile orders it after the producer's columns [begin, end) in the relation that the access needs.
bool covered(const TileGraph& tiles, std::span<const TileEdge> edges, TileOpId producer, const Access& access) {
  const TileOp& from = tiles.ops[producer.value];
  const Relation needed = access.rows == RowAccess::kTile ? Relation::kSame : Relation::kAll;
  for (uint32_t t = access.col_begin / from.tile_cols; t * from.tile_cols < access.col_end; ++t) {
    const bool found = std::any_of(edges.begin(), edges.end(), [&](const TileEdge& edge) {
      return edge.producer == producer && t >= edge.first && t - edge.first < edge.count &&
             (edge.relation == Relation::kAll || needed == Relation::kSame);
    });
    if (!found) return false;
  }
  return true;
}

Status verify_tile(const OpGraph& graph, const TileGraph& tiles, const OperatorView& view, uint32_t op_index, uint32_t tile) {
  const TileOp& op = tiles.ops[op_index];
  const uint32_t begin = tile * op.tile_cols;
  const uint32_t end = std::min(begin + op.tile_cols, view.instance().output().cols);
  std::vector<Access> accesses;
  tile_rule(view.op)->footprint(view.instance(), begin, end, accesses);
  const auto edges = tiles.edges_of(op, tile);
  const auto inputs = graph.inputs_of(op.from);
  bool writes_its_columns = false;
  for (const Access& access : accesses) {
    if (access.writes) {
      writes_its_columns |= access.operand == inputs.size() && access.col_begin == begin && access.col_end == end;
      continue;
    }
    const TileOpId producer = tiles.op_of_node[inputs[access.operand].value];
    if (!producer.valid()) continue;
    if (producer.value >= op_index) return at(tiles, op_index, tile, "reads an operator that comes later");
    if (access.rows == RowAccess::kTile && tiles.ops[producer.value].row_kind != op.row_kind) {
      return at(tiles, op_index, tile, fmt::format("reads rows of another kind of op {} row by row", producer.value));
    }
    if (!covered(tiles, edges, producer, access)) {
      return at(tiles, op_index, tile, fmt::format("no edge orders its read of columns {} to {} of op {}", access.col_begin,
                                                   access.col_end, producer.value));
    }
  }
  if (!writes_its_columns) return at(tiles, op_index, tile, "does not write exactly its own columns");
  return {};
}

Status verify_shape(const ProgramShape& shape) {
  if (shape.max_rows == 0 || shape.token_row_tile == 0 || shape.max_samples == 0 || shape.sample_row_tile == 0) {
    return verification_error("tile graph: a program with no rows, or with row tiles of no rows");
  }
  return {};
}

}  // namespace

Status verify_tile_graph(const OpGraph& graph, const TileGraph& tiles) {
  PLOW_TRY_STATUS(verify_shape(tiles.shape));
  if (tiles.op_of_node.size() != graph.nodes.size()) return verification_error("tile graph: made of another operator graph");
  uint32_t next_tile = 0;
  std::vector<bool> seen(graph.nodes.size(), false);
  for (uint32_t o = 0; o < tiles.ops.size(); ++o) {
    const TileOp& op = tiles.ops[o];
    if (op.from.value >= graph.nodes.size() || is_leaf(graph.node(op.from).op) || seen[op.from.value]) {
      return verification_error(fmt::format("tile graph: op {} is of no node, of a leaf, or of a node that has one already", o));
    }
    seen[op.from.value] = true;
    const OperatorView view(graph, op.from);
    const uint32_t cols = view.instance().output().cols;
    const uint32_t unit = tile_rule(view.op)->column_unit(view.instance());
    const bool whole = op.tile_cols == cols;
    if (op.tile_cols == 0 || op.tile_cols > cols || (!whole && op.tile_cols % unit != 0)) {
      return verification_error(fmt::format("tile graph: op {} has tiles of {} columns, not a multiple of {} up to the whole width", o, op.tile_cols, unit));
    }
    if (op.first_tile != next_tile || op.n_tiles != (cols + op.tile_cols - 1) / op.tile_cols) {
      return verification_error(fmt::format("tile graph: op {} has {} tiles, which do not cover its {} columns once", o, op.n_tiles, cols));
    }
    next_tile += op.n_tiles;
    if (tiles.edge_begin.size() <= next_tile) return verification_error(fmt::format("tile graph: op {} lacks edge lists", o));
    for (uint32_t t = 0; t < op.n_tiles; ++t) PLOW_TRY_STATUS(verify_tile(graph, tiles, view, o, t));
  }
  for (uint32_t n = 0; n < graph.nodes.size(); ++n) {
    if (!is_leaf(graph.nodes[n].op) && !seen[n]) return verification_error(fmt::format("tile graph: node %{} has no tiles", n));
  }
  return {};
}

}  // namespace plow
