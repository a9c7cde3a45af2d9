// map, select, reject and their forms for attributes: filters that apply other filters and tests.
#include "text/chat_template/builtins.h"
#include "text/chat_template/runtime.h"
#include "text/chat_template/sequence_operations.h"

#include <fmt/format.h>

namespace plow::jinja {
namespace {

Value iterator(Runtime& rt, std::vector<Value> items) {
  return rt.heap.make_list(std::move(items), Kind::kIterator);
}

// map(attribute="a", default=x)
Value map_attribute(Runtime& rt, const Value& self, const Arguments& args) {
  Value attribute;
  Value fallback;
  for (const auto& [name, value] : args.named) {
    if (name == "attribute") {
      attribute = value;
    } else if (name == "default") {
      fallback = value;
    } else {
      fail(fmt::format("Unexpected keyword argument '{}'", name));
    }
  }
  if (attribute.is(Kind::kAbsent)) fail("map requires a filter argument");
  std::vector<Value> results;
  for (const Value& item : iterate(rt, self)) {
    results.push_back(attribute.is(Kind::kNone) ? item : attribute_path(rt, item, attribute, fallback));
  }
  return iterator(rt, std::move(results));
}

Value map(Runtime& rt, const Value& self, Arguments& args) {
  if (!truthy(rt, self)) return iterator(rt, {});
  if (args.positional.empty()) return map_attribute(rt, self, args);
  const std::string name = need_string(rt, args[0], "the name of a filter").bytes;
  const Builtin* filter = find_filter(name);
  if (!filter) fail(fmt::format("there is no filter '{}'", name));
  Arguments rest{{args.positional.begin() + 1, args.positional.end()}, args.named};
  std::vector<Value> results;
  for (const Value& item : iterate(rt, self)) results.push_back(call_builtin(rt, *filter, item, rest));
  return iterator(rt, std::move(results));
}

// The items that pass (or, with `wanted` false, do not pass) the test named by the arguments; without one,
// that are true.
Value choose(Runtime& rt, const Value& self, const Arguments& args, bool by_attribute, bool wanted) {
  if (!truthy(rt, self)) return iterator(rt, {});
  const size_t name_at = by_attribute ? 1 : 0;
  if (by_attribute && args.positional.empty()) fail("Missing parameter for attribute name");
  const Builtin* test = nullptr;
  Arguments rest;
  if (args.positional.size() > name_at) {
    const std::string& name = need_string(rt, args[name_at], "the name of a test").bytes;
    test = find_test(name);
    if (!test) fail(fmt::format("there is no test '{}'", name));
    rest.positional.assign(args.positional.begin() + static_cast<int64_t>(name_at) + 1,
                           args.positional.end());
    rest.named = args.named;
  }
  std::vector<Value> chosen;
  for (const Value& item : iterate(rt, self)) {
    const Value subject = by_attribute ? attribute_path(rt, item, args[0], {}) : item;
    const bool passes = truthy(rt, test ? call_builtin(rt, *test, subject, rest) : subject);
    if (passes == wanted) chosen.push_back(item);
  }
  return iterator(rt, std::move(chosen));
}

Value select(Runtime& rt, const Value& self, Arguments& args) { return choose(rt, self, args, false, true); }
Value reject(Runtime& rt, const Value& self, Arguments& args) { return choose(rt, self, args, false, false); }
Value selectattr(Runtime& rt, const Value& self, Arguments& args) {
  return choose(rt, self, args, true, true);
}
Value rejectattr(Runtime& rt, const Value& self, Arguments& args) {
  return choose(rt, self, args, true, false);
}

constexpr Builtin kFilters[] = {
    {"map", "*", map},       {"reject", "*", reject},         {"rejectattr", "*", rejectattr},
    {"select", "*", select}, {"selectattr", "*", selectattr},
};

}  // namespace

std::span<const Builtin> selection_filters() { return kFilters; }

}  // namespace plow::jinja
