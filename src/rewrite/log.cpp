#include "rewrite/log.h"

#include "base/text_cursor.h"

#include <fmt/format.h>

#include <optional>

namespace plow {
namespace {

constexpr std::string_view kHeading = "rewrite log 1";

std::string node_list(const std::vector<NodeId>& nodes) {
  std::string out;
  for (const NodeId node : nodes) out += fmt::format(" %{}", node.value);
  return out;
}

std::string part_line(const PartRecord& part) {
  return fmt::format(
      "part layer={} instances={} nodes={} stop={} iterations={} enodes={} eclasses={} before_ns={} after_ns={} "
      "before_waits={} after_waits={} exact={} steps={}\n",
      part.first_layer, part.n_instances, part.n_nodes, static_cast<unsigned>(part.stop), part.iterations, part.n_enodes,
      part.n_eclasses, part.before_ns, part.after_ns, part.before_waits, part.after_waits, part.exact ? 1 : 0, part.steps);
}

// Walks the text line by line. The first error sticks.
class LogReader {
 public:
  explicit LogReader(std::string_view text) : text_(text) {}

  Result<RewriteLog> run() {
    if (next_line() != kHeading) fail();
    read_disabled();
    begin_line("values");
    log_.n_common = field<uint32_t>("common");
    log_.n_dead = field<uint32_t>("dead");
    begin_line("parts");
    const auto n_parts = field<uint32_t>("count");
    for (uint32_t i = 0; i < n_parts && !failed(); ++i) read_part();
    begin_line("terms");
    const auto n_terms = field<uint32_t>("count");
    log_.n_before = field<uint32_t>("before");
    read_terms(n_terms);
    begin_line("firings");
    const auto n_firings = field<uint32_t>("count");
    for (uint32_t i = 0; i < n_firings && !failed(); ++i) read_firing();
    check_end();
    if (!text_.empty()) fail();
    if (failed()) return *error_;
    return std::move(log_);
  }

 private:
  void fail() {
    if (!error_) error_ = input_error(fmt::format("rewrite log: line {} cannot be read", line_));
  }
  bool failed() {
    if (!rest_.ok()) fail();
    return error_.has_value();
  }
  void check_end() {
    if (!rest_.ok() || !rest_.at_end()) fail();
  }

  std::string_view next_line() {
    check_end();
    if (text_.empty()) fail();
    ++line_;
    const size_t end = text_.find('\n');
    const std::string_view line = text_.substr(0, end);
    text_ = end == std::string_view::npos ? std::string_view{} : text_.substr(end + 1);
    return line;
  }
  void begin_line(std::string_view word) {
    rest_ = TextCursor(next_line());
    rest_.expect(word);
  }
  template <class T>
  T field(std::string_view name) {
    return rest_.field<T>(name);
  }

  std::string_view word() { return rest_.take(rest_.rest().find_first_of(" :")); }

  void read_disabled() {
    begin_line("disabled");
    while (!failed() && !rest_.at_end()) {
      rest_.expect(" ");
      log_.disabled_rules.emplace_back(word());
      if (find_rule(log_.disabled_rules.back()) == nullptr) fail();
    }
  }

  void read_part() {
    begin_line("part");
    PartRecord part;
    part.first_layer = field<uint32_t>("layer");
    part.n_instances = field<uint32_t>("instances");
    part.n_nodes = field<uint32_t>("nodes");
    const auto stop = field<uint32_t>("stop");
    part.stop = static_cast<StopReason>(stop);
    if (stop > static_cast<uint32_t>(StopReason::kNodes)) fail();
    part.iterations = field<uint32_t>("iterations");
    part.n_enodes = field<uint32_t>("enodes");
    part.n_eclasses = field<uint32_t>("eclasses");
    part.before_ns = field<double>("before_ns");
    part.after_ns = field<double>("after_ns");
    part.before_waits = field<uint32_t>("before_waits");
    part.after_waits = field<uint32_t>("after_waits");
    part.exact = field<uint32_t>("exact") == 1;
    part.steps = field<uint64_t>("steps");
    log_.parts.push_back(part);
  }

  // A heading and one line a node.
  void read_terms(uint32_t n_terms) {
    check_end();
    const char* begin = text_.data();
    for (uint32_t i = 0; i <= n_terms && !failed(); ++i) {
      rest_ = {};
      next_line();
    }
    if (error_) return;
    std::string_view lines(begin, static_cast<size_t>(text_.data() - begin));
    if (text_.empty() || !lines.ends_with('\n')) return fail();
    lines.remove_suffix(1);
    Result<OpGraph> terms = parse_graph_lines(lines);
    if (!terms.ok()) {
      error_ = terms.error().at("rewrite log");
      return;
    }
    log_.terms = std::move(terms).value();
    if (log_.n_before > log_.terms.nodes.size() || log_.terms.tokens.value >= log_.n_before) fail();
  }

  void read_nodes(std::vector<NodeId>& nodes) {
    while (!failed() && rest_.accept(" %")) {
      nodes.emplace_back(rest_.number<uint32_t>());
      if (nodes.back().value >= log_.terms.nodes.size()) fail();
    }
  }

  void read_firing() {
    rest_ = TextCursor(next_line());
    LoggedFiring firing;
    const RuleText* rule = find_rule(word());
    if (rule == nullptr) return fail();
    firing.rule = static_cast<uint32_t>(rule - rule_texts().data());
    rest_.expect(":");
    read_nodes(firing.matched);
    rest_.expect(" =");
    read_nodes(firing.right);
    log_.firings.push_back(std::move(firing));
  }

  std::string_view text_;
  TextCursor rest_;  // of the line
  uint32_t line_ = 0;
  RewriteLog log_;
  std::optional<Error> error_;
};

}  // namespace

std::string print_rewrite_log(const RewriteLog& log) {
  std::string out = fmt::format("{}\ndisabled", kHeading);
  for (const std::string& name : log.disabled_rules) out += " " + name;
  out += fmt::format("\nvalues common={} dead={}\nparts count={}\n", log.n_common, log.n_dead, log.parts.size());
  for (const PartRecord& part : log.parts) out += part_line(part);
  out += fmt::format("terms count={} before={}\n", log.terms.nodes.size(), log.n_before);
  out += print_graph(log.terms);
  out += fmt::format("firings count={}\n", log.firings.size());
  for (const LoggedFiring& firing : log.firings) {
    out += fmt::format("{}:{} ={}\n", rule_texts()[firing.rule].name, node_list(firing.matched), node_list(firing.right));
  }
  return out;
}

Result<RewriteLog> parse_rewrite_log(std::string_view text) { return LogReader(text).run(); }

OpGraph graph_before(const RewriteLog& log) {
  OpGraph graph = log.terms;
  graph.nodes.resize(log.n_before);
  graph.inputs.clear();
  graph.weights.clear();
  graph.constants.clear();
  graph.kv_states.clear();
  for (uint32_t i = 0; i < log.n_before; ++i) {
    Node& node = graph.nodes[i];
    const auto inputs = log.terms.inputs_of(NodeId(i));
    node.first_input = static_cast<uint32_t>(graph.inputs.size());
    graph.inputs.insert(graph.inputs.end(), inputs.begin(), inputs.end());
    if (node.op == Op::kWeight) graph.weights.push_back(log.terms.weights[node.leaf]);
    if (node.op == Op::kConstant) graph.constants.push_back(log.terms.constants[node.leaf]);
    if (node.op == Op::kKvState) graph.kv_states.push_back(log.terms.kv_states[node.leaf]);
  }
  return graph;
}

}  // namespace plow
