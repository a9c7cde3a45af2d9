// What must be known of the whole tree before it runs: unknown filters and tests, and hidden names.
//
// Hidden names. A variable of a jinja2 template is a variable of the Python function that it becomes. A name
// that a scope assigns before it reads it, whatever the flow of control, and that no outer scope mentions, is
// therefore unset until then, even if the conversation has a variable of that name: in
//     {% for m in messages %}{{ x }}{% endfor %}{% set x = 1 %}
// the loop sees no x, since the loop's body is a scope of its own and does not count as reading. Only an
// assignment that an `if` contains leaves the conversation's variable visible. Such names are listed as
// `hidden` of their scope, and the interpreter unsets them when it enters the scope.
#include "text/chat_template/budget.h"
#include "text/chat_template/builtins.h"
#include "text/chat_template/program.h"

#include <fmt/format.h>

#include <set>

namespace plow::jinja {
namespace {

struct Names {
  const Names* outer = nullptr;
  std::set<Symbol> mentioned;
  std::set<Symbol> hidden;

  bool knows(Symbol name) const { return mentioned.contains(name) || (outer && outer->knows(name)); }
  void load(Symbol name) {
    if (!knows(name)) mentioned.insert(name);
  }
  void declare(Symbol name) { mentioned.insert(name); }
  // `always`: not inside an `if`.
  void store(Symbol name, bool always) {
    if (mentioned.contains(name)) return;
    if (always && !(outer && outer->knows(name))) hidden.insert(name);
    mentioned.insert(name);
  }
};

class Analysis {
 public:
  explicit Analysis(Program& program) : program_(program) {}

  void run() {
    Names names;
    scope(program_.root, names, {});
  }

 private:
  const Node& node(NodeId id) const { return program_[id]; }

  // A body that is a scope: `names` has its parameters. Two passes, as in jinja2: the names of the whole body
  // come first, because the scopes inside see all of them. `also` are expressions that count as part of it.
  void scope(NodeId body, Names& names, const std::vector<NodeId>& also) {
    for (const NodeId expression : also) expression_names(expression, names);
    if (!body.valid()) return;
    statement_names(body, names, true);
    SymbolList& hidden = program_.nodes[body.value].hidden;
    hidden.begin = static_cast<uint32_t>(program_.symbol_lists.size());
    hidden.size = static_cast<uint32_t>(names.hidden.size());
    program_.symbol_lists.insert(program_.symbol_lists.end(), names.hidden.begin(), names.hidden.end());
    inner_scopes(body, names, false);
  }

  // Names that the statements of a scope mention, without those of the scopes inside.
  void statement_names(NodeId id, Names& names, bool always) {
    const Node& n = node(id);
    switch (n.kind) {
      case NodeKind::kBody:
        for (uint32_t i = 0; i < n.list.size; ++i) statement_names(program_.item(n.list, i), names, always);
        return;
      case NodeKind::kOutput:
      case NodeKind::kCallBlock:
      case NodeKind::kFilterBlock:
        return expression_names(n.a, names);
      case NodeKind::kIf:
        return branch_names(id, names);
      case NodeKind::kFor:
        return expression_names(program_.item(n.list, 1), names);
      case NodeKind::kSet:
        expression_names(n.b, names);
        return target_names(n.a, names, [&](Symbol name) { names.store(name, always); });
      case NodeKind::kSetBlock:
        return target_names(n.a, names, [&](Symbol name) { names.store(name, always); });
      case NodeKind::kMacro:
        return names.store(n.name, always);
      case NodeKind::kWith:
        for (uint32_t i = 1; i < n.list.size; i += 2) expression_names(program_.item(n.list, i), names);
        return;
      default:
        return;
    }
  }

  void branch_names(NodeId id, Names& names) {
    for (NodeId branch = id; branch.valid(); branch = node(branch).c) {
      const bool is_if = node(branch).kind == NodeKind::kIf;
      if (is_if) expression_names(node(branch).a, names);
      statement_names(is_if ? node(branch).b : branch, names, false);
      if (!is_if) return;
    }
  }

  // Calls mention(name) for the names that are assigned.
  template <class Mention>
  void target_names(NodeId id, Names& names, Mention mention) {
    const Node& n = node(id);
    if (n.kind == NodeKind::kTuple) {
      for (uint32_t i = 0; i < n.list.size; ++i) target_names(program_.item(n.list, i), names, mention);
    } else if (n.kind == NodeKind::kName) {
      mention(n.name);
    } else {
      names.load(n.name);
    }
  }

