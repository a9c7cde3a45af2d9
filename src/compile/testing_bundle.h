// A bundle of a toy model, in memory, for the tests of what reads bundles and stages together.
#pragma once

#include "compile/pipeline.h"
#include "graph/testing/toy_graph.h"
#include "packet/kv_plan.h"
#include "packet/tape.h"

#include <string>
#include <utility>

namespace plow {

struct ToyBundle {
  BundleFile file;
  BundleStages stages;
};

// The tables of a bundle of a graph, with the ISA's default plan; no weights are needed for them.
inline BundleTables tables_of_graph(const OpGraph& graph, Isa isa, uint32_t n_workers, uint32_t chunk_rows,
                                    uint32_t max_slots) {
  const TapePlan tape = plan_tape(graph, isa);
  BundleTables tables;
  tables.header.isa = isa;
  tables.header.n_workers = n_workers;
  tables.header.tape_bytes = tape.bytes;
  tables.header.vocab = graph.vocab;
  tables.header.max_context = 256;
  tables.header.max_slots = max_slots;
  tables.header.kv_dtype = DType::kF32;
  for (const Node& node : graph.nodes) {
    if (node.op == Op::kKvState) tables.header.kv_dtype = node.dtype;
  }
  tables.header.n_layers = graph.n_layers;
  tables.header.hidden = graph.hidden;
  auto programs = build_programs(graph, n_workers, chunk_rows, max_slots, default_plan(isa));
  PLOW_CHECK(programs.ok(), "{}", programs.error().message);
  for (const ProgramStages& program : *programs) tables.programs.push_back(program.tables);
  tables.kv_groups = plan_kv(graph, isa).groups;
  for (const TapeTensor& tensor : tape.tensors) {
    const Node& node = graph.node(tensor.node);
    const std::string& name =
        node.op == Op::kWeight ? graph.weights[node.leaf].name : graph.constants[node.leaf].name;
    tables.sources.push_back({name, tensor.offset, tensor.bytes, 0, 0});
  }
  tables.graph_text = print_graph(graph);
  tables.build_record = "{}\n";
  return tables;
}

inline ToyBundle toy_bundle(uint32_t n_workers, uint32_t chunk_rows = 512) {
  const BundleTables tables = tables_of_graph(toy_graph(), Isa::kX86_64, n_workers, chunk_rows, 4);
  auto file = BundleFile::from_bytes(serialise_bundle(tables));
  PLOW_CHECK(file.ok(), "{}", file.error().message);
  auto stages = derive_stages(*file);
  PLOW_CHECK(stages.ok(), "{}", stages.error().message);
  return {std::move(file).value(), std::move(stages).value()};
}

}  // namespace plow
