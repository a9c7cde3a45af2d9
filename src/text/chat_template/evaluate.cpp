// Expressions and calls.
#include "text/chat_template/interpreter.h"

#include <fmt/format.h>

#include <algorithm>

namespace plow::jinja {

Value Interpreter::evaluate(NodeId id) {
  const Budget::Depth depth(rt_.budget);
  rt_.budget.steps(1);
  const Node& node = program_[id];
  line_ = node.line;
  return evaluate_node(node);
}

Value Interpreter::evaluate_node(const Node& node) {
  switch (node.kind) {
    case NodeKind::kConstant:
      return constants_[node.index];
    case NodeKind::kName:
      return lookup(node.name);
    case NodeKind::kTuple:
      return rt_.heap.make_list(evaluate_list(node.list), Kind::kTuple);
    case NodeKind::kList:
      return rt_.heap.make_list(evaluate_list(node.list));
    case NodeKind::kDict:
      return evaluate_dict(node);
    case NodeKind::kUnary: {
      const Value operand = evaluate(node.a);
      line_ = node.line;
      return unary(rt_, node.op, operand);
    }
    case NodeKind::kBinary: {
      const Value left = evaluate(node.a);
      const Value right = evaluate(node.b);
      line_ = node.line;
      return binary(rt_, node.op, left, right);
    }
    case NodeKind::kNot:
      return boolean(!truthy(rt_, evaluate(node.a)));
    case NodeKind::kAnd: {
      const Value left = evaluate(node.a);
      return truthy(rt_, left) ? evaluate(node.b) : left;
    }
    case NodeKind::kOr: {
      const Value left = evaluate(node.a);
      return truthy(rt_, left) ? left : evaluate(node.b);
    }
    case NodeKind::kCompare:
      return evaluate_compare(node);
    case NodeKind::kConcat:
      return evaluate_concat(node);
    case NodeKind::kCondition:
      if (truthy(rt_, evaluate(node.a))) return evaluate(node.b);
      if (node.c.valid()) return evaluate(node.c);
      return rt_.heap.make_undefined({{}, {}, "an inline 'if' without 'else' was false"});
    case NodeKind::kAttribute: {
      const Value object = evaluate(node.a);
      line_ = node.line;
      return get_attribute(rt_, object, program_.text(node.name));
    }
    case NodeKind::kItem: {
      const Value object = evaluate(node.a);
      const Value key = evaluate(node.b);
      line_ = node.line;
      return get_item(rt_, object, key);
    }
    case NodeKind::kSlice:
      return evaluate_slice(node);
    case NodeKind::kCall:
      return evaluate_call(node);
    case NodeKind::kFilter:
      return evaluate_filter(node);
    case NodeKind::kTest:
      return evaluate_test(node);
    default:
      PLOW_CHECK(false, "a node of kind {} is no expression", static_cast<int>(node.kind));
  }
}

std::vector<Value> Interpreter::evaluate_list(NodeList list) {
  std::vector<Value> values;
  values.reserve(list.size);
  for (uint32_t i = 0; i < list.size; ++i) values.push_back(evaluate(program_.item(list, i)));
  return values;
}

Value Interpreter::evaluate_dict(const Node& node) {
  Dict dict;
  for (uint32_t i = 0; i < node.list.size; i += 2) {
    const Value key = evaluate(program_.item(node.list, i));
    put_in_dict(rt_, dict, key, evaluate(program_.item(node.list, i + 1)));
  }
  return rt_.heap.make_dict(std::move(dict));
}

Value Interpreter::evaluate_compare(const Node& node) {
  Value left = evaluate(node.a);
  for (uint32_t i = 0; i < node.list.size; ++i) {
    const Node& operand = program_[program_.item(node.list, i)];
    const Value right = evaluate(operand.a);
    line_ = operand.line;
    bool holds = false;
    switch (operand.op) {
      case Operator::kEqual:
        holds = equals(rt_, left, right);
        break;
      case Operator::kNotEqual:
        holds = !equals(rt_, left, right);
        break;
      case Operator::kIn:
        holds = contains(rt_, right, left);
        break;
      case Operator::kNotIn:
        holds = !contains(rt_, right, left);
        break;
      default:
        holds = ordered(rt_, operand.op, left, right);
    }
    if (!holds) return boolean(false);
    left = right;
  }
  return boolean(true);
}

Value Interpreter::evaluate_concat(const Node& node) {
  const std::vector<Value> parts = evaluate_list(node.list);
  line_ = node.line;
  TextBuilder out(rt_.budget);
  for (const Value& part : parts) append_str(rt_, out, part);
  return rt_.heap.make_string(out.finish());
}

Value Interpreter::evaluate_slice(const Node& node) {
  const Value object = evaluate(node.a);
  Value bounds[3];
  for (uint32_t i = 0; i < 3; ++i) {
    const NodeId bound = program_.item(node.list, i);
    if (bound.valid()) bounds[i] = evaluate(bound);
  }
  line_ = node.line;
  return get_slice(rt_, object, bounds[0], bounds[1], bounds[2]);
}

Arguments Interpreter::evaluate_arguments(CallId id) {
  const CallArguments& call = program_.calls[id.value];
  Arguments arguments;
  for (const NodeId argument : call.positional) arguments.positional.push_back(evaluate(argument));
  for (const NamedArgument& argument : call.named) {
    const std::string_view name = program_.text(argument.name);
    const auto is_same = [name](const auto& given) { return given.first == name; };
    if (std::any_of(arguments.named.begin(), arguments.named.end(), is_same)) {
      fail(fmt::format("the argument '{}' is given twice", name));
    }
    arguments.named.emplace_back(name, evaluate(argument.value));
  }
  if (call.star.valid()) {
    const std::vector<Value> more = iterate(rt_, evaluate(call.star));
    arguments.positional.insert(arguments.positional.end(), more.begin(), more.end());
  }
  if (call.double_star.valid()) {
    const Value mapping = evaluate(call.double_star);
    if (!mapping.is(Kind::kDict))
      fail(fmt::format("argument after ** must be a mapping, not {}", type_name(rt_, mapping)));
    for (const auto& [name, value] : rt_.heap.dict(mapping).entries) {
      need_string(rt_, name, "the name of an argument");
      arguments.named.emplace_back(rt_.heap.bytes(name), value);
    }
  }
  return arguments;
}

Value Interpreter::evaluate_call(const Node& node) {
  const Value callee = evaluate(node.a);
  Arguments arguments = evaluate_arguments(node.call);
  line_ = node.line;
  return call(callee, std::move(arguments));
}

Value Interpreter::evaluate_filter(const Node& node) {
  const Value subject = node.a.valid() ? evaluate(node.a) : filter_head_;
  Arguments arguments = evaluate_arguments(node.call);
  line_ = node.line;
  const std::string& name = program_.text(node.name);
  const Builtin* filter = find_filter(name);
  if (!filter) fail(fmt::format("there is no filter '{}'", name));
  return call_builtin(rt_, *filter, subject, std::move(arguments));
}

Value Interpreter::evaluate_test(const Node& node) {
  const Value subject = evaluate(node.a);
  Arguments arguments = evaluate_arguments(node.call);
  line_ = node.line;
  const std::string& name = program_.text(node.name);
  const Builtin* test = find_test(name);
  if (!test) fail(fmt::format("there is no test '{}'", name));
  return call_builtin(rt_, *test, subject, std::move(arguments));
}

Value Interpreter::call(const Value& callee, Arguments arguments) {
  switch (callee.kind) {
    case Kind::kUndefined:
      fail_undefined(rt_, callee);
    case Kind::kFunction:
      return call_builtin(rt_, globals()[callee.id], {}, std::move(arguments));
    case Kind::kMethod:
      return call_builtin(rt_, *rt_.heap.method(callee).builtin, rt_.heap.method(callee).self,
                          std::move(arguments));
    case Kind::kMacro:
      return call_macro(rt_.heap.macro(callee), std::move(arguments));
    case Kind::kJoiner: {
      Joiner& joiner = rt_.heap.joiner(callee);
      return std::exchange(joiner.used, true) ? joiner.separator : rt_.heap.make_string("");
    }
    case Kind::kLoop:
      fail("a loop can only be called when it is recursive, which is not supported");
    default:
      fail(fmt::format("'{}' object is not callable", type_name(rt_, callee)));
  }
}

Value Interpreter::call_macro(const Closure& closure, Arguments arguments) {
  const Macro& macro = program_.macros[closure.macro.value];
  const ScopeGuard scope(*this, closure.scope);
  hide_names(macro.body);
  bind_parameters(macro, arguments);
  TextBuilder out(rt_.budget);
  execute(macro.body, out);
  return rt_.heap.make_string(out.finish());
}

// As Macro.__call__ of jinja2: positional arguments, then named ones, then defaults; what is left over goes
// to `varargs` and `kwargs` when the body reads them and is an error otherwise.
void Interpreter::bind_parameters(const Macro& macro, Arguments& arguments) {
  const size_t n_parameters = macro.parameters.size();
  const std::string_view name = macro.name.valid() ? std::string_view(program_.text(macro.name)) : "caller";
  const auto take_named = [&](std::string_view wanted) {
    const auto found = std::find_if(arguments.named.begin(), arguments.named.end(),
                                    [wanted](const auto& argument) { return argument.first == wanted; });
    if (found == arguments.named.end()) return Value();
    const Value value = found->second;
    arguments.named.erase(found);
    return value;
  };
  std::vector<Value> values(n_parameters);
  for (size_t i = 0; i < n_parameters; ++i) {
    values[i] = i < arguments.positional.size() ? arguments.positional[i]
                                                : take_named(program_.text(macro.parameters[i]));
  }
  if (macro.uses_caller) {
    const Value caller = take_named("caller");
    store(caller_symbol_,
          caller.is(Kind::kAbsent) ? rt_.heap.make_undefined({{}, {}, "No caller defined"}) : caller);
  }
  if (macro.uses_kwargs) {
    Dict rest;
    for (const auto& [key, value] : arguments.named) put_in_dict(rt_, rest, rt_.heap.make_string(key), value);
    store(kwargs_symbol_, rt_.heap.make_dict(std::move(rest)));
  } else if (!arguments.named.empty()) {
    fail(fmt::format("macro '{}' takes no keyword argument '{}'", name, arguments.named[0].first));
  }
  if (macro.uses_varargs) {
    const auto rest = arguments.positional.begin() +
                      static_cast<int64_t>(std::min(n_parameters, arguments.positional.size()));
    store(varargs_symbol_, rt_.heap.make_list({rest, arguments.positional.end()}, Kind::kTuple));
  } else if (arguments.positional.size() > n_parameters) {
    fail(fmt::format("macro '{}' takes not more than {} argument(s)", name, n_parameters));
  }
  const size_t first_default = n_parameters - macro.defaults.size();
  for (size_t i = 0; i < n_parameters; ++i) {
    if (values[i].is(Kind::kAbsent)) {
      values[i] = i >= first_default ? evaluate(macro.defaults[i - first_default])
                                     : rt_.heap.make_undefined({{}, name_value(macro.parameters[i])});
    }
    store(macro.parameters[i], values[i]);
  }
}

}  // namespace plow::jinja
