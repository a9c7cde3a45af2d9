// Filters on lists, dicts and whatever else can be walked.
#include "text/chat_template/builtins.h"
#include "text/chat_template/runtime.h"
#include "text/chat_template/sequence_operations.h"
#include "text/chat_template/string_operations.h"
#include "text/chat_template/unicode.h"

#include <fmt/format.h>

#include <algorithm>
#include <numeric>

namespace plow::jinja {

Value attribute_path(Runtime& rt, Value item, const Value& attribute, const Value& fallback) {
  const auto step = [&](const Value& key) {
    item = get_item(rt, item, key);
    if (item.is(Kind::kUndefined) && !fallback.is(Kind::kAbsent) && !fallback.is(Kind::kNone))
      item = fallback;
  };
  if (!attribute.is(Kind::kString)) {
    step(attribute);
    return item;
  }
  std::string_view path = rt.heap.bytes(attribute);
  while (true) {
    const size_t end = std::min(path.find('.'), path.size());
    const std::string_view part = path.substr(0, end);
    constexpr size_t kMaxDigits = 18;  // of an index
    const bool is_index = !part.empty() && part.size() <= kMaxDigits &&
                          std::all_of(part.begin(), part.end(), [](char c) { return c >= '0' && c <= '9'; });
    step(is_index ? integer(std::stoll(std::string(part))) : rt.heap.make_string(part));
    if (end == path.size()) return item;
    path.remove_prefix(end + 1);
  }
}

Value sort_key(Runtime& rt, const Value& item, const Value& attribute, bool case_sensitive) {
  const bool whole = attribute.is(Kind::kAbsent) || attribute.is(Kind::kNone);
  const Value key = whole ? item : attribute_path(rt, item, attribute, {});
  if (case_sensitive || !key.is(Kind::kString)) return key;
  return map_case(rt, rt.heap.text(key), Case::kLower);
}

std::vector<size_t> sorted_order(Runtime& rt, const std::vector<Value>& keys, bool reverse) {
  std::vector<size_t> order(keys.size());
  std::iota(order.begin(), order.end(), size_t{0});
  std::stable_sort(order.begin(), order.end(), [&](size_t a, size_t b) {
    return reverse ? ordered(rt, Operator::kLess, keys[b], keys[a])
                   : ordered(rt, Operator::kLess, keys[a], keys[b]);
  });
  return order;
}

namespace {

bool flag(Runtime& rt, const Arguments& args, size_t i) { return args.has(i) && truthy(rt, args[i]); }

Value like(Value v, const Value& model) {
  v.data = model.data;
  return v;
}

Value iterator(Runtime& rt, std::vector<Value> items) {
  return rt.heap.make_list(std::move(items), Kind::kIterator);
}

Value length_filter(Runtime& rt, const Value& self, Arguments&) {
  const bool data = self.is(Kind::kString) ? rt.heap.text(self).has_data() : self.data;
  return integer(need_length(rt, self), data);
}

Value list(Runtime& rt, const Value& self, Arguments&) {
  return like(rt.heap.make_list(iterate(rt, self)), self);
}

Value first(Runtime& rt, const Value& self, Arguments&) {
  if (self.is(Kind::kIterator)) {  // takes one, leaves the rest
    Sequence& sequence = rt.heap.sequence(self);
    if (sequence.next < sequence.items.size()) return sequence.items[sequence.next++];
    return rt.heap.make_undefined({{}, {}, "No first item, sequence was empty."});
  }
  const std::vector<Value> items = iterate(rt, self);
  return items.empty() ? rt.heap.make_undefined({{}, {}, "No first item, sequence was empty."})
                       : items.front();
}

Value last(Runtime& rt, const Value& self, Arguments&) {
  if (self.is(Kind::kIterator)) fail("'generator' object is not reversible");
  const std::vector<Value> items = iterate(rt, self);
  return items.empty() ? rt.heap.make_undefined({{}, {}, "No last item, sequence was empty."}) : items.back();
}

Value reverse(Runtime& rt, const Value& self, Arguments&) {
  if (self.is(Kind::kString)) {
    const Text& text = rt.heap.text(self);
    TextBuilder out(rt.budget);
    for (size_t at = text.bytes.size(); at > 0;) {
      const size_t end = at;
      previous_char(text.bytes, at);
      out.add(text, at, end);
    }
    return rt.heap.make_string(out.finish());
  }
  std::vector<Value> items = iterate(rt, self);
  std::reverse(items.begin(), items.end());
  return self.is(Kind::kIterator) ? rt.heap.make_list(std::move(items)) : iterator(rt, std::move(items));
}

Value join_filter(Runtime& rt, const Value& self, Arguments& args) {
  std::vector<Value> strings = iterate(rt, self);
  for (Value& item : strings) {
    if (args.has(1) && !args[1].is(Kind::kNone)) item = attribute_path(rt, item, args[1], {});
    item = to_string(rt, item);
  }
  const Value separator = args.has(0) ? to_string(rt, args[0]) : rt.heap.make_string("");
  return join(rt, rt.heap.text(separator), strings);
}

Value default_filter(Runtime& rt, const Value& self, Arguments& args) {
  const bool use_default = self.is(Kind::kUndefined) || (flag(rt, args, 1) && !truthy(rt, self));
  if (!use_default) return self;
  return args.has(0) ? args[0] : rt.heap.make_string("");
}

Value items_filter(Runtime& rt, const Value& self, Arguments&) {
  if (self.is(Kind::kUndefined)) return iterator(rt, {});
  if (!self.is(Kind::kDict)) fail("Can only get item pairs from a mapping.");
  std::vector<Value> pairs;
  for (const auto& [key, value] : rt.heap.dict(self).entries) pairs.push_back(rt.heap.make_pair(key, value));
  return iterator(rt, std::move(pairs));
}

Value dictsort(Runtime& rt, const Value& self, Arguments& args) {
  const bool case_sensitive = flag(rt, args, 0);
  const std::string by = args.has(1) ? need_string(rt, args[1], "by").bytes : "key";
  if (by != "key" && by != "value") fail("You can only sort by either \"key\" or \"value\"");
  if (self.is(Kind::kUndefined)) fail_undefined(rt, self);
  if (!self.is(Kind::kDict)) fail(fmt::format("'{}' object has no attribute 'items'", type_name(rt, self)));
  const auto& entries = rt.heap.dict(self).entries;
  std::vector<Value> keys;
  for (const auto& [key, value] : entries)
    keys.push_back(sort_key(rt, by == "key" ? key : value, {}, case_sensitive));
  std::vector<Value> pairs;
  for (const size_t i : sorted_order(rt, keys, flag(rt, args, 2))) {
    pairs.push_back(rt.heap.make_pair(entries[i].first, entries[i].second));
  }
  return rt.heap.make_list(std::move(pairs));
}

// Several attributes, "a,b.c", are compared one after the other.
Value sort(Runtime& rt, const Value& self, Arguments& args) {
  const bool case_sensitive = flag(rt, args, 1);
  std::vector<Value> attributes;
  if (args.has(2) && args[2].is(Kind::kString)) {
    std::string_view names = rt.heap.bytes(args[2]);
    for (size_t end = names.find(','); end != std::string_view::npos; end = names.find(',')) {
      attributes.push_back(rt.heap.make_string(names.substr(0, end)));
      names.remove_prefix(end + 1);
    }
    attributes.push_back(rt.heap.make_string(names));
  } else {
    attributes.push_back(args[2]);
  }
  const std::vector<Value> items = iterate(rt, self);
  std::vector<Value> keys;
  for (const Value& item : items) {
    std::vector<Value> key;
    for (const Value& attribute : attributes) key.push_back(sort_key(rt, item, attribute, case_sensitive));
    keys.push_back(rt.heap.make_list(std::move(key)));
  }
  std::vector<Value> sorted;
  for (const size_t i : sorted_order(rt, keys, flag(rt, args, 0))) sorted.push_back(items[i]);
  return like(rt.heap.make_list(std::move(sorted)), self);
}

Value unique(Runtime& rt, const Value& self, Arguments& args) {
  std::vector<Value> seen;
  std::vector<Value> kept;
  for (const Value& item : iterate(rt, self)) {
    const Value key = sort_key(rt, item, args[1], flag(rt, args, 0));
    if (!is_hashable(rt, key)) fail(fmt::format("unhashable type: '{}'", type_name(rt, key)));
    if (std::any_of(seen.begin(), seen.end(), [&](const Value& v) { return equals(rt, v, key); })) continue;
    seen.push_back(key);
    kept.push_back(item);
  }
  return iterator(rt, std::move(kept));
}

Value extreme(Runtime& rt, const Value& self, const Arguments& args, Operator wins) {
  const std::vector<Value> items = iterate(rt, self);
  if (items.empty()) return rt.heap.make_undefined({{}, {}, "No aggregated item, sequence was empty."});
  Value best = items[0];
  Value best_key = sort_key(rt, best, args[1], flag(rt, args, 0));
  for (size_t i = 1; i < items.size(); ++i) {
    const Value key = sort_key(rt, items[i], args[1], flag(rt, args, 0));
    if (!ordered(rt, wins, key, best_key)) continue;
    best = items[i];
    best_key = key;
  }
  return best;
}

Value min(Runtime& rt, const Value& self, Arguments& args) {
  return extreme(rt, self, args, Operator::kLess);
}
Value max(Runtime& rt, const Value& self, Arguments& args) {
  return extreme(rt, self, args, Operator::kGreater);
}

Value batch(Runtime& rt, const Value& self, Arguments& args) {
  const int64_t size = need_integer(rt, args[0], "linecount");
  std::vector<Value> batches;
  std::vector<Value> current;
  for (const Value& item : iterate(rt, self)) {
    if (static_cast<int64_t>(current.size()) == size) {
      batches.push_back(rt.heap.make_list(std::move(current)));
      current.clear();
    }
    current.push_back(item);
  }
  const int64_t missing = std::max<int64_t>(size, 0) - static_cast<int64_t>(current.size());
  if (!current.empty() && missing > 0 && args.has(1) && !args[1].is(Kind::kNone)) {
    rt.budget.touch(static_cast<uint64_t>(missing));  // which also keeps the product below from overflowing
    rt.budget.memory(static_cast<uint64_t>(missing) * sizeof(Value));
    current.insert(current.end(), static_cast<size_t>(missing), args[1]);
  }
  if (!current.empty()) batches.push_back(rt.heap.make_list(std::move(current)));
  return iterator(rt, std::move(batches));
}

Value slice(Runtime& rt, const Value& self, Arguments& args) {
  const int64_t n_slices = need_integer(rt, args[0], "slices");
  if (n_slices == 0) fail("integer division or modulo by zero");
  const std::vector<Value> items = iterate(rt, self);
  std::vector<Value> slices;
  auto at = items.begin();
  for (int64_t i = 0; i < n_slices; ++i) {
    const auto n_items = static_cast<int64_t>(items.size());
    const bool has_extra = i < n_items % n_slices;
    const auto end = at + n_items / n_slices + (has_extra ? 1 : 0);
    std::vector<Value> part(at, end);
    if (!has_extra && args.has(1) && !args[1].is(Kind::kNone)) part.push_back(args[1]);
    slices.push_back(rt.heap.make_list(std::move(part)));
    at = end;
  }
  return iterator(rt, std::move(slices));
}

Value groupby(Runtime& rt, const Value& self, Arguments& args) {
  const bool case_sensitive = flag(rt, args, 2);
  const std::vector<Value> items = iterate(rt, self);
  std::vector<Value> shown;  // the real keys
  std::vector<Value> keys;
  for (const Value& item : items) {
    shown.push_back(attribute_path(rt, item, args[0], args[1]));
    keys.push_back(sort_key(rt, shown.back(), {}, case_sensitive));
  }
  std::vector<Value> groups;
  const std::vector<size_t> order = sorted_order(rt, keys, false);
  for (size_t i = 0; i < order.size();) {
    const size_t begin = i;
    std::vector<Value> members;
    for (; i < order.size() && equals(rt, keys[order[begin]], keys[order[i]]); ++i)
      members.push_back(items[order[i]]);
    const Value group = rt.heap.make_pair(shown[order[begin]], rt.heap.make_list(std::move(members)));
    rt.heap.sequence(group).is_group = true;
    groups.push_back(group);
  }
  return rt.heap.make_list(std::move(groups));
}

// The attribute alone: unlike a dot, it never finds an item.
Value attr(Runtime& rt, const Value& self, Arguments& args) {
  const std::string_view name = need_string(rt, args[0], "name").bytes;
  if (self.is(Kind::kUndefined)) fail_undefined(rt, self);
  if (self.is(Kind::kDict) && !find_method(Kind::kDict, name)) return rt.heap.make_undefined({self, args[0]});
  return get_attribute(rt, self, name);
}

constexpr Builtin kFilters[] = {
    {"attr", "name", attr},
    {"batch", "linecount fill_with?", batch},
    {"count", "", length_filter},
    {"d", "default_value? boolean?", default_filter},
    {"default", "default_value? boolean?", default_filter},
    {"dictsort", "case_sensitive? by? reverse?", dictsort},
    {"first", "", first},
    {"groupby", "attribute default? case_sensitive?", groupby},
    {"items", "", items_filter},
    {"join", "d? attribute?", join_filter},
    {"last", "", last},
    {"length", "", length_filter},
    {"list", "", list},
    {"max", "case_sensitive? attribute?", max},
    {"min", "case_sensitive? attribute?", min},
    {"reverse", "", reverse},
    {"slice", "slices fill_with?", slice},
    {"sort", "reverse? case_sensitive? attribute?", sort},
    {"unique", "case_sensitive? attribute?", unique},
};

}  // namespace

std::span<const Builtin> sequence_filters() { return kFilters; }

}  // namespace plow::jinja
