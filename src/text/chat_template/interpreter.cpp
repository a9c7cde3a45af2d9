// Scopes and statements.
#include "text/chat_template/interpreter.h"

#include <fmt/format.h>

#include <algorithm>

namespace plow::jinja {
namespace {

Value constant_value(Runtime& rt, const Constant& constant) {
  switch (constant.kind) {
    case Constant::Kind::kNone:
      return none();
    case Constant::Kind::kBool:
      return boolean(constant.boolean);
    case Constant::Kind::kInteger:
      return integer(constant.integer);
    case Constant::Kind::kFloat:
      return real(constant.real);
    case Constant::Kind::kString:
      return rt.heap.make_string(constant.string);
  }
  return none();
}

}  // namespace

Interpreter::Interpreter(const Program& program, Runtime& rt)
    : program_(program),
      rt_(rt),
      loop_symbol_(find_symbol("loop")),
      caller_symbol_(find_symbol("caller")),
      kwargs_symbol_(find_symbol("kwargs")),
      varargs_symbol_(find_symbol("varargs")),
      variables_(program.symbols.size()),
      names_(program.symbols.size()) {
  constants_.reserve(program.constants.size());
  for (const Constant& constant : program.constants) constants_.push_back(constant_value(rt, constant));
  const auto functions = globals();
  for (uint32_t i = 0; i < functions.size(); ++i) {
    if (!mentions(functions[i].name)) continue;
    Value function;
    function.kind = Kind::kFunction;
    function.id = i;
    set_variable(functions[i].name, function);
  }
}

Symbol Interpreter::find_symbol(std::string_view name) const {
  const auto found = std::find(program_.symbols.begin(), program_.symbols.end(), name);
  return found == program_.symbols.end() ? Symbol()
                                         : Symbol(static_cast<size_t>(found - program_.symbols.begin()));
}

Text Interpreter::run() {
  TextBuilder out(rt_.budget);
  try {
    const ScopeGuard scope(*this, kNoScope);
    hide_names(program_.root);
    execute(program_.root, out);
  } catch (Failure& failure) {
    if (failure.line == 0) failure.line = line_;
    throw;
  }
  return out.finish();
}

Value Interpreter::name_value(Symbol name) {
  Value& value = names_[name.value];
  if (value.is(Kind::kAbsent)) value = rt_.heap.make_string(program_.text(name));
  return value;
}

Value Interpreter::lookup(Symbol name) {
  for (uint32_t scope = scope_; scope != kNoScope; scope = scopes_[scope].parent) {
    for (const auto& [symbol, value] : scopes_[scope].names) {
      if (symbol == name) return value;
    }
  }
  const Value& variable = variables_[name.value];
  return variable.is(Kind::kAbsent) ? rt_.heap.make_undefined({{}, name_value(name)}) : variable;
}

void Interpreter::store(Symbol name, Value value) {
  auto& names = scopes_[scope_].names;
  for (auto& [symbol, old] : names) {
    if (symbol == name) {
      old = value;
      return;
    }
  }
  rt_.budget.memory(sizeof(names[0]));
  names.emplace_back(name, value);
}

void Interpreter::hide_names(NodeId body) {
  const SymbolList hidden = program_[body].hidden;
  for (uint32_t i = 0; i < hidden.size; ++i) {
    const Symbol name = program_.symbol_lists[hidden.begin + i];
    store(name, rt_.heap.make_undefined({{}, name_value(name)}));
  }
}

void Interpreter::assign(NodeId target, const Value& value) {
  const Node& node = program_[target];
  if (node.kind == NodeKind::kName) return store(node.name, value);
  if (node.kind == NodeKind::kNamespaceTarget) {
    const Value object = lookup(node.name);
    if (!object.is(Kind::kNamespace)) fail("cannot assign attribute on non-namespace object");
    const Symbol attribute(node.index);
    check_namespace_attribute(program_.text(attribute));
    return put_in_dict(rt_, rt_.heap.dict(object), name_value(attribute), value);
  }
  const std::vector<Value> parts = iterate(rt_, value);
  if (parts.size() != node.list.size) {
    fail(fmt::format("{} values to unpack (expected {}, got {})",
                     parts.size() < node.list.size ? "not enough" : "too many", node.list.size,
                     parts.size()));
  }
  for (uint32_t i = 0; i < node.list.size; ++i) assign(program_.item(node.list, i), parts[i]);
}

Value Interpreter::make_closure(MacroId macro) {
  scopes_[scope_].captured = true;
  rt_.budget.memory(sizeof(Scope));
  return rt_.heap.make_macro({macro, scope_});
}

Interpreter::Flow Interpreter::execute(NodeId id, TextBuilder& out) {
  const Budget::Depth depth(rt_.budget);
  rt_.budget.steps(1);
  const Node& node = program_[id];
  line_ = node.line;
  switch (node.kind) {
    case NodeKind::kBody:
      return execute_body(id, out);
    case NodeKind::kData:
      out.add(rt_.heap.text(constants_[node.index]));
      return Flow::kNext;
    case NodeKind::kOutput: {
      const Value value = evaluate(node.a);
      line_ = node.line;
      append_str(rt_, out, value);
      return Flow::kNext;
    }
    case NodeKind::kIf:
      return execute_if(id, out);
    case NodeKind::kFor:
      return execute_for(node, out);
    case NodeKind::kSet:
      execute_set(node);
      return Flow::kNext;
    case NodeKind::kMacro:
      store(node.name, make_closure(MacroId(node.index)));
      return Flow::kNext;
    case NodeKind::kCallBlock:
      execute_call_block(node, out);
      return Flow::kNext;
    case NodeKind::kSetBlock:
    case NodeKind::kFilterBlock:
    case NodeKind::kWith:
    case NodeKind::kGeneration:
      return execute_block(node, out);
    case NodeKind::kBreak:
      return Flow::kBreak;
    case NodeKind::kContinue:
      return Flow::kContinue;
    default:
      PLOW_CHECK(false, "node {} of kind {} is no statement", id.value, static_cast<int>(node.kind));
  }
}

Interpreter::Flow Interpreter::execute_body(NodeId id, TextBuilder& out) {
  const NodeList list = program_[id].list;
  for (uint32_t i = 0; i < list.size; ++i) {
    const Flow flow = execute(program_.item(list, i), out);
    if (flow != Flow::kNext) return flow;
  }
  return Flow::kNext;
}

Interpreter::Flow Interpreter::execute_if(NodeId id, TextBuilder& out) {
  for (NodeId branch = id; branch.valid(); branch = program_[branch].c) {
    const Node& node = program_[branch];
    if (node.kind != NodeKind::kIf) return execute(branch, out);
    line_ = node.line;
    if (truthy(rt_, evaluate(node.a))) return execute(node.b, out);
  }
  return Flow::kNext;
}

bool Interpreter::passes_test(const Node& loop, const Value& item) {
  const NodeId test = program_.item(loop.list, 2);
  if (!test.valid()) return true;
  const ScopeGuard scope(*this, scope_);
  assign(program_.item(loop.list, 0), item);
  return truthy(rt_, evaluate(test));
}

Interpreter::Flow Interpreter::execute_for(const Node& node, TextBuilder& out) {
  const NodeId target = program_.item(node.list, 0);
  const NodeId otherwise = program_.item(node.list, 3);
  std::vector<Value> items = iterate(rt_, evaluate(program_.item(node.list, 1)));
  // jinja2 tests an item when it comes to it, which shows when the body changes a namespace; only what `loop`
  // tells about items to come needs the tests at once.
  const bool tests_ahead = node.flag;
  if (tests_ahead) std::erase_if(items, [&](const Value& item) { return !passes_test(node, item); });
  Value loop;
  if (node.flag) {
    rt_.budget.memory(items.size() * sizeof(Value));
    loop = rt_.heap.make_loop({items, 0, {}, false});
  }
  bool any_completed = false;
  for (size_t i = 0; i < items.size(); ++i) {
    rt_.budget.steps(1);
    if (!tests_ahead && !passes_test(node, items[i])) continue;
    const ScopeGuard scope(*this, scope_);
    if (node.flag) {
      rt_.heap.loop(loop).index0 = i;
      store(loop_symbol_, loop);
    }
    hide_names(node.c);
    assign(target, items[i]);
    const Flow flow = execute(node.c, out);
    if (flow == Flow::kBreak) break;
    any_completed |= flow == Flow::kNext;
  }
  // As in jinja2, a loop whose every iteration is cut short by `break` or `continue` counts as empty.
  if (any_completed || !otherwise.valid()) return Flow::kNext;
  const ScopeGuard scope(*this, scope_);
  hide_names(otherwise);
  return execute(otherwise, out);
}

void Interpreter::execute_set(const Node& node) {
  const Value value = evaluate(node.b);
  line_ = node.line;
  assign(node.a, value);
}

Interpreter::Flow Interpreter::execute_block(const Node& node, TextBuilder& out) {
  std::vector<Value> values;  // of a with block, evaluated outside of it
  for (uint32_t i = 1; i < node.list.size; i += 2) values.push_back(evaluate(program_.item(node.list, i)));
  TextBuilder captured(rt_.budget);
  const bool captures = node.kind == NodeKind::kSetBlock || node.kind == NodeKind::kFilterBlock;
  Value result;
  {
    const ScopeGuard scope(*this, scope_);
    hide_names(node.c);
    for (size_t i = 0; i < values.size(); ++i)
      assign(program_.item(node.list, static_cast<uint32_t>(2 * i)), values[i]);
    const Flow flow = execute(node.c, captures ? captured : out);
    if (flow != Flow::kNext || !captures) return flow;
    result = rt_.heap.make_string(captured.finish());
    const NodeId filter = node.kind == NodeKind::kSetBlock ? node.b : node.a;
    if (filter.valid()) {
      const Value outer_head = std::exchange(filter_head_, result);
      result = evaluate(filter);
      filter_head_ = outer_head;
    }
  }
  if (node.kind == NodeKind::kSetBlock) {
    assign(node.a, result);
  } else {
    out.add(need_string(rt_, result, "the result of a filter block"));
  }
  return Flow::kNext;
}

void Interpreter::execute_call_block(const Node& node, TextBuilder& out) {
  const Node& call_node = program_[node.a];
  const Value callee = evaluate(call_node.a);
  Arguments arguments = evaluate_arguments(call_node.call);
  arguments.named.emplace_back("caller", make_closure(MacroId(node.index)));
  line_ = node.line;
  out.add(need_string(rt_, call(callee, std::move(arguments)), "the result of a call block"));
}

}  // namespace plow::jinja
