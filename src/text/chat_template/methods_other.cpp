// Methods of everything but str.
#include "text/chat_template/builtins.h"
#include "text/chat_template/runtime.h"

#include <cmath>

namespace plow::jinja {
namespace {

Value index(Runtime& rt, const Value& self, Arguments& args) {
  const std::vector<Value> items = iterate(rt, self);
  const auto size = static_cast<int64_t>(items.size());
  const auto bound = [&](size_t i, int64_t absent) {
    const int64_t n = args.has(i) ? need_integer(rt, args[i], "an index") : absent;
    return n < 0 ? std::max<int64_t>(n + size, 0) : n;
  };
  const int64_t stop = std::min(bound(2, size), size);
  for (int64_t i = bound(1, 0); i < stop; ++i) {
    if (equals(rt, items[static_cast<size_t>(i)], args[0])) return integer(i);
  }
  fail("the value is not in the list");
}

Value count(Runtime& rt, const Value& self, Arguments& args) {
  int64_t n = 0;
  for (const Value& item : iterate(rt, self)) n += equals(rt, item, args[0]);
  return integer(n);
}

Value copy_list(Runtime& rt, const Value& self, Arguments&) {
  Value copy = rt.heap.make_list(iterate(rt, self), self.kind);
  copy.data = self.data;
  return copy;
}

Value get(Runtime& rt, const Value& self, Arguments& args) {
  if (!is_hashable(rt, args[0])) fail(std::string("unhashable type: '").append(type_name(rt, args[0])) + "'");
  if (const Value* value = find_in_dict(rt, self, args[0])) return *value;
  return args.has(1) ? args[1] : none();
}

Value view(Runtime& rt, const char* name, std::vector<Value> items) {
  const Value v = rt.heap.make_list(std::move(items), Kind::kView);
  rt.heap.sequence(v).view = name;
  return v;
}

Value keys(Runtime& rt, const Value& self, Arguments&) { return view(rt, "dict_keys", iterate(rt, self)); }

Value values(Runtime& rt, const Value& self, Arguments&) {
  std::vector<Value> items;
  for (const auto& [key, value] : rt.heap.dict(self).entries) items.push_back(value);
  return view(rt, "dict_values", std::move(items));
}

Value items(Runtime& rt, const Value& self, Arguments&) {
  std::vector<Value> pairs;
  for (const auto& [key, value] : rt.heap.dict(self).entries) pairs.push_back(rt.heap.make_pair(key, value));
  return view(rt, "dict_items", std::move(pairs));
}

Value copy_dict(Runtime&, const Value& self, Arguments&) { return self; }  // neither can change

Value loop_cycle(Runtime& rt, const Value& self, Arguments& args) {
  if (args.positional.empty() || !args.named.empty()) fail("no items for cycling given");
  return args[rt.heap.loop(self).index0 % args.positional.size()];
}

Value loop_changed(Runtime& rt, const Value& self, Arguments& args) {
  Loop& loop = rt.heap.loop(self);
  bool same = loop.has_changed && loop.last_changed.size() == args.positional.size();
  for (size_t i = 0; same && i < args.positional.size(); ++i)
    same = equals(rt, loop.last_changed[i], args[i]);
  loop.has_changed = true;
  loop.last_changed = args.positional;
  return boolean(!same);
}

Value cycler_next(Runtime& rt, const Value& self, Arguments&) {
  Cycler& cycler = rt.heap.cycler(self);
  const Value current = cycler.items[cycler.at];
  cycler.at = (cycler.at + 1) % cycler.items.size();
  return current;
}

Value cycler_reset(Runtime& rt, const Value& self, Arguments&) {
  rt.heap.cycler(self).at = 0;
  return none();
}

Value float_is_integer(Runtime&, const Value& self, Arguments&) {
  return boolean(std::isfinite(self.real) && std::floor(self.real) == self.real);
}

constexpr Builtin kSequenceMethods[] = {
    {"copy", "/", copy_list},
    {"count", "/value", count},
    {"index", "/value start? stop?", index},
};
constexpr Builtin kDictMethods[] = {
    {"copy", "/", copy_dict}, {"get", "/key default?", get}, {"items", "/", items},
    {"keys", "/", keys},      {"values", "/", values},
};
constexpr Builtin kLoopMethods[] = {
    {"changed", "*", loop_changed},
    {"cycle", "*", loop_cycle},
};
constexpr Builtin kCyclerMethods[] = {
    {"next", "/", cycler_next},
    {"reset", "/", cycler_reset},
};
constexpr Builtin kFloatMethods[] = {
    {"is_integer", "/", float_is_integer},
};

}  // namespace

std::span<const Builtin> sequence_methods() { return kSequenceMethods; }
std::span<const Builtin> dict_methods() { return kDictMethods; }
std::span<const Builtin> loop_methods() { return kLoopMethods; }
std::span<const Builtin> cycler_methods() { return kCyclerMethods; }
std::span<const Builtin> float_methods() { return kFloatMethods; }

}  // namespace plow::jinja
