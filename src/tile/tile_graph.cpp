#include "tile/tile_graph.h"

#include <algorithm>

#include "ops/tile_rule.h"
#include "tile/op_instance.h"

namespace plow {

namespace {

uint32_t ceil_div(uint32_t a, uint32_t b) { return (a + b - 1) / b; }

// The width of an operator's column tiles.
uint32_t choose_tile_cols(const Node& node, uint32_t unit, const OpSetting* setting, const TileOptions& options) {
  uint32_t wanted = is_product(node.op) ? options.linear_cols : options.row_wise_cols;
  if (setting != nullptr && setting->tile_cols != 0) wanted = setting->tile_cols;
  return tile_width(std::max(wanted, 1u), unit, node.shape.cols);
}

const OpSetting* find_setting(const OperatorView& view, const TileOptions& options) {
  const auto found = std::find_if(options.settings.begin(), options.settings.end(), [&](const OpSetting& setting) {
    return setting.op == view.op && setting.inputs == view.shapes.front().cols && setting.outputs == view.shapes.back().cols;
  });
  return found == options.settings.end() ? nullptr : &*found;
}

// Appends to `edges` what a tile needs, one edge for each operand that another operator writes. Producers' tiles are found by the columns that overlap.
void add_edges(const OpGraph& graph, const TileGraph& tiles, const OperatorView& view, std::span<const Access> accesses,
               std::vector<TileEdge>& edges) {
  const auto inputs = graph.inputs_of(view.node);
  for (const Access& access : accesses) {
    if (access.writes || access.operand >= inputs.size()) continue;
    const TileOpId producer = tiles.op_of_node[inputs[access.operand].value];
    if (!producer.valid()) continue;  // a leaf: there before the step begins
    const TileOp& op = tiles.ops[producer.value];
    const uint32_t first = access.col_begin / op.tile_cols;
    const uint32_t last = ceil_div(access.col_end, op.tile_cols);
    const Relation relation = access.rows == RowAccess::kTile ? Relation::kSame : Relation::kAll;
    edges.push_back({producer, first, last - first, relation});
  }
}

}  // namespace

TileGraph tile_graph(const OpGraph& graph, const TileOptions& options) {
  TileGraph tiles;
  tiles.shape = options.shape;
  tiles.op_of_node.assign(graph.nodes.size(), TileOpId{});
  tiles.edge_begin.push_back(0);
  uint32_t first_tile = 0;
  std::vector<Access> accesses;
  for (uint32_t n = 0; n < graph.nodes.size(); ++n) {
    const Node& node = graph.nodes[n];
    if (is_leaf(node.op)) continue;
    const OperatorView view(graph, NodeId(n));
    const TileRule* rule = tile_rule(node.op);
    PLOW_CHECK(rule != nullptr, "operator {} of node {} has no tile rule", op_name(node.op), n);

    TileOp op;
    op.from = NodeId(n);
    // The cache has no rows of its own: its writer works on the rows of the step.
    op.row_kind = appends_kv(node.op) ? Rows::kTokens : node.shape.row_kind;
    const OpSetting* setting = find_setting(view, options);
    op.tile_cols = choose_tile_cols(node, rule->column_unit(view.instance()), setting, options);
    if (setting != nullptr) op.split = setting->split;
    op.n_tiles = ceil_div(node.shape.cols, op.tile_cols);
    op.first_tile = first_tile;
    first_tile += op.n_tiles;
    tiles.op_of_node[n] = TileOpId(tiles.ops.size());
    tiles.ops.push_back(op);
    for (uint32_t t = 0; t < op.n_tiles; ++t) {
      accesses.clear();
      rule->footprint(view.instance(), t * op.tile_cols, std::min((t + 1) * op.tile_cols, node.shape.cols), accesses);
      add_edges(graph, tiles, view, accesses, tiles.edges);
      tiles.edge_begin.push_back(static_cast<uint32_t>(tiles.edges.size()));
    }
  }
  return tiles;
}

}  // namespace plow
