// The functions that every template sees.
#include "text/chat_template/builtins.h"
#include "text/chat_template/runtime.h"
#include "text/chat_template/strftime.h"

#include <fmt/format.h>

namespace plow::jinja {
namespace {

Value range(Runtime& rt, const Value&, Arguments& args) {
  constexpr int64_t kMaxRange = 100'000;  // MAX_RANGE of jinja2.sandbox
  if (args.positional.empty() || args.positional.size() > 3 || !args.named.empty()) {
    fail("range takes one to three integers");
  }
  Range range;
  bool data = false;
  for (const Value& v : args.positional) {
    need_integer(rt, v, "an argument of range");
    data |= v.data;
  }
  range.stop = as_integer(args[args.positional.size() == 1 ? 0 : 1]);
  if (args.positional.size() > 1) range.start = as_integer(args[0]);
  if (args.positional.size() > 2) range.step = as_integer(args[2]);
  if (range.step == 0) fail("the step of a range is zero");
  const bool too_big = range.step > 0 ? range.stop > range.start : range.stop < range.start;
  if (too_big && (range.size() > kMaxRange || range.size() < 0)) {
    fail(fmt::format("a range is too big: more than {} items", kMaxRange));
  }
  Value v = rt.heap.make_range(range);
  v.data = data;
  return v;
}

// What dict(...) makes: of a mapping or of pairs, with the named arguments after.
Dict make_dict(Runtime& rt, const Arguments& args) {
  Dict dict;
  if (args.positional.size() > 1) fail("dict expected at most 1 argument");
  if (!args.positional.empty() && (args[0].is(Kind::kDict))) {
    dict = rt.heap.dict(args[0]);
  } else if (!args.positional.empty()) {
    for (const Value& item : iterate(rt, args[0])) {
      const std::vector<Value> pair = iterate(rt, item);
      if (pair.size() != 2) fail("a dict is made of pairs");
      put_in_dict(rt, dict, pair[0], pair[1]);
    }
  }
  for (const auto& [name, value] : args.named) put_in_dict(rt, dict, rt.heap.make_string(name), value);
  return dict;
}

Value dict(Runtime& rt, const Value&, Arguments& args) { return rt.heap.make_dict(make_dict(rt, args)); }

Value make_namespace(Runtime& rt, const Value&, Arguments& args) {
  Dict attributes = make_dict(rt, args);
  for (const auto& [name, value] : attributes.entries) {
    if (name.is(Kind::kString)) check_namespace_attribute(rt.heap.bytes(name));
  }
  return rt.heap.make_dict(std::move(attributes), Kind::kNamespace);
}

Value cycler(Runtime& rt, const Value&, Arguments& args) {
  if (args.positional.empty() || !args.named.empty()) fail("at least one item has to be provided");
  return rt.heap.make_cycler(args.positional);
}

Value joiner(Runtime& rt, const Value&, Arguments& args) {
  return rt.heap.make_joiner(args.has(0) ? args[0] : rt.heap.make_string(", "));
}

Value raise_exception(Runtime& rt, const Value&, Arguments& args) {
  const Value message = to_string(rt, args[0]);
  fail(fmt::format("the template refuses this conversation: {}", rt.heap.bytes(message)));
}

Value strftime_now(Runtime& rt, const Value&, Arguments& args) {
  if (!rt.now) fail("the template asks for the time, and the caller gave none");
  const Text& format = need_string(rt, args[0], "the format of strftime_now");
  return rt.heap.make_string(format_time(*rt.now, format.bytes), format.has_data());
}

constexpr Builtin kGlobals[] = {
    {"cycler", "*", cycler},
    {"dict", "*", dict},
    {"joiner", "sep?", joiner},
    {"namespace", "*", make_namespace},
    {"raise_exception", "message", raise_exception},
    {"range", "*", range},
    {"strftime_now", "format", strftime_now},
};

}  // namespace

std::span<const Builtin> globals() { return kGlobals; }

}  // namespace plow::jinja
