// A parsed template: the syntax tree in flat vectors indexed by ids.
#pragma once

#include "base/ids.h"

#include <cstdint>
#include <string>
#include <vector>

namespace plow::jinja {

using NodeId = Id<struct NodeTag>;
using MacroId = Id<struct MacroTag>;
using CallId = Id<struct CallTag>;
using Symbol = Id<struct SymbolTag>;  // an interned name

struct NodeList {  // a range of Program::lists
  uint32_t begin = 0;
  uint32_t size = 0;
};
struct SymbolList {  // a range of Program::symbol_lists
  uint32_t begin = 0;
  uint32_t size = 0;
};

enum class NodeKind : uint8_t {
  // Expressions.
  kConstant,         // index into constants
  kName,             // name
  kTuple,            // list
  kList,             // list
  kDict,             // list: key, value, key, value, ...
  kUnary,            // op a
  kBinary,           // a op b
  kNot,              // a
  kAnd,              // a, b
  kOr,               // a, b
  kCompare,          // a, list of kOperand
  kOperand,          // op a: one link of a chain of comparisons
  kConcat,           // list, joined by ~
  kCondition,        // b if a else c; c may be absent
  kAttribute,        // a.name
  kItem,             // a[b]
  kSlice,            // a[list]: start, stop, step, each may be absent
  kCall,             // a(call)
  kFilter,           // a | name(call); a is absent at the head of a filter block
  kTest,             // a is name(call)
  kNamespaceTarget,  // name.attribute on the left of `set`; attribute in `index` (a Symbol)
  // Statements.
  kBody,    // list of statements; `hidden` when it is a scope of its own
  kData,    // index into constants
  kOutput,  // a
  kIf,      // a: test, b: body, c: a kBody or kIf for what else, may be absent
  kFor,  // list: target, iterable, test, else body (the last two may be absent), c: body; flag: uses `loop`
  kSet,  // a: target, b: value
  kSetBlock,     // a: target, b: filter or absent, c: body
  kMacro,        // index into macros
  kCallBlock,    // a: the call, index into macros: its body
  kFilterBlock,  // a: filter, c: body
  kWith,         // list: target, value, ..., c: body
  kGeneration,   // c: body
  kBreak,
  kContinue,
};

enum class Operator : uint8_t {
  kNone,
  kAdd,
  kSubtract,
  kMultiply,
  kDivide,
  kFloorDivide,
  kModulo,
  kPower,
  kEqual,
  kNotEqual,
  kLess,
  kLessEqual,
  kGreater,
  kGreaterEqual,
  kIn,
  kNotIn,
};

struct Node {
  NodeKind kind = NodeKind::kBody;
  Operator op = Operator::kNone;
  bool flag = false;
  uint16_t depth = 0;  // of the tree under it: the parser bounds it, so that what walks the tree may recurse
  uint32_t line = 0;
  NodeId a, b, c;
  Symbol name;
  uint32_t index = 0;
  CallId call;
  NodeList list;
  SymbolList hidden;
};

struct NamedArgument {
  Symbol name;
  NodeId value;
};

struct CallArguments {
  std::vector<NodeId> positional;
  std::vector<NamedArgument> named;
  NodeId star;         // *sequence, or absent
  NodeId double_star;  // **mapping, or absent
};

struct Macro {
  Symbol name;  // absent for the body of a call block
  std::vector<Symbol> parameters;
  std::vector<NodeId> defaults;  // of the last parameters
  NodeId body;
  bool uses_caller = false;  // as a free name: then the macro takes that argument though it is no parameter
  bool uses_kwargs = false;
  bool uses_varargs = false;
};

struct Constant {
  enum class Kind : uint8_t { kNone, kBool, kInteger, kFloat, kString };
  Kind kind = Kind::kNone;
  bool boolean = false;
  int64_t integer = 0;
  double real = 0;
  std::string string;
};

struct Program {
  std::vector<Node> nodes;
  std::vector<NodeId> lists;
  std::vector<CallArguments> calls;
  std::vector<Macro> macros;
  std::vector<Constant> constants;
  std::vector<std::string> symbols;
  std::vector<Symbol> symbol_lists;
  NodeId root;  // a kBody

  const Node& operator[](NodeId id) const { return nodes[id.value]; }
  const std::string& text(Symbol symbol) const { return symbols[symbol.value]; }
  NodeId item(NodeList list, uint32_t i) const { return lists[list.begin + i]; }
};

// Throws Failure. REQUIRES valid UTF-8.
Program parse(std::string_view source);

// The checks that need the whole tree, and the `hidden` names of each scope (analyze.cpp says what they are).
// Throws Failure.
void analyze(Program& program);

}  // namespace plow::jinja
