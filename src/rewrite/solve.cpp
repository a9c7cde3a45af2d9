#include "rewrite/solve.h"

#include "base/check.h"

#include <algorithm>
#include <map>

namespace plow {
namespace {

class PartSolver {
 public:
  PartSolver(const OpGraph& graph, const ValueNumbering& numbering, const GraphPart& part,
             const std::vector<bool>& enabled, const RewriteCost& cost, const SolveLimits& limits)
      : graph_(graph), numbering_(numbering), part_(part), enabled_(enabled), cost_(cost), limits_(limits) {}

  PartSolution run() {
    fill();
    out_.saturation = saturate(out_.egraph, compiled_rules(), enabled_, limits_.saturation);
    choose();
    explain();
    return std::move(out_);
  }

 private:
  void fill() {
    for (uint32_t i = 0; i < part_.givens.size(); ++i) {
      const Node& node = graph_.node(part_.givens[i]);
      const bool is_value = !is_leaf(node.op);
      const float plus = node.op == Op::kWeight ? graph_.weights[node.leaf].plus : 0;
      const ENodeId id =
          out_.egraph.add_given(is_value ? kOuterValue : node.op, i, {node.dtype, node.shape}, plus);
      out_.given_nodes.push_back(id);
      enode_of_[part_.givens[i]] = id;
    }
    for (const NodeId id : part_.nodes) {
      const Node& node = graph_.node(id);
      std::vector<ENodeId> inputs;
      for (const NodeId input : graph_.inputs_of(id)) {
        inputs.push_back(enode_of_.at(numbering_.same_as[input.value]));
      }
      const std::optional<ENodeId> added = out_.egraph.add(node.op, node.attributes, inputs);
      PLOW_CHECK(added.has_value(), "%{} does not infer in the e-graph", id.value);
      out_.original_nodes.push_back(*added);
      enode_of_[id] = *added;
    }
  }

  void choose() {
    std::vector<ENodeId> roots;
    for (const NodeId root : part_.roots) roots.push_back(enode_of_.at(root));
    const EGraphProblem problem = extraction_problem(out_.egraph, cost_, roots);
    out_.n_eclasses = static_cast<uint32_t>(problem.classes.size());
    out_.before.choice.assign(problem.classes.size(), Extraction::kUnused);
    for (uint32_t c = 0; c < problem.classes.size(); ++c) choose_original(problem, c);
    PLOW_CHECK(measure_choice(problem.problem, out_.before), "a part does not hold what it was made of");
    out_.after = extract(problem.problem, limits_.extraction);
    out_.answer.assign(out_.egraph.n_nodes(), ENodeId{});
    for (uint32_t c = 0; c < problem.classes.size(); ++c) {
      if (out_.after.choice[c] == Extraction::kUnused) continue;
      const ENodeId eclass = problem.classes[c];
      out_.answer[eclass.value] = out_.egraph.eclass(eclass).nodes[out_.after.choice[c]];
    }
    for (const ENodeId root : roots) visit(root);
  }

  // The node of a class that was there before any rule fired: the first, as ids grow.
  void choose_original(const EGraphProblem& problem, uint32_t c) {
    const std::vector<ENodeId>& nodes = out_.egraph.eclass(problem.classes[c]).nodes;
    const auto n_original = static_cast<uint32_t>(enode_of_.size());
    if (nodes.front().value < n_original) out_.before.choice[c] = 0;
  }

  void visit(ENodeId id) {
    const ENodeId node = out_.answer[out_.egraph.find(id).value];
    if (std::ranges::find(out_.chosen, node) != out_.chosen.end()) return;
    for (const ENodeId input : out_.egraph.inputs_of(node)) visit(input);
    out_.chosen.push_back(node);
  }

  void explain() {
    Explainer explainer(out_.egraph, compiled_rules(), out_.saturation);
    const auto answer_of = [&](ENodeId id) { return out_.answer[out_.egraph.find(id).value]; };
    for (const NodeId root : part_.roots) explainer.require(enode_of_.at(root), answer_of(enode_of_.at(root)));
    for (const ENodeId node : out_.chosen) {
      for (const ENodeId input : out_.egraph.inputs_of(node)) explainer.require(input, answer_of(input));
    }
    out_.needed = explainer.firings();
  }

  const OpGraph& graph_;
  const ValueNumbering& numbering_;
  const GraphPart& part_;
  const std::vector<bool>& enabled_;
  const RewriteCost& cost_;
  const SolveLimits& limits_;
  std::map<NodeId, ENodeId> enode_of_;
  PartSolution out_;
};

}  // namespace

PartSolution solve_part(const OpGraph& graph, const ValueNumbering& numbering, const GraphPart& part,
                        const std::vector<bool>& enabled, const RewriteCost& cost, const SolveLimits& limits) {
  return PartSolver(graph, numbering, part, enabled, cost, limits).run();
}

}  // namespace plow
