// Statements, and the parser's own small change.
#include "text/chat_template/budget.h"
#include "text/chat_template/parser.h"
#include "text/chat_template/parser_nesting.h"

#include <fmt/format.h>

#include <algorithm>

namespace plow::jinja {
namespace {

// Jinja refuses 200 nested brackets because Python does, and a chain of 200 operators with it.
constexpr uint16_t kMaxTreeDepth = 800;

std::string describe(const Token& token) {
  switch (token.kind) {
    case TokenKind::kData:
      return "text";
    case TokenKind::kVariableBegin:
      return "'{{'";
    case TokenKind::kVariableEnd:
      return "'}}'";
    case TokenKind::kBlockBegin:
      return "'{%'";
    case TokenKind::kBlockEnd:
      return "'%}'";
    case TokenKind::kName:
    case TokenKind::kOperator:
      return fmt::format("'{}'", token.text);
    case TokenKind::kString:
      return "a string";
    case TokenKind::kInteger:
    case TokenKind::kFloat:
      return "a number";
    case TokenKind::kEnd:
      break;
  }
  return "the end of the template";
}

// Tags of jinja2 that chat templates have no use for.
struct RefusedTag {
  std::string_view name;
  std::string_view reason;
};
constexpr RefusedTag kRefusedTags[] = {
    {"include", "a chat template cannot load other templates"},
    {"import", "a chat template cannot load other templates"},
    {"from", "a chat template cannot load other templates"},
    {"extends", "a chat template cannot load other templates"},
    {"block", "only templates that others extend have blocks"},
    {"autoescape", "the text of a prompt is never escaped"},
};

}  // namespace

bool Parser::at_name(std::string_view name) const {
  return current().kind == TokenKind::kName && current().text == name;
}
bool Parser::at_operator(std::string_view op) const {
  return current().kind == TokenKind::kOperator && current().text == op;
}
bool Parser::skip_name(std::string_view name) {
  const bool found = at_name(name);
  if (found) next();
  return found;
}
bool Parser::skip_operator(std::string_view op) {
  const bool found = at_operator(op);
  if (found) next();
  return found;
}
void Parser::expect_operator(std::string_view op) {
  if (!skip_operator(op)) fail_here(fmt::format("expected '{}'", op));
}
void Parser::expect(TokenKind kind, std::string_view what) {
  if (current().kind != kind) fail_here(fmt::format("expected {}", what));
  next();
}
const std::string& Parser::expect_name(std::string_view what) {
  if (current().kind != TokenKind::kName) fail_here(fmt::format("expected {}", what));
  return next().text;
}
void Parser::fail_here(std::string message) const {
  throw Failure{fmt::format("{}, got {}", message, describe(current())), current().line};
}

Node Parser::at_line(NodeKind kind, uint32_t line) const {
  Node node;
  node.kind = kind;
  node.line = line;
  return node;
}

NodeId Parser::add(Node node) {
  const auto depth_of = [this](NodeId id) { return id.valid() ? program_[id].depth : uint16_t{0}; };
  uint16_t depth = std::max(depth_of(node.a), depth_of(node.b));
  for (uint32_t i = 0; i < node.list.size; ++i)
    depth = std::max(depth, depth_of(program_.item(node.list, i)));
  // A chain of elif is walked by a loop, not by recursion.
  const bool is_elif = node.kind == NodeKind::kIf && node.c.valid() && program_[node.c].kind == NodeKind::kIf;
  node.depth = std::max<uint16_t>(depth + 1, is_elif ? depth_of(node.c) : depth_of(node.c) + 1);
  if (node.depth > kMaxTreeDepth) throw Failure{"an expression has too many parts", node.line};
  program_.nodes.push_back(node);
  return NodeId(program_.nodes.size() - 1);
}

NodeList Parser::add_list(const std::vector<NodeId>& items) {
  const NodeList list{static_cast<uint32_t>(program_.lists.size()), static_cast<uint32_t>(items.size())};
  program_.lists.insert(program_.lists.end(), items.begin(), items.end());
  return list;
}

Symbol Parser::intern(std::string_view name) {
  const auto [found, is_new] = symbols_.try_emplace(std::string(name), Symbol(program_.symbols.size()));
  if (is_new) program_.symbols.emplace_back(name);
  return found->second;
}

NodeId Parser::constant(uint32_t line, Constant value) {
  Node node = at_line(NodeKind::kConstant, line);
  node.index = static_cast<uint32_t>(program_.constants.size());
  program_.constants.push_back(std::move(value));
  return add(node);
}

Program Parser::run() {
  program_.root = parse_statements({});
  return std::move(program_);
}

NodeId Parser::parse_body(const Ends& ends) {
  skip_operator(":");  // allowed, as in Python
  expect(TokenKind::kBlockEnd, "'%}'");
  return parse_statements(ends);
}

// Leaves the parser at the name of the tag that ended it.
NodeId Parser::parse_statements(const Ends& ends) {
  const Nesting nesting(*this);
  Node body = at_line(NodeKind::kBody, current().line);
  std::vector<NodeId> statements;
  while (current().kind != TokenKind::kEnd) {
    const uint32_t line = current().line;
    if (current().kind == TokenKind::kData) {
      Node data = at_line(NodeKind::kData, line);
      data.index = static_cast<uint32_t>(program_.constants.size());
      program_.constants.push_back({.kind = Constant::Kind::kString, .string = next().text});
      statements.push_back(add(data));
    } else if (current().kind == TokenKind::kVariableBegin) {
      next();
      Node output = at_line(NodeKind::kOutput, line);
      output.a = parse_tuple(TupleItems::kExpressions);
      expect(TokenKind::kVariableEnd, "'}}'");
      statements.push_back(add(output));
    } else {
      expect(TokenKind::kBlockBegin, "'{%'");
      if (std::any_of(ends.begin(), ends.end(), [this](std::string_view end) { return at_name(end); })) break;
      parse_statement(statements);
      expect(TokenKind::kBlockEnd, "'%}'");
    }
  }
  if (current().kind == TokenKind::kEnd && !ends.empty()) {
    const OpenTag& tag = open_tags_.back();
    throw Failure{fmt::format("'{}' is not closed: the template ends before '{}'", tag.name, ends.back()),
                  tag.line};
  }
  body.list = add_list(statements);
  return add(body);
}

void Parser::parse_statement(std::vector<NodeId>& statements) {
  const std::string tag = current().text;
  if (current().kind != TokenKind::kName) fail_here("expected the name of a tag");
  open_tags_.push_back({tag, current().line});
  if (tag == "if") {
    statements.push_back(parse_if());
  } else if (tag == "for") {
    statements.push_back(parse_for());
  } else if (tag == "set") {
    statements.push_back(parse_set());
  } else if (tag == "macro") {
    statements.push_back(parse_macro());
  } else if (tag == "call") {
    statements.push_back(parse_call_block());
  } else if (tag == "filter") {
    statements.push_back(parse_filter_block());
  } else if (tag == "with") {
    statements.push_back(parse_with());
  } else if (tag == "generation") {
    statements.push_back(parse_generation());
  } else if (tag == "break" || tag == "continue") {
    statements.push_back(parse_loop_control(tag == "break" ? NodeKind::kBreak : NodeKind::kContinue));
  } else if (tag == "print") {
    parse_print(statements);
  } else {
    for (const RefusedTag& refused : kRefusedTags) {
      if (tag == refused.name)
        fail_here(fmt::format("the tag '{}' is not supported: {}", tag, refused.reason));
    }
    open_tags_.pop_back();
    if (open_tags_.empty()) fail_here("unknown tag");
    fail_here(fmt::format("unknown tag inside '{}'", open_tags_.back().name));
  }
  open_tags_.pop_back();
}

NodeId Parser::parse_if() {
  std::vector<Node> branches;
  NodeId otherwise;
  do {
    Node node = at_line(NodeKind::kIf, next().line);  // behind `if` or `elif`
    node.a = parse_tuple(TupleItems::kNoConditions);
    node.b = parse_body({"elif", "else", "endif"});
    branches.push_back(node);
  } while (at_name("elif"));
  if (skip_name("else")) otherwise = parse_body({"endif"});
  next();  // endif
  for (size_t i = branches.size(); i-- > 0;) {
    branches[i].c = otherwise;
    otherwise = add(branches[i]);
  }
  return otherwise;
}

NodeId Parser::parse_for() {
  Node node = at_line(NodeKind::kFor, next().line);
  ++enclosing_fors_;
  const NodeId target = parse_target(false);
  --enclosing_fors_;
  if (!skip_name("in")) fail_here("expected 'in'");
  const NodeId iterable = parse_tuple(TupleItems::kNoConditions);
  const NodeId test = skip_name("if") ? parse_expression() : NodeId();
  if (at_name("recursive")) fail_here("recursive loops are not supported; use a macro that calls itself");

  const uint32_t uses_before = uses_.loop;
  ++enclosing_loops_;
  ++enclosing_fors_;
  node.c = parse_body({"endfor", "else"});
  --enclosing_loops_;
  node.flag = uses_.loop != uses_before;
  const NodeId otherwise = skip_name("else") ? parse_body({"endfor"}) : NodeId();
  --enclosing_fors_;
  next();  // endfor
  node.list = add_list({target, iterable, test, otherwise});
  return add(node);
}

NodeId Parser::parse_set() {
  Node node = at_line(NodeKind::kSet, next().line);
  node.a = parse_target(true);
  if (skip_operator("=")) {
    node.b = parse_tuple(TupleItems::kExpressions);
    return add(node);
  }
  node.kind = NodeKind::kSetBlock;
  if (skip_operator("|")) node.b = parse_filter_chain({});
  node.c = parse_body({"endset"});
  next();
  return add(node);
}

void Parser::parse_signature(Macro& macro) {
  expect_operator("(");
  while (!at_operator(")")) {
    if (!macro.parameters.empty()) expect_operator(",");
    macro.parameters.push_back(parse_name_target());
    if (skip_operator("=")) {
      macro.defaults.push_back(parse_expression());
    } else if (!macro.defaults.empty()) {
      fail_here("a parameter without a default follows one with a default");
    }
  }
  expect_operator(")");
}

NodeId Parser::parse_macro_body(Macro& macro, std::string_view end) {
  const Uses before = uses_;
  const uint32_t loops = enclosing_loops_;
  enclosing_loops_ = 0;
  macro.body = parse_body({end});
  enclosing_loops_ = loops;
  next();
  const auto is_parameter = [&](std::string_view name) {
    return std::any_of(macro.parameters.begin(), macro.parameters.end(),
                       [&](Symbol parameter) { return program_.text(parameter) == name; });
  };
  macro.uses_caller = uses_.caller != before.caller && !is_parameter("caller");
  macro.uses_kwargs = uses_.kwargs != before.kwargs && !is_parameter("kwargs");
  macro.uses_varargs = uses_.varargs != before.varargs && !is_parameter("varargs");
  return macro.body;
}

NodeId Parser::parse_macro() {
  Node node = at_line(NodeKind::kMacro, next().line);
  Macro macro;
  macro.name = parse_name_target();
  node.name = macro.name;
  parse_signature(macro);
  node.c = parse_macro_body(macro, "endmacro");
  node.index = static_cast<uint32_t>(program_.macros.size());
  program_.macros.push_back(std::move(macro));
  return add(node);
}

NodeId Parser::parse_call_block() {
  Node node = at_line(NodeKind::kCallBlock, next().line);
  Macro macro;
  if (at_operator("(")) parse_signature(macro);
  node.a = parse_expression();
  if (program_[node.a].kind != NodeKind::kCall) throw Failure{"'call' needs a call of a macro", node.line};
  node.c = parse_macro_body(macro, "endcall");
  node.index = static_cast<uint32_t>(program_.macros.size());
  program_.macros.push_back(std::move(macro));
  return add(node);
}

NodeId Parser::parse_filter_block() {
  Node node = at_line(NodeKind::kFilterBlock, next().line);
  node.a = parse_filter_chain({});
  node.c = parse_body({"endfilter"});
  next();
  return add(node);
}

NodeId Parser::parse_with() {
  Node node = at_line(NodeKind::kWith, next().line);
  std::vector<NodeId> pairs;
  while (current().kind != TokenKind::kBlockEnd) {
    if (!pairs.empty()) expect_operator(",");
    pairs.push_back(parse_target(false));
    expect_operator("=");
    pairs.push_back(parse_expression());
  }
  node.list = add_list(pairs);
  node.c = parse_body({"endwith"});
  next();
  return add(node);
}

NodeId Parser::parse_generation() {
  Node node = at_line(NodeKind::kGeneration, next().line);
  const uint32_t loops = enclosing_loops_;
  enclosing_loops_ = 0;  // the block is a macro in transformers
  node.c = parse_body({"endgeneration"});
  enclosing_loops_ = loops;
  next();
  return add(node);
}

NodeId Parser::parse_loop_control(NodeKind kind) {
  const Token& token = next();
  if (enclosing_loops_ == 0) throw Failure{fmt::format("'{}' is outside of a loop", token.text), token.line};
  return add(at_line(kind, token.line));
}

void Parser::parse_print(std::vector<NodeId>& statements) {
  const uint32_t line = next().line;
  bool first = true;
  while (current().kind != TokenKind::kBlockEnd) {
    if (!first) expect_operator(",");
    first = false;
    Node output = at_line(NodeKind::kOutput, line);
    output.a = parse_expression();
    statements.push_back(add(output));
  }
}

// A name, an attribute of a namespace, or a tuple of these. `with_namespace`: the attribute is allowed.
NodeId Parser::parse_target(bool with_namespace) {
  const Uses before = uses_;
  const NodeId target = parse_tuple(with_namespace ? TupleItems::kTargets : TupleItems::kPrimaries);
  uses_ = before;  // an assignment is no use
  std::vector<NodeId> open = {target};
  while (!open.empty()) {
    const Node& node = program_[open.back()];
    open.pop_back();
    if (node.kind == NodeKind::kTuple) {
      for (uint32_t i = 0; i < node.list.size; ++i) open.push_back(program_.item(node.list, i));
    } else if (node.kind == NodeKind::kName) {
      if (enclosing_fors_ > 0 && program_.text(node.name) == "loop") {
        throw Failure{"'loop' cannot be assigned inside a for loop", node.line};
      }
    } else if (node.kind != NodeKind::kNamespaceTarget) {
      throw Failure{"only names, attributes of namespaces, and tuples of them can be assigned", node.line};
    }
  }
  return target;
}

Symbol Parser::parse_name_target() {
  const uint32_t line = current().line;
  const std::string name = expect_name("a name");
  for (const std::string_view reserved : {"true", "false", "none", "True", "False", "None"}) {
    if (name == reserved) throw Failure{fmt::format("'{}' cannot be assigned", name), line};
  }
  return intern(name);
}

Program parse(std::string_view source) {
  Program program = Parser(tokenize(source)).run();
  analyze(program);
  return program;
}

}  // namespace plow::jinja
