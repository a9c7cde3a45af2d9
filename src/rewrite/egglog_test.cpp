// The engine against egglog, another e-graph: on 300 random graphs the same rules find the same values to be equal. What
// egglog said is stored (tools/egglog_reference.py), so that this test needs neither it nor Python.
#include "rewrite/saturate.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <fstream>
#include <map>
#include <sstream>

namespace plow {
namespace {

struct ReferenceGraph {
  EGraph egraph;
  std::vector<ENodeId> nodes;
  std::vector<uint32_t> classes;  // by node: the first that is equal
  int seed = 0;
};

ValueType type_of(char kind) {
  const Shape rows{Rows::kTokens, 1, 1024}, samples{Rows::kSamples, 1, 1024};
  switch (kind) {
    case 'T':
      return {DType::kF32, rows};
    case 'S':
      return {DType::kF32, samples};
    case 't':
      return {DType::kF32, {Rows::kTokens, 1, 512}};
    case 's':
      return {DType::kF32, {Rows::kSamples, 1, 512}};
    case 'W':
      return {DType::kBf16, {Rows::kFixed, 1024, 1024}};
    case 'G':
      return {DType::kF32, {Rows::kFixed, 1, 1024}};
    case 'H':
      return {DType::kF32, {Rows::kFixed, 1, 512}};
    case 'R':
      return {DType::kU32, {Rows::kSamples, 1, 1}};
    default:
      return {DType::kBf16, {Rows::kFixed, 1, 1024}};  // the state of a cache
  }
}

Op operator_of(const std::string& name) {
#define PLOW_OP(number, Name, text) \
  if (name == #text) return Op::k##Name;
#include "abi/ops.def"
  PLOW_CHECK(false, "no operator {}", name);
}

void add_given(ReferenceGraph& graph, char kind) {
  const bool stored = kind == 'W' || kind == 'G' || kind == 'H';
  const auto leaf = static_cast<uint32_t>(graph.nodes.size());
  graph.nodes.push_back(graph.egraph.add_given(stored ? Op::kWeight : kOuterValue, leaf, type_of(kind)));
}

void add_operator(ReferenceGraph& graph, std::istringstream& line) {
  std::string name;
  line >> name;
  const OpDef& def = op_def(operator_of(name));
  Attributes attributes{};
  for (size_t i = 0; i < def.attributes.size(); ++i) line >> attributes[i];
  std::vector<ENodeId> inputs(def.n_inputs);
  for (ENodeId& input : inputs) {
    size_t place = 0;
    line >> place;
    input = graph.nodes.at(place);
  }
  const std::optional<ENodeId> node = graph.egraph.add(def.op, attributes, inputs);
  PLOW_CHECK(node && line, "graph {}: {} cannot be added", graph.seed, name);
  graph.nodes.push_back(*node);
}

std::vector<ReferenceGraph> read_reference(std::vector<std::string>& rules) {
  std::ifstream file(std::string(PLOW_SOURCE_DIR) + "/src/rewrite/testdata/egglog_reference.txt");
  PLOW_CHECK(file.good(), "no egglog_reference.txt");
  std::vector<ReferenceGraph> graphs;
  std::string text;
  while (std::getline(file, text)) {
    std::istringstream line(text);
    std::string word;
    line >> word;
    if (word == "rules") {
      while (line >> word) rules.push_back(word);
    } else if (word == "graph") {
      line >> graphs.emplace_back().seed;
    } else if (word == "g") {
      line >> word;
      add_given(graphs.back(), word[0]);
    } else if (word == "o") {
      add_operator(graphs.back(), line);
    } else {
      uint32_t label = 0;
      while (line >> label) graphs.back().classes.push_back(label);
    }
  }
  return graphs;
}

TEST(Egglog, FindsTheSameEquivalencesOnRandomGraphs) {
  std::vector<std::string> rules;
  std::vector<ReferenceGraph> graphs = read_reference(rules);
  std::vector<std::string> ours;
  for (const RuleText& rule : rule_texts()) ours.emplace_back(rule.name);
  std::sort(ours.begin(), ours.end());
  ASSERT_EQ(rules, ours) << "the rules have changed: run tools/egglog_reference.py --write";
  ASSERT_EQ(graphs.size(), 300u);

  const std::vector<bool> all(rule_texts().size(), true);
  std::map<std::string, uint32_t> fired;
  uint32_t n_equal = 0;
  for (ReferenceGraph& graph : graphs) {
    const Saturation saturation = saturate(graph.egraph, compiled_rules(), all, {64, 100000});
    ASSERT_EQ(saturation.reason, StopReason::kSaturated) << graph.seed;
    for (const RuleFiring& firing : saturation.firings) ++fired[rule_texts()[firing.rule].name];
    ASSERT_EQ(graph.classes.size(), graph.nodes.size());
    for (uint32_t i = 0; i < graph.nodes.size(); ++i) {
      uint32_t first = 0;
      while (!graph.egraph.equal(graph.nodes[first], graph.nodes[i])) ++first;
      EXPECT_EQ(first, graph.classes[i]) << "graph " << graph.seed << ", node " << i;
      n_equal += first != i ? 1 : 0;
    }
  }
  // The graphs try something: many nodes are equal to another one, and every rule fires.
  EXPECT_GT(n_equal, 1000u);
  for (const RuleText& rule : rule_texts()) EXPECT_GT(fired[rule.name], 0u) << rule.name;
}

}  // namespace
}  // namespace plow
