// Runs a parsed template.
#pragma once

#include "text/chat_template/builtins.h"
#include "text/chat_template/program.h"
#include "text/chat_template/runtime.h"

#include <cstdint>
#include <string_view>
#include <utility>
#include <vector>

namespace plow::jinja {

class Interpreter {
 public:
  // Both outlive the interpreter.
  Interpreter(const Program& program, Runtime& rt);

  // Does the template mention this variable? If not, it need not be set.
  bool mentions(std::string_view name) const { return find_symbol(name).valid(); }
  // A variable of the conversation. REQUIRES mentions(name).
  void set_variable(std::string_view name, Value value) { variables_[find_symbol(name).value] = value; }

  // Throws Failure, always with a line. To be called once.
  Text run();

 private:
  enum class Flow { kNext, kBreak, kContinue };

  // The names of one scope. Scopes are a stack; one that a macro was defined in stays when it is left,
  // because the macro may be called later.
  struct Scope {
    uint32_t parent = kNoScope;
    bool captured = false;
    std::vector<std::pair<Symbol, Value>> names;
  };
  static constexpr uint32_t kNoScope = 0xffffffff;
  class ScopeGuard;

  Symbol find_symbol(std::string_view name) const;
  Value name_value(Symbol name);
  Value lookup(Symbol name);
  void store(Symbol name, Value value);
  void assign(NodeId target, const Value& value);
  void hide_names(NodeId body);
  Value make_closure(MacroId macro);

  // Statements (interpreter.cpp).
  Flow execute(NodeId id, TextBuilder& out);
  Flow execute_body(NodeId id, TextBuilder& out);
  Flow execute_if(NodeId id, TextBuilder& out);
  Flow execute_for(const Node& node, TextBuilder& out);
  bool passes_test(const Node& loop, const Value& item);
  void execute_set(const Node& node);
  Flow execute_block(const Node& node, TextBuilder& out);  // set, filter and with blocks, generation
  void execute_call_block(const Node& node, TextBuilder& out);

  // Expressions (evaluate.cpp).
  Value evaluate(NodeId id);
  Value evaluate_node(const Node& node);
  Value evaluate_dict(const Node& node);
  Value evaluate_compare(const Node& node);
  Value evaluate_concat(const Node& node);
  Value evaluate_slice(const Node& node);
  Value evaluate_call(const Node& node);
  Value evaluate_filter(const Node& node);
  Value evaluate_test(const Node& node);
  std::vector<Value> evaluate_list(NodeList list);
  Arguments evaluate_arguments(CallId call);
  Value call(const Value& callee, Arguments arguments);
  Value call_macro(const Closure& closure, Arguments arguments);
  void bind_parameters(const Macro& macro, Arguments& arguments);

  const Program& program_;
  Runtime& rt_;
  const Symbol loop_symbol_;  // these are absent when the template does not mention them
  const Symbol caller_symbol_;
  const Symbol kwargs_symbol_;
  const Symbol varargs_symbol_;
  std::vector<Value> constants_;
  std::vector<Value> variables_;  // by symbol; absent where the conversation has none
  std::vector<Value> names_;      // by symbol: the name as a string, made when first needed
  std::vector<Scope> scopes_;
  uint32_t scope_ = kNoScope;  // where statements run
  Value filter_head_;          // what the filters of a filter block apply to
  uint32_t line_ = 0;          // of what was evaluated last
};

// Enters a new scope inside `parent`, and leaves it.
class Interpreter::ScopeGuard {
 public:
  ScopeGuard(Interpreter& interpreter, uint32_t parent)
      : interpreter_(interpreter), outer_(interpreter.scope_) {
    interpreter_.scopes_.push_back({parent, false, {}});
    interpreter_.scope_ = static_cast<uint32_t>(interpreter_.scopes_.size() - 1);
  }
  ~ScopeGuard() {
    const bool is_top = interpreter_.scope_ + 1 == interpreter_.scopes_.size();
    if (is_top && !interpreter_.scopes_.back().captured) interpreter_.scopes_.pop_back();
    interpreter_.scope_ = outer_;
  }
  ScopeGuard(const ScopeGuard&) = delete;
  ScopeGuard& operator=(const ScopeGuard&) = delete;

 private:
  Interpreter& interpreter_;
  uint32_t outer_;
};

}  // namespace plow::jinja
