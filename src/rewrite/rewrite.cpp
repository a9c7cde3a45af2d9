#include "rewrite/rewrite.h"

#include "base/check.h"
#include "rewrite/assemble.h"
#include "rewrite/log.h"

#include <map>

namespace plow {
namespace {

PartRecord record_of(const GraphPart& part, const PartSolution& solution, const OpGraph& graph) {
  PartRecord record;
  for (const NodeId node : part.nodes) record.first_layer = std::min(record.first_layer, graph.node(node).layer);
  record.n_nodes = static_cast<uint32_t>(part.nodes.size());
  record.stop = solution.saturation.reason;
  record.iterations = solution.saturation.iterations;
  record.n_enodes = solution.egraph.n_nodes();
  record.n_eclasses = solution.n_eclasses;
  record.before_ns = solution.before.cost;
  record.after_ns = solution.after.cost;
  record.before_waits = solution.before.chain;
  record.after_waits = solution.after.chain;
  record.exact = solution.after.exact;
  record.steps = solution.after.steps;
  return record;
}

}  // namespace

Result<RewriteResult> rewrite_graph(const OpGraph& graph, const RewriteOptions& options) {
  PLOW_TRY(const std::vector<bool> enabled, enabled_rules(rule_texts(), options.disabled_rules));
  for (const Node& node : graph.nodes) {
    PLOW_CHECK(!is_fused(node.op), "{} was made outside of the rewriter", op_name(node.op));
  }
  if (!options.enabled) return RewriteResult{graph, std::string(kRewriterOff)};
  const Part& part = options.part != nullptr ? *options.part : default_part(Isa::kX86_64);
  const RewriteCost cost = request_cost(part, options.n_workers, options.chunk_rows);

  RewriteLog log;
  log.disabled_rules = options.disabled_rules;
  const ValueNumbering numbering = number_values(graph);
  log.n_common = numbering.n_common;
  log.n_dead = numbering.n_dead;
  GraphAssembler assembler(graph, numbering, log);
  std::map<std::vector<uint32_t>, size_t> solved;  // form -> solution
  std::vector<PartSolution> solutions;
  for (const GraphPart& piece : cut_graph(graph, numbering)) {
    const auto [entry, is_new] = solved.emplace(piece.form, solutions.size());
    if (is_new) {
      solutions.push_back(solve_part(graph, numbering, piece, enabled, cost, options.limits));
      log.parts.push_back(record_of(piece, solutions.back(), graph));
    } else {
      ++log.parts[entry->second].n_instances;
    }
    assembler.add(piece, solutions[entry->second]);
  }
  RewriteResult result{assembler.finish(), {}};
  if (const Status status = verify_graph(result.graph); !status.ok()) {
    PLOW_CHECK(false, "the rewriter made a graph that does not verify: {}", status.error().message);
  }
  result.log = print_rewrite_log(log);
  return result;
}

}  // namespace plow
