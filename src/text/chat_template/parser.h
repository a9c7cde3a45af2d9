// Recursive descent over the tokens; the grammar and its precedences are jinja2's.
#pragma once

#include "text/chat_template/lexer.h"
#include "text/chat_template/program.h"

#include <array>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

namespace plow::jinja {

class Parser {
 public:
  explicit Parser(std::vector<Token> tokens) : tokens_(std::move(tokens)) {}
  Program run();

 private:
  class Nesting;  // bounds the parser's own recursion

  // Tokens.
  const Token& current() const { return tokens_[at_]; }
  const Token& peek() const { return tokens_[std::min(at_ + 1, tokens_.size() - 1)]; }
  const Token& next() { return tokens_[at_ + 1 < tokens_.size() ? at_++ : at_]; }
  bool at_name(std::string_view name) const;
  bool at_operator(std::string_view op) const;
  bool skip_name(std::string_view name);
  bool skip_operator(std::string_view op);
  void expect_operator(std::string_view op);
  void expect(TokenKind kind, std::string_view what);
  const std::string& expect_name(std::string_view what);
  [[noreturn]] void fail_here(std::string message) const;

  // Nodes.
  NodeId add(Node node);
  NodeList add_list(const std::vector<NodeId>& items);
  Symbol intern(std::string_view name);
  NodeId constant(uint32_t line, Constant value);
  Node at_line(NodeKind kind, uint32_t line) const;

  // Statements (parser_statements.cpp).
  using Ends = std::vector<std::string_view>;
  NodeId parse_body(const Ends& ends);        // behind the tag that opens it, up to a tag of `ends`
  NodeId parse_statements(const Ends& ends);  // the rest of the opening tag too
  void parse_statement(std::vector<NodeId>& statements);
  NodeId parse_if();
  NodeId parse_for();
  NodeId parse_set();
  NodeId parse_macro();
  NodeId parse_call_block();
  NodeId parse_filter_block();
  NodeId parse_with();
  NodeId parse_generation();
  NodeId parse_loop_control(NodeKind kind);
  void parse_print(std::vector<NodeId>& statements);
  void parse_signature(Macro& macro);
  NodeId parse_macro_body(Macro& macro, std::string_view end);
  NodeId parse_target(bool with_namespace);
  Symbol parse_name_target();

  // Expressions (parser_expressions.cpp).
  NodeId parse_expression();
  NodeId parse_condition();
  NodeId parse_or();
  NodeId parse_and();
  NodeId parse_not();
  NodeId parse_compare();
  bool parse_compare_operator(Operator& op);
  NodeId parse_sum();
  NodeId parse_concat();
  NodeId parse_product();
  NodeId parse_power();
  NodeId parse_unary(bool with_filter);
  NodeId parse_primary(bool with_namespace);
  NodeId parse_name(bool with_namespace);
  NodeId parse_list();
  NodeId parse_dict();
  NodeId parse_postfix(NodeId node);
  NodeId parse_filters_and_tests(NodeId node);
  NodeId parse_subscript(NodeId node);
  NodeId parse_slice_part(std::string_view end1, std::string_view end2);
  NodeId parse_key_tuple(NodeId first);
  NodeId parse_subscribed(NodeId object);
  CallId parse_call_arguments();
  NodeId parse_filter(NodeId node);
  NodeId parse_filter_chain(NodeId node);
  NodeId parse_test(NodeId node);
  std::string parse_dotted_name(std::string_view what);

  enum class TupleItems { kExpressions, kNoConditions, kPrimaries, kTargets };
  // One expression, or a tuple when commas follow. `in_parentheses` allows the empty tuple.
  NodeId parse_tuple(TupleItems items, bool in_parentheses = false);
  bool at_tuple_end() const;
  NodeId parse_tuple_item(TupleItems items);

  std::vector<Token> tokens_;
  size_t at_ = 0;
  Program program_;
  std::unordered_map<std::string, Symbol> symbols_;
  uint32_t nesting_ = 0;
  uint32_t enclosing_loops_ = 0;  // that `break` can leave
  uint32_t enclosing_fors_ = 0;   // whatever lies between
  struct OpenTag {
    std::string name;
    uint32_t line = 0;
  };
  std::vector<OpenTag> open_tags_;
  // How often a name that means something by being used was read so far: a construct compares before and
  // after.
  struct Uses {
    uint32_t loop = 0, caller = 0, kwargs = 0, varargs = 0;
  } uses_;
};

}  // namespace plow::jinja
