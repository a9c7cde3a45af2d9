// The operator graph: what a model computes in one step. Flat arrays; a node is its one value. Nodes are in
// topological order: a node's inputs come before it. Immutable once built (GraphBuilder makes one,
// verify_graph checks it).
//
// Sizes are symbolic: T rows of tokens and S sampled rows in a step (abi/tensor.h, Rows).
#pragma once

#include "abi/op.h"
#include "abi/packet.h"
#include "abi/step.h"
#include "abi/tensor.h"
#include "base/error.h"
#include "base/ids.h"

#include <array>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace plow {

using NodeId = Id<struct NodeTag>;

// [rows, cols], row-major in meaning. A weight matrix is [outputs, inputs]; a vector is [1, n]. The KV state
// of a layer is [kFixed 1, kv_heads * head_dim].
struct Shape {
  Rows row_kind = Rows::kFixed;
  uint32_t rows = 1;  // used when row_kind is kFixed
  uint32_t cols = 0;
  bool operator==(const Shape&) const = default;
};

// The attributes of an operator, in the order of its definition (OpDef::attributes), as bit patterns of u32
// or f32: they go into packets as they are.
using Attributes = std::array<uint32_t, kPacketImmediates>;

struct Node {
  Op op = Op::kWeight;
  DType dtype = DType::kF32;  // of the value
  Shape shape;
  Attributes attributes{};
  uint32_t first_input = 0;  // into OpGraph::inputs
  uint32_t n_inputs = 0;
  uint32_t leaf = 0;  // kWeight: index into weights; kConstant: into constants; kKvState: into kv_states;
                      // kStepInput: a StepColumn
  uint32_t layer = kNoLayer;  // of the model, for people and for recognising repeated layers

  static constexpr uint32_t kNoLayer = 0xffffffffu;
};

// A tensor of the checkpoint, by name. The rewriter may ask for one with a number added to every value when
// it is stored (a norm's gain with its offset): one f32 addition, as a body would do it.
struct WeightRef {
  std::string name;
  float plus = 0;  // 0: as it is; else the node is f32
};

// Values that the compiler computes. Stored as double, written to the tape in the node's dtype.
struct ConstantData {
  std::string name;
  std::vector<double> values;  // [rows * cols]
};

// One layer's keys and values.
struct KvStateRef {
  uint32_t layer = 0;
  uint32_t kv_heads = 0;
  uint32_t head_dim = 0;
  uint32_t window = 0;  // 0: full attention; else a row at position p reads positions p - window + 1 .. p
};

struct OpGraph {
  std::vector<Node> nodes;
  std::vector<NodeId> inputs;
  std::vector<WeightRef> weights;
  std::vector<ConstantData> constants;
  std::vector<KvStateRef> kv_states;
  NodeId tokens;  // the Sample node: the product of the step

  // Facts about the model that the runtime needs and no node carries.
  uint32_t vocab = 0;
  uint32_t hidden = 0;
  uint32_t n_layers = 0;
  uint32_t max_position = 0;  // the longest context that the checkpoint declares

  const Node& node(NodeId id) const { return nodes[id.value]; }
  std::span<const NodeId> inputs_of(NodeId id) const {
    const Node& n = node(id);
    return {inputs.data() + n.first_input, n.n_inputs};
  }
};

// Checks what every stage relies on: topological order, arity, shapes and dtypes by each operator's rule,
// leaves in range, one Sample. Errors: kVerification, naming the node.
Status verify_graph(const OpGraph& graph);

// One line a node:  %12 = rms_norm(%11, %3) eps=1e-05 group=576 offset=0 : f32[T, 576] @layer 0
// print and parse are inverse to each other for graphs that verify; floats are printed so that they parse to
// the same bits. Errors of parse_graph: kInput, naming the line; kVerification when the graph is not one that
// verifies.
std::string print_graph(const OpGraph& graph);
Result<OpGraph> parse_graph(std::string_view text);

// Reads what print_graph() wrote of nodes that need not be a graph that verifies: inputs may be any number, types
// are as they are written.
Result<OpGraph> parse_graph_lines(std::string_view text);

}  // namespace plow
