#include "abi/attention_parts.h"
#include "ops/tile_access.h"

namespace plow {
namespace {

// [R, columns of AttentionParts] -> [R,heads*head_dim]; a tile is a query head. All of a kv head's lie together in the
// parts, so that it counts as reading the others', too.
AttentionParts layout(const OpInstance& i) { return {i.attributes[0], i.attributes[1], i.attributes[2]}; }

uint32_t column_unit(const OpInstance& i) {
  const AttentionParts p = layout(i);
  const uint64_t of_kv_head = uint64_t{p.queries} * p.head_dim;
  const uint32_t cols = i.output().cols;
  if (of_kv_head == 0 || cols == 0 || cols % of_kv_head != 0 || p.parts == 0 || p.parts > kMostAttentionParts) return 0;
  return p.cols(static_cast<uint32_t>(cols / of_kv_head)) == i.operands[0].cols ? p.head_dim : 0;
}

void footprint(const OpInstance& i, uint32_t col_begin, uint32_t col_end, std::vector<Access>& out) {
  const AttentionParts p = layout(i);
  const uint32_t of_kv_head = p.queries * p.head_dim;
  out.push_back(read_tile_rows(0, static_cast<uint32_t>(p.cols(col_begin / of_kv_head)),
                               static_cast<uint32_t>(p.cols((col_end - 1) / of_kv_head + 1))));
  out.push_back(write_tile_rows(i, col_begin, col_end));
}

}  // namespace

const TileRule kAttentionMergeTileRule{Op::kAttentionMerge, 2, column_unit, footprint};

}  // namespace plow
