// The text form of a tile graph:
//
//   program rows 16 samples 16 row_tiles 16 16
//   op 3 = %12 linear T tiles 36 x 16
//   op 4 = %13 rms_norm T tiles 1 x 576 split rows
//     tiles 0 36: op 2 first 0 step 0 count 1 same
//
// A line "tiles A N" stands for N tiles from A on whose edges differ only in that `first` grows by `step` from tile to tile.

#include <algorithm>
#include <charconv>

#include "base/word_reader.h"
#include "tile/tile_graph.h"

namespace plow {

namespace {

// How many tiles from `tile` on follow the pattern of the first two, with the growth of `first` of each edge.
uint32_t run_length(const TileGraph& tiles, const TileOp& op, uint32_t tile, std::vector<int64_t>& steps) {
  const auto head = tiles.edges_of(op, tile);
  steps.assign(head.size(), 0);
  uint32_t length = 1;
  for (uint32_t t = tile + 1; t < op.n_tiles; ++t, ++length) {
    const auto edges = tiles.edges_of(op, t);
    if (edges.size() != head.size()) return length;
    for (size_t e = 0; e < head.size(); ++e) {
      const int64_t growth = int64_t{edges[e].first} - head[e].first;
      if (length == 1) steps[e] = std::max<int64_t>(growth, 0);
      if (edges[e].producer != head[e].producer || edges[e].count != head[e].count ||
          edges[e].relation != head[e].relation || growth != steps[e] * length) {
        return length;
      }
    }
  }
  return length;
}

void print_op(const OpGraph& graph, const TileGraph& tiles, uint32_t index, std::string& text) {
  const TileOp& op = tiles.ops[index];
  text += fmt::format("op {} = %{} {} {} tiles {} x {}", index, op.from.value, op_name(graph.node(op.from).op),
                      rows_name(op.row_kind), op.n_tiles, op.tile_cols);
  if (op.split != Split::kAuto) text += fmt::format(" split {}", split_name(op.split));
  text += "\n";
  std::vector<int64_t> steps;
  for (uint32_t t = 0; t < op.n_tiles;) {
    uint32_t length = run_length(tiles, op, t, steps);
    const auto edges = tiles.edges_of(op, t);
    if (length == 1) std::fill(steps.begin(), steps.end(), 0);
    text += fmt::format("  tiles {} {}:", t, length);
    for (size_t e = 0; e < edges.size(); ++e) {
      text += fmt::format("{} op {} first {} step {} count {} {}", e == 0 ? "" : ";", edges[e].producer.value, edges[e].first,
                          steps[e], edges[e].count, edges[e].relation == Relation::kSame ? "same" : "all");
    }
    text += "\n";
    t += length;
  }
}

Status parse_tiles_line(WordReader& words, TileGraph& tiles) {
  TileOp& op = tiles.ops.back();
  const uint32_t first = words.number();
  const uint32_t count = words.number_before(':');
  if (!words.ok() || tiles.edge_begin.size() != size_t{op.first_tile} + first + 1 || count == 0 || first + count > op.n_tiles) {
    return input_error("tile graph text: tiles out of order: " + std::string(words.line()));
  }
  std::vector<TileEdge> head;
  std::vector<uint32_t> steps;
  while (words.more()) {
    words.expect("op");
    TileEdge edge;
    edge.producer = TileOpId(words.number());
    words.expect("first");
    edge.first = words.number();
    words.expect("step");
    steps.push_back(words.number());
    words.expect("count");
    edge.count = words.number();
    const std::string_view relation = words.word_before(';');
    edge.relation = relation == "all" ? Relation::kAll : Relation::kSame;
    if (!words.ok() || (relation != "all" && relation != "same")) {
      return input_error("tile graph text: bad edge: " + std::string(words.line()));
    }
    head.push_back(edge);
  }
  for (uint32_t i = 0; i < count; ++i) {
    for (size_t e = 0; e < head.size(); ++e) {
      TileEdge edge = head[e];
      edge.first += steps[e] * i;
      tiles.edges.push_back(edge);
    }
    tiles.edge_begin.push_back(static_cast<uint32_t>(tiles.edges.size()));
  }
  return {};
}

// "op 3 = %12 linear T tiles 36 x 16"
Status parse_op_line(WordReader& words, TileGraph& tiles) {
  TileOp op;
  const uint32_t index = words.number();
  words.expect("=");
  op.from = NodeId(words.number_after('%'));
  words.word();  // the operator's name, for people
  const std::string_view rows = words.word();
  op.row_kind = rows == "S" ? Rows::kSamples : Rows::kTokens;
  words.expect("tiles");
  op.n_tiles = words.number();
  words.expect("x");
  op.tile_cols = words.number();
  if (words.more()) {
    words.expect("split");
    const auto split = parse_split(words.word());
    if (!split) return input_error("tile graph text: bad split: " + std::string(words.line()));
    op.split = *split;
  }
  op.first_tile = static_cast<uint32_t>(tiles.edge_begin.size()) - 1;
  constexpr uint32_t kMaxNodes = 1u << 24;  // a bound on what a text may make us allocate
  if (!words.ok() || index != tiles.ops.size() || (rows != "S" && rows != "T") || op.from.value > kMaxNodes) {
    return input_error("tile graph text: bad op line: " + std::string(words.line()));
  }
  if (tiles.op_of_node.size() <= op.from.value) tiles.op_of_node.resize(op.from.value + 1);
  tiles.op_of_node[op.from.value] = TileOpId(tiles.ops.size());
  tiles.ops.push_back(op);
  return {};
}

}  // namespace

std::optional<Split> parse_split(std::string_view name) {
  for (const Split split : {Split::kAuto, Split::kColumns, Split::kRows, Split::kGrid, Split::kOne}) {
    if (name == split_name(split)) return split;
  }
  return std::nullopt;
}

std::string print_tile_graph(const OpGraph& graph, const TileGraph& tiles) {
  std::string text = fmt::format("program rows {} samples {} row_tiles {} {}\n", tiles.shape.max_rows, tiles.shape.max_samples,
                                 tiles.shape.token_row_tile, tiles.shape.sample_row_tile);
  for (uint32_t o = 0; o < tiles.ops.size(); ++o) print_op(graph, tiles, o, text);
  return text;
}

Result<TileGraph> parse_tile_graph(std::string_view text) {
  TileGraph tiles;
  tiles.edge_begin.push_back(0);
  for (LineReader lines(text); lines.next();) {
    WordReader words(lines.line());
    const std::string_view kind = words.word();
    if (kind.empty()) continue;
    if (kind == "program") {
      words.expect("rows");
      tiles.shape.max_rows = words.number();
      words.expect("samples");
      tiles.shape.max_samples = words.number();
      words.expect("row_tiles");
      tiles.shape.token_row_tile = words.number();
      tiles.shape.sample_row_tile = words.number();
      if (!words.ok()) return input_error("tile graph text: bad program line: " + std::string(words.line()));
    } else if (kind == "op") {
      PLOW_TRY_STATUS(parse_op_line(words, tiles));
    } else if (kind == "tiles" && !tiles.ops.empty()) {
      PLOW_TRY_STATUS(parse_tiles_line(words, tiles));
    } else {
      return input_error("tile graph text: unknown line: " + std::string(words.line()));
    }
  }
  return tiles;
}

}  // namespace plow
