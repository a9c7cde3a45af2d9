#include "graph/graph.h"

#include "graph/builder.h"
#include "graph/op_def.h"

#include <gtest/gtest.h>

#include <cmath>
#include <functional>

namespace plow {
namespace {

constexpr uint32_t kVocab = 20, kHidden = 8, kHeadDim = 4;

// One layer with everything that a graph can hold.
OpGraph small_graph() {
  GraphBuilder b;
  const NodeId ids = b.step_input(StepColumn::kTokenIds);
  const NodeId positions = b.step_input(StepColumn::kPositions);
  const NodeId sampled = b.step_input(StepColumn::kSampleRows);
  const NodeId table = b.weight("embed \"quoted\" \\ \n\xff", DType::kBf16, kVocab, kHidden);
  const NodeId gain = b.weight("norm", DType::kF32, 1, kHidden, 0.1f);
  const NodeId q_weight = b.weight("q", DType::kF16, kHidden, kHidden);
  const NodeId kv_weight = b.weight("k", DType::kBf16, kHeadDim, kHidden);
  const NodeId frequencies = b.constant("inv_freq", DType::kF64, 1, 2, {1.0, 0.1 + 0.2});
  const NodeId angles = b.add(Op::kRopeTable, {frequencies, positions}, {attribute_bits(1.0f / 3.0f)});
  const NodeId x = b.add(Op::kEmbed, {table, ids});
  b.set_layer(0);
  const NodeId state =
      b.kv_state({.layer = 0, .kv_heads = 1, .head_dim = kHeadDim, .window = 3}, DType::kBf16);
  const NodeId h = b.add(Op::kRmsNorm, {x, gain}, {attribute_bits(1e-5f), attribute_bits(-0.0f), kHidden});
  const NodeId q = b.add(Op::kRope, {b.add(Op::kLinear, {h, q_weight}), angles}, {kHeadDim});
  const NodeId k = b.add(Op::kLinear, {h, kv_weight});
  const NodeId kv = b.add(Op::kKvAppend, {k, k, state}, {kHeadDim});
  const NodeId a = b.add(Op::kAttention, {q, kv}, {kHeadDim, 3, attribute_bits(0.7f), attribute_bits(50.0f)});
  b.set_layer(Node::kNoLayer);
  const NodeId rows = b.add(Op::kGatherRows, {b.add(Op::kAdd, {x, a}), sampled});
  const NodeId tokens = b.add(Op::kSample, {b.add(Op::kLinear, {rows, table})});
  Result<OpGraph> graph = b.finish(tokens, kVocab, kHidden, 1, 64);
  PLOW_CHECK(graph.ok(), "{}", graph.error().message);
  return std::move(graph).value();
}

NodeId find(const OpGraph& graph, Op op) {
  for (uint32_t i = 0; i < graph.nodes.size(); ++i) {
    if (graph.nodes[i].op == op) return NodeId(i);
  }
  return {};
}

// Graphs are equal when all their arrays are; doubles and floats bit by bit.
void expect_equal(const OpGraph& a, const OpGraph& b) {
  ASSERT_EQ(a.nodes.size(), b.nodes.size());
  for (size_t i = 0; i < a.nodes.size(); ++i) {
    const Node& x = a.nodes[i];
    const Node& y = b.nodes[i];
    EXPECT_TRUE(x.op == y.op && x.dtype == y.dtype && x.shape == y.shape && x.attributes == y.attributes &&
                x.first_input == y.first_input && x.n_inputs == y.n_inputs && x.leaf == y.leaf &&
                x.layer == y.layer)
        << i;
  }
  EXPECT_EQ(a.inputs, b.inputs);
  ASSERT_EQ(a.weights.size(), b.weights.size());
  for (size_t i = 0; i < a.weights.size(); ++i) {
    EXPECT_EQ(a.weights[i].name, b.weights[i].name);
    EXPECT_EQ(a.weights[i].plus, b.weights[i].plus);
  }
  ASSERT_EQ(a.constants.size(), b.constants.size());
  for (size_t i = 0; i < a.constants.size(); ++i) {
    EXPECT_EQ(a.constants[i].name, b.constants[i].name);
    EXPECT_EQ(a.constants[i].values, b.constants[i].values);
  }
  ASSERT_EQ(a.kv_states.size(), b.kv_states.size());
  for (size_t i = 0; i < a.kv_states.size(); ++i) {
    EXPECT_EQ(a.kv_states[i].layer, b.kv_states[i].layer);
    EXPECT_EQ(a.kv_states[i].kv_heads, b.kv_states[i].kv_heads);
    EXPECT_EQ(a.kv_states[i].head_dim, b.kv_states[i].head_dim);
    EXPECT_EQ(a.kv_states[i].window, b.kv_states[i].window);
  }
  EXPECT_EQ(a.tokens, b.tokens);
  EXPECT_EQ(a.vocab, b.vocab);
  EXPECT_EQ(a.hidden, b.hidden);
  EXPECT_EQ(a.n_layers, b.n_layers);
  EXPECT_EQ(a.max_position, b.max_position);
}

TEST(GraphText, ParsingWhatIsPrintedGivesTheSameGraphBitByBit) {
  const OpGraph graph = small_graph();
  const std::string text = print_graph(graph);
  const Result<OpGraph> parsed = parse_graph(text);
  ASSERT_TRUE(parsed.ok()) << parsed.error().message;
  expect_equal(graph, *parsed);
  EXPECT_EQ(print_graph(*parsed), text);
}

TEST(GraphText, ALineSaysOperatorInputsAttributesTypeAndLayer) {
  const std::string text = print_graph(small_graph());
  EXPECT_NE(text.find("%11 = rms_norm(%9, %4) eps=1e-05 offset=-0 group=8 : f32[T, 8] @layer 0\n"),
            std::string::npos)
      << text;
  EXPECT_NE(text.find("%7 = constant \"inv_freq\" {1, 0.30000000000000004} : f64[1, 2]\n"), std::string::npos)
      << text;
  EXPECT_NE(text.find("%10 = kv_state layer=0 kv_heads=1 head_dim=4 window=3 : bf16[1, 4] @layer 0\n"),
            std::string::npos);
  EXPECT_NE(text.find("\"embed \\x22quoted\\x22 \\x5c \\x0a\\xff\""), std::string::npos);
}

TEST(GraphText, AnyDamagedLineIsRefusedWithItsNumber) {
  const std::string text = print_graph(small_graph());
  struct Damage {
    const char* from;
    const char* to;
    const char* message;
  };
  const Damage cases[] = {
      {"graph vocab=20", "graph vocab=", "line 1 "},
      {"%1 = step_input positions", "%1 = step_input place", "line 3 "},
      {"%1 = step_input positions", "%2 = step_input positions", "line 3 "},
      {"rms_norm", "rms_morn", "line 13 "},
      {" eps=1e-05", " eps=x", "line 13 "},
      {" eps=1e-05", "", "line 13 "},
      {"group=8 : f32[T, 8]", "group=8 : f32[T, 8", "line 13 "},
      {"f64[1, 2]", "f63[1, 2]", "line 9 "},
      {"\\x0a", "\\xq1", "line 5 "},
      {"\\x0a", "\\n", "line 5 "},
      {"window=3 : bf16", "window=99999999999 : bf16", "line 12 "},
      {"@layer 0", "@layer 0 ", "line 12 "},
      {"%9, %4", "%9; %4", "line 13 "},
      {"%9, %4", "%9, %12", "does not come before it"},
      {"{1, 0.3", "{nan, 0.3", "not a finite number"},
  };
  for (const Damage& damage : cases) {
    std::string damaged = text;
    const size_t at = damaged.find(damage.from);
    ASSERT_NE(at, std::string::npos) << damage.from;
    damaged.replace(at, std::string(damage.from).size(), damage.to);
    const Result<OpGraph> parsed = parse_graph(damaged);
    ASSERT_FALSE(parsed.ok()) << damage.from << " -> " << damage.to;
    EXPECT_NE(parsed.error().message.find(damage.message), std::string::npos) << parsed.error().message;
  }
  EXPECT_FALSE(parse_graph("").ok());
  for (size_t n = 0; n < text.size(); n += 7) EXPECT_FALSE(parse_graph(text.substr(0, n)).ok()) << n;
}

struct Fault {
  const char* message;
  std::function<void(OpGraph&)> seed;
};

TEST(VerifyGraph, EverySeededFaultIsNamed) {
  const auto node = [](OpGraph& g, Op op) -> Node& { return g.nodes[find(g, op).value]; };
  const std::vector<Fault> faults = {
      {"does not come before it",
       [&](OpGraph& g) { g.inputs[node(g, Op::kRmsNorm).first_input] = NodeId(g.nodes.size() - 1); }},
      {"does not come before it", [&](OpGraph& g) { g.inputs[node(g, Op::kAdd).first_input] = NodeId(); }},
      {"inputs do not follow", [&](OpGraph& g) { node(g, Op::kRmsNorm).first_input += 1; }},
      {"inputs do not follow", [&](OpGraph& g) { node(g, Op::kSample).n_inputs = 2; }},
      {"belong to no node", [&](OpGraph& g) { g.inputs.push_back(NodeId(0)); }},
      {"is not the number of an operator", [&](OpGraph& g) { node(g, Op::kAdd).op = static_cast<Op>(77); }},
      {"is not the number of an operator", [&](OpGraph& g) { node(g, Op::kAdd).op = Op::kLeave; }},
      {"takes 1", [&](OpGraph& g) { node(g, Op::kAdd).op = Op::kScale; }},
      {"is not one that a value can have", [&](OpGraph& g) { node(g, Op::kAdd).shape.cols = 0; }},
      {"is not one that a value can have",
       [&](OpGraph& g) { node(g, Op::kAdd).dtype = static_cast<DType>(0); }},
      {"its type must be f32[T, 8], found f32[T, 9]", [&](OpGraph& g) { node(g, Op::kAdd).shape.cols = 9; }},
      {"its type must be f32[T, 8], found bf16[T, 8]",
       [&](OpGraph& g) { node(g, Op::kAdd).dtype = DType::kBf16; }},
      {"group=3 must divide", [&](OpGraph& g) { node(g, Op::kRmsNorm).attributes[2] = 3; }},
      {"has no attribute 1", [&](OpGraph& g) { node(g, Op::kRope).attributes[1] = 1; }},
      {"softcap must be at least 0",
       [&](OpGraph& g) { node(g, Op::kAttention).attributes[3] = attribute_bits(-1.0f); }},
      {"must be those of its kv_state", [&](OpGraph& g) { node(g, Op::kAttention).attributes[1] = 0; }},
      {"must be those of its kv_state", [&](OpGraph& g) { node(g, Op::kAttention).attributes[0] = 2; }},
      {"last input must be what appends to a kv_state",
       [&](OpGraph& g) { g.inputs[node(g, Op::kAttention).first_input + 1] = find(g, Op::kKvState); }},
      {"head_dim is not that of its kv_state", [&](OpGraph& g) { node(g, Op::kKvAppend).attributes[0] = 2; }},
      {"cannot be a KV cache",
       [&](OpGraph& g) {
         g.nodes[find(g, Op::kKvState).value].dtype = DType::kF32;
         g.nodes[find(g, Op::kKvAppend).value].dtype = DType::kF32;
         Node& norm = node(g, Op::kRmsNorm);
         norm.attributes[2] = kHeadDim;
         g.inputs[norm.first_input + 1] = find(g, Op::kKvState);
       }},
      {"must be f32 with T or S rows",
       [&](OpGraph& g) { g.inputs[node(g, Op::kRmsNorm).first_input] = NodeId(4); }},
      {"weights are not in order", [&](OpGraph& g) { node(g, Op::kWeight).leaf = 1; }},
      {"used twice", [&](OpGraph& g) { g.weights[2].name = g.weights[3].name; }},
      {"cannot have plus=1", [&](OpGraph& g) { g.weights[0].plus = 1; }},
      {"cannot have plus=inf", [&](OpGraph& g) { g.weights[1].plus = INFINITY; }},
      {"that no node names", [&](OpGraph& g) { g.weights.push_back({"extra"}); }},
      {"a constant of 2 values has the type f64[1, 3]",
       [&](OpGraph& g) { node(g, Op::kConstant).shape.cols = 3; }},
      {"not a finite number", [&](OpGraph& g) { g.constants[0].values[1] = NAN; }},
      {"with 2 heads of 4", [&](OpGraph& g) { g.kv_states[0].kv_heads = 2; }},
      {"a state of layer 1", [&](OpGraph& g) { g.kv_states[0].layer = 1; }},
      {"the step has no such input", [&](OpGraph& g) { node(g, Op::kStepInput).leaf = 4; }},
      {"layer 5 is not one of 1", [&](OpGraph& g) { node(g, Op::kRope).layer = 5; }},
      {"its product must be a sample node", [&](OpGraph& g) { g.tokens = NodeId(0); }},
      {"its product must be a sample node", [&](OpGraph& g) { g.tokens = NodeId(); }},
      {"fewer rows than the vocabulary", [&](OpGraph& g) { g.vocab = 21; }},
      {"20 logits for a vocabulary of 19", [&](OpGraph& g) { g.vocab = 19; }},
      {"must be above 0", [&](OpGraph& g) { g.max_position = 0; }},
  };
  ASSERT_TRUE(verify_graph(small_graph()).ok());
  for (const Fault& fault : faults) {
    OpGraph graph = small_graph();
    fault.seed(graph);
    const Status status = verify_graph(graph);
    ASSERT_FALSE(status.ok()) << fault.message;
    EXPECT_NE(status.error().message.find(fault.message), std::string::npos) << status.error().message;
    EXPECT_EQ(status.error().error_class, ErrorClass::kVerification);
  }
}

TEST(VerifyGraph, AStateIsAppendedToOnceAndThereIsOneSample) {
  OpGraph graph = small_graph();
  const auto repeat = [&](NodeId id) {  // the same node again, at the end
    Node copy = graph.node(id);
    const std::vector<NodeId> inputs(graph.inputs_of(id).begin(), graph.inputs_of(id).end());
    copy.first_input = static_cast<uint32_t>(graph.inputs.size());
    graph.inputs.insert(graph.inputs.end(), inputs.begin(), inputs.end());
    graph.nodes.push_back(copy);
  };
  const OpGraph whole = graph;
  repeat(find(graph, Op::kKvAppend));
  EXPECT_NE(verify_graph(graph).error().message.find("appended to twice"), std::string::npos);
  graph = whole;
  repeat(graph.tokens);
  EXPECT_NE(verify_graph(graph).error().message.find("second sample"), std::string::npos);
}

TEST(GraphBuilder, TheFirstErrorIsReturnedByFinish) {
  GraphBuilder b;
  const NodeId ids = b.step_input(StepColumn::kTokenIds);
  const NodeId x = b.add(Op::kEmbed, {b.weight("e", DType::kF32, 4, 6), ids});
  const NodeId bad = b.add(Op::kLinear, {x, b.weight("w", DType::kF32, 4, 7)});
  const Result<OpGraph> graph = b.finish(b.add(Op::kAdd, {bad, x}), 4, 6, 1, 8);
  ASSERT_FALSE(graph.ok());
  EXPECT_EQ(
      graph.error().message,
      "operator graph: %4: linear: the weight must be f32, bf16, f16, q8_0 or q4_0 [4, 6], found f32[4, 7]");
}

// A model of blocks, whose gated pair and bias have these dtypes.
Result<OpGraph> graph_of_blocks(uint32_t hidden, DType gate, DType up, DType bias) {
  GraphBuilder b;
  const NodeId ids = b.step_input(StepColumn::kTokenIds);
  const NodeId sampled = b.step_input(StepColumn::kSampleRows);
  const NodeId table = b.weight("table", DType::kQ8_0, hidden, hidden);
  NodeId x = b.add(Op::kEmbed, {table, ids});
  x = b.add(Op::kGluLinear, {x, b.weight("gate", gate, hidden, hidden), b.weight("up", up, hidden, hidden)},
            {0});
  x = b.add(Op::kBiasAdd, {x, b.weight("bias", bias, 1, hidden)});
  x = b.add(Op::kLinear, {b.add(Op::kGatherRows, {x, sampled}), table});
  return b.finish(b.add(Op::kSample, {x}), hidden, hidden, 0, 8);
}

TEST(GraphBuilder, BlocksAreWholeInMatricesOnlyAndAlikeInAGatedPair) {
  const Result<OpGraph> graph = graph_of_blocks(64, DType::kQ4_0, DType::kQ4_0, DType::kF32);
  ASSERT_TRUE(graph.ok()) << graph.error().message;
  const Result<OpGraph> parsed = parse_graph(print_graph(*graph));
  ASSERT_TRUE(parsed.ok()) << parsed.error().message;
  expect_equal(*graph, *parsed);
  const auto message = [](const Result<OpGraph>& result) {
    return result.ok() ? "" : result.error().message;
  };
  EXPECT_EQ(message(graph_of_blocks(40, DType::kQ8_0, DType::kQ8_0, DType::kF32)),
            "operator graph: %2 (weight): 40 columns are no whole blocks of q8_0");
  EXPECT_EQ(message(graph_of_blocks(64, DType::kQ8_0, DType::kQ4_0, DType::kF32)),
            "operator graph: %6: glu_linear: both matrices must have one dtype, found q8_0[64, 64] and "
            "q4_0[64, 64]");
  EXPECT_EQ(message(graph_of_blocks(64, DType::kQ8_0, DType::kQ8_0, DType::kQ8_0)),
            "operator graph: %8: bias_add: the bias must be f32, bf16 or f16 [1, 64], found q8_0[1, 64]");
}

}  // namespace
}  // namespace plow
