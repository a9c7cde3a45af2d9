#include "rewrite/log.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>

namespace plow {
namespace {

// The lines of print_graph() without its heading, by node.
std::vector<std::string> lines_of(const OpGraph& graph) {
  const std::string text = print_graph(graph);
  std::vector<std::string> lines;
  for (size_t begin = text.find('\n') + 1; begin < text.size();) {
    const size_t end = text.find('\n', begin);
    lines.push_back(text.substr(begin, end - begin));
    begin = end + 1;
  }
  return lines;
}

std::map<std::string, int> operators_of(const OpGraph& graph) {
  std::map<std::string, int> count;
  for (const Node& node : graph.nodes) {
    if (!is_leaf(node.op)) ++count[op_name(node.op)];
  }
  return count;
}

std::string operators_text(const OpGraph& before, const OpGraph& after) {
  std::map<std::string, int> was = operators_of(before);
  std::map<std::string, int> is = operators_of(after);
  for (const auto& entry : is) was[entry.first];  // so that `was` names all
  std::string out;
  int n_before = 0;
  int n_after = 0;
  for (const auto& [name, count] : was) {
    out += fmt::format("  {:<20} {:>6} {:>6}\n", name, count, is[name]);
    n_before += count;
    n_after += is[name];
  }
  return fmt::format("operators              before  after\n{}  {:<20} {:>6} {:>6}\n", out, "all", n_before, n_after);
}

std::string parts_text(const RewriteLog& log) {
  std::string out;
  for (const PartRecord& part : log.parts) {
    const std::string where = part.first_layer == Node::kNoLayer ? "outside the layers" : fmt::format("layer {}", part.first_layer);
    out += fmt::format(
        "{}{}: {} operators; {} after {} iterations with {} nodes in {} classes; cost {:.0f} -> {:.0f} ns, chain {} -> {} "
        "waits, {} in {} steps\n",
        where, part.n_instances > 1 ? fmt::format(" and {} more like it", part.n_instances - 1) : "", part.n_nodes,
        stop_reason_name(part.stop), part.iterations, part.n_enodes, part.n_eclasses, part.before_ns, part.after_ns,
        part.before_waits, part.after_waits, part.exact ? "the least" : "the least found", part.steps);
  }
  return out;
}

}  // namespace

std::string explain_rewrite(const RewriteLog& log, const OpGraph& after) {
  const OpGraph before = graph_before(log);
  std::string out = operators_text(before, after);
  if (log.n_common + log.n_dead > 0) {
    out += fmt::format("{} operators computed what another one does, {} were not needed\n", log.n_common, log.n_dead);
  }
  out += "\n" + parts_text(log) + "\nrules that fired\n";
  std::map<uint32_t, uint32_t> fired;
  for (const LoggedFiring& firing : log.firings) ++fired[firing.rule];
  for (const auto& [rule, count] : fired) {
    out += fmt::format("  {:<20} {:>6}  {} ({})\n", rule_texts()[rule].name, count, rule_texts()[rule].reason,
                       rule_class_name(rule_texts()[rule].rule_class));
  }
  if (fired.empty()) out += "  none\n";
  if (!log.disabled_rules.empty()) out += fmt::format("switched off: {}\n", fmt::join(log.disabled_rules, ", "));
  out += "\nbefore\n" + print_graph(before) + "\nafter\n" + print_graph(after) + "\nwhy (%N from " +
         fmt::to_string(log.n_before) + " on are nodes that rules made on the way)\n";
  const std::vector<std::string> lines = lines_of(log.terms);
  for (const LoggedFiring& firing : log.firings) {
    out += fmt::format("{}: %{} is %{}\n", rule_texts()[firing.rule].name, firing.matched[0].value, firing.right[0].value);
    for (const NodeId node : firing.matched) out += "    " + lines[node.value] + "\n";
    out += "  =\n";
    for (const NodeId node : firing.right) out += "    " + lines[node.value] + "\n";
  }
  return out;
}

}  // namespace plow
