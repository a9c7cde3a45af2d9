#include "tile/tile_graph.h"

#include <gtest/gtest.h>

#include "graph/testing/toy_graph.h"

namespace plow {
namespace {

TileOptions few_rows() {
  TileOptions options;
  options.shape = {16, 16, 16, 16};
  return options;
}

TEST(TileGraph, OfATransformerVerifies) {
  for (const ToyShape& shape : {ToyShape{}, ToyShape{3, 64, 4, 2, 16, 96, 320, 8}}) {
    const OpGraph graph = toy_graph(shape);
    for (const uint32_t width : {1u, 16u, 48u, 100000u}) {
      TileOptions options = few_rows();
      options.linear_cols = options.row_wise_cols = width;
      const TileGraph tiles = tile_graph(graph, options);
      const Status status = verify_tile_graph(graph, tiles);
      EXPECT_TRUE(status.ok()) << status.error().message;
    }
  }
}

TEST(TileGraph, PrintsAndParsesToTheSame) {
  const OpGraph graph = toy_graph();
  const TileGraph tiles = tile_graph(graph, few_rows());
  const std::string text = print_tile_graph(graph, tiles);
  const auto parsed = parse_tile_graph(text);
  ASSERT_TRUE(parsed.ok()) << parsed.error().message;
  TileGraph padded = *parsed;
  padded.op_of_node.resize(graph.nodes.size());
  EXPECT_TRUE(verify_tile_graph(graph, padded).ok());
  EXPECT_EQ(print_tile_graph(graph, padded), text);
}

TEST(TileGraph, EveryEdgeIsNeeded) {
  const OpGraph graph = toy_graph();
  const TileGraph tiles = tile_graph(graph, few_rows());
  for (size_t e = 0; e < tiles.edges.size(); ++e) {
    TileGraph without = tiles;
    without.edges[e].count = 0;
    EXPECT_FALSE(verify_tile_graph(graph, without).ok()) << "edge " << e;
    TileGraph weaker = tiles;
    if (weaker.edges[e].relation == Relation::kAll) {
      weaker.edges[e].relation = Relation::kSame;
      EXPECT_FALSE(verify_tile_graph(graph, weaker).ok()) << "edge " << e;
    }
  }
}

TEST(TileGraph, TilesThatDoNotCoverOnceAreRefused) {
  const OpGraph graph = toy_graph();
  const TileGraph tiles = tile_graph(graph, few_rows());
  for (size_t o = 0; o < tiles.ops.size(); ++o) {
    for (const int change : {-1, 1}) {
      TileGraph wrong = tiles;
      wrong.ops[o].n_tiles += static_cast<uint32_t>(change);
      EXPECT_FALSE(verify_tile_graph(graph, wrong).ok());
      wrong = tiles;
      wrong.ops[o].tile_cols += static_cast<uint32_t>(change);
      EXPECT_FALSE(verify_tile_graph(graph, wrong).ok());
    }
  }
  TileGraph missing = tiles;
  missing.ops.pop_back();
  EXPECT_FALSE(verify_tile_graph(graph, missing).ok());
}

TEST(TileGraph, TextsOfUnknownOriginAreErrors) {
  for (const char* text : {"op 1 = %1 add T tiles 1 x 1\n", "tiles 0 1:\n", "nonsense\n", "program rows x\n",
                           "op 0 = %4294967295 add T tiles 1 x 1\n", "op 0 = %1 add Q tiles 1 x 1\n",
                           "op 0 = %1 add T tiles 2 x 1\n  tiles 0 3: op 0 first 0 step 0 count 1 same\n",
                           "op 0 = %1 add T tiles 2 x 1\n  tiles 0 1: op 0 first 0 step 0 count 1 sometimes\n"}) {
    EXPECT_FALSE(parse_tile_graph(text).ok()) << text;
  }
}

}  // namespace
}  // namespace plow
