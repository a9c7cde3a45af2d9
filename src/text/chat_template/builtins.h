// The functions that templates can call: filters, tests, methods and globals, one table each. To add one,
// write a function and a line in its table (filters_*.cpp, is_tests.cpp, methods_*.cpp, globals.cpp).
#pragma once

#include "text/chat_template/value.h"

#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace plow::jinja {

struct Runtime;

// The arguments of a call as written, and, once bound, as parameters.
struct Arguments {
  std::vector<Value> positional;
  std::vector<std::pair<std::string_view, Value>> named;

  const Value& operator[](size_t i) const { return positional[i]; }
  bool has(size_t i) const { return !positional[i].is(Kind::kAbsent); }
};

// `self` is the value to the left of the filter, test or dot; absent for a global. `arguments` has one value
// for each parameter, absent where none was given.
using BuiltinFunction = Value (*)(Runtime&, const Value& self, Arguments& arguments);

struct Builtin {
  std::string_view name;
  // Names of the parameters, separated by spaces; '?' behind one that may be left out; '/' in front of them
  // all when they cannot be named; "*" alone: the function takes the arguments as written.
  std::string_view parameters;
  BuiltinFunction function;
};

// Binds the arguments and calls. Throws Failure, also for arguments that do not fit.
Value call_builtin(Runtime& rt, const Builtin& builtin, const Value& self, Arguments arguments);

// nullptr when there is none of that name.
const Builtin* find_filter(std::string_view name);
const Builtin* find_test(std::string_view name);
const Builtin* find_method(Kind kind, std::string_view name);
// A method of Python's that changes its object, which the sandbox forbids.
bool is_mutator(Kind kind, std::string_view name);

// The tables, in the files that are named after them.
std::span<const Builtin> globals();
std::span<const Builtin> tests();
std::span<const Builtin> text_filters();
std::span<const Builtin> number_filters();
std::span<const Builtin> sequence_filters();
std::span<const Builtin> selection_filters();
std::span<const Builtin> string_methods();
std::span<const Builtin> string_question_methods();
std::span<const Builtin> sequence_methods();
std::span<const Builtin> dict_methods();
std::span<const Builtin> loop_methods();
std::span<const Builtin> cycler_methods();
std::span<const Builtin> float_methods();

// Arguments of a wanted type. `what` names the argument in the error.
int64_t need_integer(Runtime& rt, const Value& v, std::string_view what);
const Text& need_string(Runtime& rt, const Value& v, std::string_view what);

}  // namespace plow::jinja
