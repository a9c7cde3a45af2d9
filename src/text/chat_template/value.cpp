#include "text/chat_template/value.h"

namespace plow::jinja {

int64_t Range::size() const {
  const auto distance = step > 0 ? static_cast<__int128>(stop) - start : static_cast<__int128>(start) - stop;
  const auto stride = step > 0 ? static_cast<__int128>(step) : -static_cast<__int128>(step);
  return distance <= 0 ? 0 : static_cast<int64_t>((distance + stride - 1) / stride);
}

template <class T>
Value Heap::make(std::deque<T>& all, T object, Kind kind) {
  budget_.memory(sizeof(T));
  all.push_back(std::move(object));
  Value v;
  v.kind = kind;
  v.id = static_cast<uint32_t>(all.size() - 1);
  return v;
}

Value Heap::make_string(Text text) { return make(texts_, std::move(text), Kind::kString); }

Value Heap::make_string(std::string_view bytes, bool data) {
  TextBuilder builder(budget_);
  builder.add(bytes, data);
  return make_string(builder.finish());
}

Value Heap::make_list(std::vector<Value> items, Kind kind) {
  budget_.touch(items.size());
  budget_.memory(items.size() * sizeof(Value));
  Sequence sequence;
  sequence.items = std::move(items);
  return make(sequences_, std::move(sequence), kind);
}

Value Heap::make_pair(Value first, Value second) { return make_list({first, second}, Kind::kTuple); }

Value Heap::make_dict(Dict dict, Kind kind) {
  budget_.touch(dict.entries.size());
  budget_.memory(dict.entries.size() * sizeof(dict.entries[0]));
  return make(dicts_, std::move(dict), kind);
}

Value Heap::make_range(Range range) { return make(ranges_, range, Kind::kRange); }
Value Heap::make_undefined(UndefinedInfo info) { return make(undefineds_, info, Kind::kUndefined); }
Value Heap::make_loop(Loop loop) { return make(loops_, std::move(loop), Kind::kLoop); }
Value Heap::make_macro(Closure closure) { return make(macros_, closure, Kind::kMacro); }
Value Heap::make_method(Value self, const Builtin& builtin) {
  return make(methods_, Method{self, &builtin}, Kind::kMethod);
}
Value Heap::make_cycler(std::vector<Value> items) {
  return make(cyclers_, Cycler{std::move(items), 0}, Kind::kCycler);
}
Value Heap::make_joiner(Value separator) { return make(joiners_, Joiner{separator, false}, Kind::kJoiner); }

}  // namespace plow::jinja
