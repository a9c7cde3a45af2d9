// Binding of arguments and lookup in the tables.
#include "text/chat_template/builtins.h"

#include "text/chat_template/runtime.h"

#include <fmt/format.h>

#include <algorithm>

namespace plow::jinja {
namespace {

struct Parameter {
  std::string_view name;
  bool optional = false;
};

std::vector<Parameter> split_parameters(std::string_view text) {
  std::vector<Parameter> parameters;
  while (!text.empty()) {
    const size_t end = std::min(text.find(' '), text.size());
    std::string_view name = text.substr(0, end);
    text.remove_prefix(std::min(end + 1, text.size()));
    const bool optional = name.ends_with('?');
    if (optional) name.remove_suffix(1);
    parameters.push_back({name, optional});
  }
  return parameters;
}

Arguments bind(const Builtin& builtin, Arguments given) {
  const bool positional_only = builtin.parameters.starts_with('/');
  const auto parameters = split_parameters(builtin.parameters.substr(positional_only ? 1 : 0));
  if (given.positional.size() > parameters.size()) {
    fail(fmt::format("{}() takes at most {} arguments ({} given)", builtin.name, parameters.size(),
                     given.positional.size()));
  }
  Arguments bound;
  bound.positional = std::move(given.positional);
  bound.positional.resize(parameters.size());
  for (const auto& [name, value] : given.named) {
    if (positional_only) fail(fmt::format("{}() takes no keyword arguments", builtin.name));
    size_t i = 0;
    while (i < parameters.size() && parameters[i].name != name) ++i;
    if (i == parameters.size())
      fail(fmt::format("{}() got an unexpected keyword argument '{}'", builtin.name, name));
    if (bound.has(i)) fail(fmt::format("{}() got multiple values for argument '{}'", builtin.name, name));
    bound.positional[i] = value;
  }
  for (size_t i = 0; i < parameters.size(); ++i) {
    if (!parameters[i].optional && !bound.has(i)) {
      fail(fmt::format("{}() is missing the argument '{}'", builtin.name, parameters[i].name));
    }
  }
  return bound;
}

const Builtin* find_in(std::span<const Builtin> table, std::string_view name) {
  const auto found =
      std::find_if(table.begin(), table.end(), [name](const Builtin& b) { return b.name == name; });
  return found == table.end() ? nullptr : &*found;
}

}  // namespace

Value call_builtin(Runtime& rt, const Builtin& builtin, const Value& self, Arguments arguments) {
  rt.budget.steps(1);
  if (builtin.parameters == "*") return builtin.function(rt, self, arguments);
  Arguments bound = bind(builtin, std::move(arguments));
  return builtin.function(rt, self, bound);
}

const Builtin* find_filter(std::string_view name) {
  for (const auto table : {text_filters(), number_filters(), sequence_filters(), selection_filters()}) {
    if (const Builtin* found = find_in(table, name)) return found;
  }
  return nullptr;
}

const Builtin* find_test(std::string_view name) { return find_in(tests(), name); }

const Builtin* find_method(Kind kind, std::string_view name) {
  switch (kind) {
    case Kind::kString: {
      const Builtin* found = find_in(string_methods(), name);
      return found ? found : find_in(string_question_methods(), name);
    }
    case Kind::kList:
    case Kind::kTuple:
      return find_in(sequence_methods(), name);
    case Kind::kDict:
      return find_in(dict_methods(), name);
    case Kind::kLoop:
      return find_in(loop_methods(), name);
    case Kind::kCycler:
      return find_in(cycler_methods(), name);
    case Kind::kFloat:
      return find_in(float_methods(), name);
    default:
      return nullptr;
  }
}

bool is_mutator(Kind kind, std::string_view name) {
  // jinja2.sandbox._mutable_spec for MutableSequence and MutableMapping.
  constexpr std::string_view kOfLists[] = {"append", "clear", "pop",    "reverse",
                                           "insert", "sort",  "extend", "remove"};
  constexpr std::string_view kOfDicts[] = {"clear", "pop", "popitem", "setdefault", "update"};
  const auto has = [name](std::span<const std::string_view> names) {
    return std::find(names.begin(), names.end(), name) != names.end();
  };
  return (kind == Kind::kList && has(kOfLists)) || (kind == Kind::kDict && has(kOfDicts));
}

int64_t need_integer(Runtime& rt, const Value& v, std::string_view what) {
  if (v.is(Kind::kUndefined)) fail_undefined(rt, v);
  if (!v.is(Kind::kInteger) && !v.is(Kind::kBool)) {
    fail(fmt::format("{} must be an integer, not {}", what, type_name(rt, v)));
  }
  return as_integer(v);
}

const Text& need_string(Runtime& rt, const Value& v, std::string_view what) {
  if (v.is(Kind::kUndefined)) fail_undefined(rt, v);
  if (!v.is(Kind::kString)) fail(fmt::format("{} must be a string, not {}", what, type_name(rt, v)));
  return rt.heap.text(v);
}

}  // namespace plow::jinja