  template <class Visit>
  void for_each_child(NodeId id, Visit visit) const {
    const Node n = node(id);
    for (const NodeId child : {n.a, n.b, n.c}) {
      if (child.valid()) visit(child);
    }
    for (uint32_t i = 0; i < n.list.size; ++i) {
      if (program_.item(n.list, i).valid()) visit(program_.item(n.list, i));
    }
    if (!n.call.valid()) return;
    const CallArguments& call = program_.calls[n.call.value];
    for (const NodeId argument : call.positional) visit(argument);
    for (const NamedArgument& argument : call.named) visit(argument.value);
    if (call.star.valid()) visit(call.star);
    if (call.double_star.valid()) visit(call.double_star);
  }

  void expression_names(NodeId id, Names& names) const {
    if (!id.valid()) return;
    if (node(id).kind == NodeKind::kName) names.load(node(id).name);
    for_each_child(id, [&](NodeId child) { expression_names(child, names); });
  }

  // The scopes inside a scope whose own names are complete; checks every filter and test on the way. `soft`:
  // inside an `if`, where jinja2 lets an unknown filter be until it is reached.
  void inner_scopes(NodeId id, const Names& names, bool soft) {
    const Node n = node(id);
    Names inner;
    inner.outer = &names;
    switch (n.kind) {
      case NodeKind::kBody:
        for (uint32_t i = 0; i < n.list.size; ++i) inner_scopes(program_.item(n.list, i), names, soft);
        return;
      case NodeKind::kIf:
        for (NodeId branch = id; branch.valid(); branch = node(branch).c) {
          const bool is_if = node(branch).kind == NodeKind::kIf;
          if (is_if) check(node(branch).a, true);
          inner_scopes(is_if ? node(branch).b : branch, names, true);
          if (!is_if) return;
        }
        return;
      case NodeKind::kFor:
        return for_scopes(n, names, soft);
      case NodeKind::kMacro:
      case NodeKind::kCallBlock:
        if (n.a.valid()) check(n.a, soft);
        return macro_scope(program_.macros[n.index], inner);
      case NodeKind::kFilterBlock:
        check(n.a, false);
        return scope(n.c, inner, {n.a});
      case NodeKind::kSetBlock:
        if (n.b.valid()) check(n.b, false);
        return scope(n.c, inner, {});
      case NodeKind::kWith:
        for (uint32_t i = 0; i < n.list.size; i += 2) {
          target_names(program_.item(n.list, i), inner, [&](Symbol name) { inner.declare(name); });
          check(program_.item(n.list, i + 1), soft);
        }
        return scope(n.c, inner, {});
      case NodeKind::kGeneration:
        return scope(n.c, inner, {});
      default:
        for_each_child(id, [&](NodeId child) { check(child, soft); });
        return;
    }
  }

  void for_scopes(const Node& n, const Names& names, bool soft) {
    const NodeId target = program_.item(n.list, 0);
    check(program_.item(n.list, 1), soft);
    if (program_.item(n.list, 2).valid()) check(program_.item(n.list, 2), false);
    Names body;
    body.outer = &names;
    target_names(target, body, [&](Symbol name) { body.declare(name); });
    scope(n.c, body, {});
    Names otherwise;
    otherwise.outer = &names;
    scope(program_.item(n.list, 3), otherwise, {});
  }

  void macro_scope(const Macro& macro, Names& names) {
    for (const Symbol parameter : macro.parameters) names.declare(parameter);
    for (const NodeId value : macro.defaults) check(value, false);
    scope(macro.body, names, macro.defaults);
  }

  void check(NodeId id, bool soft) const {
    const Node& n = node(id);
    const std::string& name = n.name.valid() ? program_.text(n.name) : kNoName;
    if (n.kind == NodeKind::kFilter && !soft && !find_filter(name)) {
      throw Failure{fmt::format("there is no filter '{}'", name), n.line};
    }
    if (n.kind == NodeKind::kTest && !soft && !find_test(name)) {
      throw Failure{fmt::format("there is no test '{}'", name), n.line};
    }
    for_each_child(id, [&](NodeId child) { check(child, soft || n.kind == NodeKind::kCondition); });
  }

  static inline const std::string kNoName;

  Program& program_;
};

}  // namespace

void analyze(Program& program) { Analysis(program).run(); }

}  // namespace plow::jinja
