// `plowc viz`: one page of HTML that shows a bundle's schedule, without a network. page.html, page.css and
// page.js are compiled in; the data block of the page is JSON:
//
//   model     name, architecture, isa, workers, layers, hidden, vocab, max_context, max_slots
//   memory    [[what, bytes], ...]: device memory by kind
//   ops       names; all "op" fields index it
//   nodes     of the graph: {op, layer (-1: none), text, weight}
//   programs  {max_rows, predicted_ns, span, arena_bytes,
//              packets: one array a column, by packet: op, node (-1: protocol), worker, start, end (ns),
//              col_first, col_count, col_stride,
//                       tile_cols, row_first, row_stride, first_wait, n_waits, first_signal, n_signals,
//                       weight_bytes, operands
//              waits: {counter, band, per_row_tile, constant, rows, signallers (index into the list of that
//              name)} signals: {counter, band} signallers: [[packet, ...], ...] tensors: {name, dtype, rows,
//              cols, space, bytes, node} buffers: {node, offset, bytes, start, end}}
#pragma once

#include "bundle/bundle.h"
#include "compile/pipeline.h"

#include <string>

namespace plow {

// What of a bundle is not in model.pkt.
struct VizTitle {
  std::string name;
  std::string architecture;
};

// The data block alone, for tests.
std::string viz_json(const BundleFile& bundle, const BundleStages& stages, const VizTitle& title);

std::string viz_page(const BundleFile& bundle, const BundleStages& stages, const VizTitle& title);

}  // namespace plow
