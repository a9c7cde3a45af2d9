// A bundle and its tape made from a toy graph and seeded weights, without a checkpoint: for tests of whatever
// runs bundles.
#pragma once

#include "base/digest.h"
#include "bundle/bundle.h"
#include "graph/evaluate.h"
#include "graph/testing/toy_graph.h"
#include "packet/encode.h"

#include <random>
#include <string>
#include <vector>

namespace plow {

// Matrices of values around 0, scaled so that activations stay around 1; gains (one row, f32) around 1.
struct ToyWeights : WeightSource {
  uint64_t seed = 1;

  Status read_rows(const std::string& name, uint32_t first, uint32_t count, uint32_t cols,
                   float* out) const override {
    for (uint32_t r = first; r < first + count; ++r) {
      const std::string key = name + "/" + std::to_string(r);
      std::mt19937_64 random(seed ^ xxh3_128(std::as_bytes(std::span(key.data(), key.size()))).low);
      for (uint32_t c = 0; c < cols; ++c) {
        const double uniform = static_cast<double>(random() >> 11) * 0x1p-53 - 0.5;
        const bool gain = name.find("norm") != std::string::npos;
        *out++ = static_cast<float>(gain ? 1 + 0.2 * uniform : 3 * uniform / std::sqrt(cols));
      }
    }
    return {};
  }
};

struct SeededToy {
  OpGraph graph;
  BundleTables tables;
  std::vector<std::byte> tape;
  ToyWeights weights;

  BundleFile open() const { return BundleFile::from_bytes(serialise_bundle(tables)).value(); }
};

struct SeededToyOptions {
  ToyShape shape;
  std::vector<TileOptions> programs = {{{4, 4, 4, 4}, 16, 16, {}},
                                       {{20, 8, 4, 4}, 16, 16, {}}};  // few rows, many rows
  uint32_t n_workers = 2;
  uint32_t max_slots = 3;
  uint32_t max_context = 48;
  uint64_t seed = 1;
  Isa isa = Isa::kX86_64;
};

// Small enough that thousands of mutants of it can be run.
inline SeededToyOptions small_toy_options(uint32_t n_workers) {
  SeededToyOptions options;
  options.shape = {.layers = 3,
                   .hidden = 48,
                   .heads = 4,
                   .kv_heads = 2,
                   .head_dim = 8,
                   .ffn = 32,
                   .vocab = 64,
                   .window = 6};
  options.n_workers = n_workers;
  return options;
}

inline std::vector<std::byte> toy_tape(const OpGraph& graph, const TapePlan& plan,
                                       const WeightSource& weights) {
  std::vector<std::byte> tape(plan.bytes);
  for (const TapeTensor& tensor : plan.tensors) {
    const std::span<std::byte> bytes(tape.data() + tensor.offset, tensor.bytes);
    const Node& node = graph.node(tensor.node);
    if (node.op == Op::kConstant) {
      const std::vector<double>& values = graph.constants[node.leaf].values;
      PLOW_CHECK(tensor.dtype == DType::kF64 && tensor.layout == Layout::kRowMajor,
                 "a toy constant is f64, row-major");
      std::memcpy(bytes.data(), values.data(), bytes.size());
      continue;
    }
    std::vector<float> values(size_t{tensor.rows} * tensor.cols);
    PLOW_CHECK(
        weights.read_rows(graph.weights[node.leaf].name, 0, tensor.rows, tensor.cols, values.data()).ok(),
        "toy weights");
    pack_rows(tensor, 0, tensor.rows, values.data(), bytes);
  }
  return tape;
}

inline SeededToy make_seeded_toy(const SeededToyOptions& options = {}) {
  SeededToy toy;
  toy.weights.seed = options.seed;
  toy.graph = toy_graph(options.shape);
  const TapePlan tape = plan_tape(toy.graph, options.isa);
  const KvPlan kv = plan_kv(toy.graph, options.isa);
  for (const TileOptions& cut : options.programs) {
    const TileGraph tiles = tile_graph(toy.graph, cut);
    const Schedule schedule =
        schedule_tiles(toy.graph, tiles, {options.n_workers, &default_part(options.isa)});
    toy.tables.programs.push_back(encode_program(toy.graph, tiles, schedule, tape, kv));
  }
  toy.tape = toy_tape(toy.graph, tape, toy.weights);
  toy.tables.kv_groups = kv.groups;
  for (const TapeTensor& tensor : tape.tensors)
    toy.tables.sources.push_back({"toy", tensor.offset, tensor.bytes, 0, 0});
  BundleHeader& header = toy.tables.header;
  header.isa = options.isa;
  header.n_workers = options.n_workers;
  header.tape_bytes = tape.bytes;
  header.vocab = options.shape.vocab;
  header.max_context = options.max_context;
  header.max_slots = options.max_slots;
  header.kv_dtype = DType::kF32;
  header.n_layers = options.shape.layers;
  header.hidden = options.shape.hidden;
  return toy;
}

}  // namespace plow
