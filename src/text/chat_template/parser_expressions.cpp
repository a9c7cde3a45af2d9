// Expressions, loosest first: condition, or, and, not, comparison, + -, ~, * / // %, **, unary, filters and
// tests, postfix.
#include "text/chat_template/budget.h"
#include "text/chat_template/parser.h"
#include "text/chat_template/parser_nesting.h"

#include <fmt/format.h>

namespace plow::jinja {

NodeId Parser::parse_expression() {
  const Nesting nesting(*this);
  return parse_condition();
}

NodeId Parser::parse_condition() {
  NodeId value = parse_or();
  while (at_name("if")) {
    Node node = at_line(NodeKind::kCondition, current().line);
    next();
    node.a = parse_or();
    node.b = value;
    if (skip_name("else")) node.c = parse_expression();
    value = add(node);
  }
  return value;
}

NodeId Parser::parse_or() {
  NodeId left = parse_and();
  while (at_name("or")) {
    Node node = at_line(NodeKind::kOr, next().line);
    node.a = left;
    node.b = parse_and();
    left = add(node);
  }
  return left;
}

NodeId Parser::parse_and() {
  NodeId left = parse_not();
  while (at_name("and")) {
    Node node = at_line(NodeKind::kAnd, next().line);
    node.a = left;
    node.b = parse_not();
    left = add(node);
  }
  return left;
}

NodeId Parser::parse_not() {
  if (!at_name("not")) return parse_compare();
  const Nesting nesting(*this);
  Node node = at_line(NodeKind::kNot, next().line);
  node.a = parse_not();
  return add(node);
}

bool Parser::parse_compare_operator(Operator& op) {
  struct Spelling {
    std::string_view text;
    Operator op;
  };
  static constexpr Spelling kSpellings[] = {
      {"==", Operator::kEqual},     {"!=", Operator::kNotEqual}, {"<", Operator::kLess},
      {"<=", Operator::kLessEqual}, {">", Operator::kGreater},   {">=", Operator::kGreaterEqual},
  };
  for (const Spelling& spelling : kSpellings) {
    if (skip_operator(spelling.text)) {
      op = spelling.op;
      return true;
    }
  }
  if (skip_name("in")) {
    op = Operator::kIn;
    return true;
  }
  if (at_name("not") && peek().kind == TokenKind::kName && peek().text == "in") {
    next();
    next();
    op = Operator::kNotIn;
    return true;
  }
  return false;
}

NodeId Parser::parse_compare() {
  Node node = at_line(NodeKind::kCompare, current().line);
  node.a = parse_sum();
  std::vector<NodeId> operands;
  Operator op = Operator::kNone;
  while (parse_compare_operator(op)) {
    Node operand = at_line(NodeKind::kOperand, current().line);
    operand.op = op;
    operand.a = parse_sum();
    operands.push_back(add(operand));
  }
  if (operands.empty()) return node.a;
  node.list = add_list(operands);
  return add(node);
}

NodeId Parser::parse_sum() {
  NodeId left = parse_concat();
  while (at_operator("+") || at_operator("-")) {
    Node node = at_line(NodeKind::kBinary, current().line);
    node.op = next().text == "+" ? Operator::kAdd : Operator::kSubtract;
    node.a = left;
    node.b = parse_concat();
    left = add(node);
  }
  return left;
}

NodeId Parser::parse_concat() {
  Node node = at_line(NodeKind::kConcat, current().line);
  std::vector<NodeId> parts = {parse_product()};
  while (skip_operator("~")) parts.push_back(parse_product());
  if (parts.size() == 1) return parts[0];
  node.list = add_list(parts);
  return add(node);
}

NodeId Parser::parse_product() {
  NodeId left = parse_power();
  while (at_operator("*") || at_operator("/") || at_operator("//") || at_operator("%")) {
    Node node = at_line(NodeKind::kBinary, current().line);
    const std::string& op = next().text;
    node.op = op == "*"    ? Operator::kMultiply
              : op == "/"  ? Operator::kDivide
              : op == "//" ? Operator::kFloorDivide
                           : Operator::kModulo;
    node.a = left;
    node.b = parse_power();
    left = add(node);
  }
  return left;
}

// To the left, unlike Python's: so jinja2 groups it.
NodeId Parser::parse_power() {
  NodeId left = parse_unary(true);
  while (at_operator("**")) {
    Node node = at_line(NodeKind::kBinary, next().line);
    node.op = Operator::kPower;
    node.a = left;
    node.b = parse_unary(true);
    left = add(node);
  }
  return left;
}

NodeId Parser::parse_unary(bool with_filter) {
  NodeId value;
  if (at_operator("-") || at_operator("+")) {
    const Nesting nesting(*this);
    Node node = at_line(NodeKind::kUnary, current().line);
    node.op = next().text == "-" ? Operator::kSubtract : Operator::kAdd;
    node.a = parse_unary(false);
    value = add(node);
  } else {
    value = parse_primary(false);
  }
  value = parse_postfix(value);
  return with_filter ? parse_filters_and_tests(value) : value;
}

NodeId Parser::parse_name(bool with_namespace) {
  const Token& token = next();
  const std::string& name = token.text;
  if (name == "true" || name == "True" || name == "false" || name == "False") {
    return constant(
        token.line,
        {.kind = Constant::Kind::kBool, .boolean = name[0] == 't' || name[0] == 'T', .string = {}});
  }
  if (name == "none" || name == "None")
    return constant(token.line, {.kind = Constant::Kind::kNone, .string = {}});
  if (name[0] >= '0' && name[0] <= '9') throw Failure{fmt::format("'{}' is not a name", name), token.line};
  Node node = at_line(NodeKind::kName, token.line);
  node.name = intern(name);
  if (with_namespace && skip_operator(".")) {
    node.kind = NodeKind::kNamespaceTarget;
    node.index = intern(expect_name("an attribute")).value;
    return add(node);
  }
  uses_.loop += name == "loop";
  uses_.caller += name == "caller";
  uses_.kwargs += name == "kwargs";
  uses_.varargs += name == "varargs";
  return add(node);
}

NodeId Parser::parse_primary(bool with_namespace) {
  const Nesting nesting(*this);
  const Token& token = current();
  switch (token.kind) {
    case TokenKind::kName:
      return parse_name(with_namespace);
    case TokenKind::kString: {
      Constant value{.kind = Constant::Kind::kString, .string = {}};
      while (current().kind == TokenKind::kString) value.string += next().text;
      return constant(token.line, std::move(value));
    }
    case TokenKind::kInteger:
      next();
      return constant(token.line, {.kind = Constant::Kind::kInteger, .integer = token.integer, .string = {}});
    case TokenKind::kFloat:
      next();
      return constant(token.line, {.kind = Constant::Kind::kFloat, .real = token.real, .string = {}});
    default:
      break;
  }
  if (skip_operator("(")) {
    const NodeId inside = parse_tuple(TupleItems::kExpressions, true);
    expect_operator(")");
    return inside;
  }
  if (at_operator("[")) return parse_list();
  if (at_operator("{")) return parse_dict();
  fail_here("an expression is missing");
}

NodeId Parser::parse_list() {
  Node node = at_line(NodeKind::kList, next().line);
  std::vector<NodeId> items;
  while (!at_operator("]")) {
    if (!items.empty()) expect_operator(",");
    if (at_operator("]")) break;
    items.push_back(parse_expression());
  }
  expect_operator("]");
  node.list = add_list(items);
  return add(node);
}

NodeId Parser::parse_dict() {
  Node node = at_line(NodeKind::kDict, next().line);
  std::vector<NodeId> items;
  while (!at_operator("}")) {
    if (!items.empty()) expect_operator(",");
    if (at_operator("}")) break;
    items.push_back(parse_expression());
    expect_operator(":");
    items.push_back(parse_expression());
  }
  expect_operator("}");
  node.list = add_list(items);
  return add(node);
}

NodeId Parser::parse_postfix(NodeId node) {
  while (true) {
    if (at_operator(".") || at_operator("[")) {
      node = parse_subscript(node);
    } else if (at_operator("(")) {
      Node call = at_line(NodeKind::kCall, current().line);
      call.a = node;
      call.call = parse_call_arguments();
      node = add(call);
    } else {
      return node;
    }
  }
}

NodeId Parser::parse_filters_and_tests(NodeId node) {
  while (true) {
    if (at_operator("|")) {
      next();
      node = parse_filter(node);
    } else if (at_name("is")) {
      node = parse_test(node);
    } else if (at_operator("(")) {
      node = parse_postfix(node);
    } else {
      return node;
    }
  }
}

NodeId Parser::parse_subscript(NodeId object) {
  Node node = at_line(NodeKind::kAttribute, current().line);
  node.a = object;
  if (next().text == ".") {
    if (current().kind == TokenKind::kInteger) {
      const Token& token = next();
      node.kind = NodeKind::kItem;
      node.b =
          constant(token.line, {.kind = Constant::Kind::kInteger, .integer = token.integer, .string = {}});
    } else {
      node.name = intern(expect_name("a name or a number"));
    }
    return add(node);
  }
  const NodeId item = parse_subscribed(object);
  expect_operator("]");
  return item;
}

NodeId Parser::parse_slice_part(std::string_view end1, std::string_view end2) {
  return at_operator(end1) || at_operator(end2) ? NodeId() : parse_expression();
}

// object[first, second, ...]
NodeId Parser::parse_key_tuple(NodeId first) {
  Node node = at_line(NodeKind::kTuple, current().line);
  std::vector<NodeId> keys;
  if (first.valid()) keys.push_back(first);
  while (skip_operator(",")) keys.push_back(parse_expression());
  node.list = add_list(keys);
  return add(node);
}

// Behind the bracket: an item or a slice of `object`.
NodeId Parser::parse_subscribed(NodeId object) {
  Node node = at_line(NodeKind::kItem, current().line);
  node.a = object;
  NodeId start;
  if (!at_operator(":") && !at_operator("]")) start = parse_expression();
  if (!skip_operator(":")) {
    node.b = start.valid() && !at_operator(",") ? start : parse_key_tuple(start);
    return add(node);
  }
  const NodeId stop = parse_slice_part(":", "]");
  const NodeId step = skip_operator(":") ? parse_slice_part("]", "]") : NodeId();
  node.kind = NodeKind::kSlice;
  node.list = add_list({start, stop, step});
  return add(node);
}

CallId Parser::parse_call_arguments() {
  const Nesting nesting(*this);
  const uint32_t line = current().line;
  expect_operator("(");
  CallArguments arguments;
  const auto require = [line](bool condition) {
    if (!condition) throw Failure{"arguments of a call are in the wrong order", line};
  };
  bool first = true;
  while (!at_operator(")")) {
    if (!first) {
      expect_operator(",");
      if (at_operator(")")) break;
    }
    first = false;
    if (skip_operator("*")) {
      require(!arguments.star.valid() && !arguments.double_star.valid());
      arguments.star = parse_expression();
    } else if (skip_operator("**")) {
      require(!arguments.double_star.valid());
      arguments.double_star = parse_expression();
    } else if (current().kind == TokenKind::kName && peek().kind == TokenKind::kOperator &&
               peek().text == "=") {
      require(!arguments.double_star.valid());
      const Symbol name = intern(next().text);
      next();
      arguments.named.push_back({name, parse_expression()});
    } else {
      require(!arguments.star.valid() && !arguments.double_star.valid() && arguments.named.empty());
      arguments.positional.push_back(parse_expression());
    }
  }
  expect_operator(")");
  program_.calls.push_back(std::move(arguments));
  return CallId(program_.calls.size() - 1);
}

std::string Parser::parse_dotted_name(std::string_view what) {
  std::string name = expect_name(what);
  while (skip_operator(".")) name += "." + expect_name(what);
  return name;
}

// Behind the bar.
NodeId Parser::parse_filter(NodeId value) {
  Node node = at_line(NodeKind::kFilter, current().line);
  node.a = value;
  node.name = intern(parse_dotted_name("the name of a filter"));
  if (at_operator("(")) {
    node.call = parse_call_arguments();
  } else {
    program_.calls.emplace_back();
    node.call = CallId(program_.calls.size() - 1);
  }
  return add(node);
}

NodeId Parser::parse_filter_chain(NodeId value) {
  NodeId node = parse_filter(value);
  while (skip_operator("|")) node = parse_filter(node);
  return node;
}

NodeId Parser::parse_test(NodeId value) {
  Node node = at_line(NodeKind::kTest, next().line);
  const bool negated = skip_name("not");
  node.a = value;
  node.name = intern(parse_dotted_name("the name of a test"));
  const TokenKind kind = current().kind;
  const bool has_bare_argument =
      kind == TokenKind::kString || kind == TokenKind::kInteger || kind == TokenKind::kFloat ||
      at_operator("[") || at_operator("{") ||
      (kind == TokenKind::kName && !at_name("else") && !at_name("or") && !at_name("and"));
  if (at_operator("(")) {
    node.call = parse_call_arguments();
  } else {
    CallArguments arguments;
    if (has_bare_argument) {
      if (at_name("is")) fail_here("tests cannot be chained with 'is'");
      arguments.positional.push_back(parse_postfix(parse_primary(false)));
    }
    program_.calls.push_back(std::move(arguments));
    node.call = CallId(program_.calls.size() - 1);
  }
  const NodeId test = add(node);
  if (!negated) return test;
  Node negation = at_line(NodeKind::kNot, node.line);
  negation.a = test;
  return add(negation);
}

bool Parser::at_tuple_end() const {
  return current().kind == TokenKind::kVariableEnd || current().kind == TokenKind::kBlockEnd ||
         at_operator(")");
}

NodeId Parser::parse_tuple_item(TupleItems items) {
  switch (items) {
    case TupleItems::kExpressions:
      return parse_expression();
    case TupleItems::kNoConditions:
      return parse_or();
    case TupleItems::kPrimaries:
      return parse_primary(false);
    case TupleItems::kTargets:
      return parse_primary(true);
  }
  return {};
}

NodeId Parser::parse_tuple(TupleItems items, bool in_parentheses) {
  const Nesting nesting(*this);
  Node node = at_line(NodeKind::kTuple, current().line);
  std::vector<NodeId> parts;
  bool is_tuple = false;
  while (true) {
    if (!parts.empty()) expect_operator(",");
    if (at_tuple_end()) break;
    parts.push_back(parse_tuple_item(items));
    if (!at_operator(",")) break;
    is_tuple = true;
  }
  if (!is_tuple && !parts.empty()) return parts[0];
  if (!is_tuple && !in_parentheses) fail_here("an expression is missing");
  node.list = add_list(parts);
  return add(node);
}

}  // namespace plow::jinja
