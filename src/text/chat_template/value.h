// The values of a template: small tagged words; what does not fit lies in the Heap of one rendering, indexed
// by id, and is freed with it. Lists, tuples and dicts never change once made, as in jinja2's immutable
// sandbox; namespaces do.
#pragma once

#include "text/chat_template/program.h"
#include "text/chat_template/text.h"

#include <cstdint>
#include <deque>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace plow::jinja {

struct Builtin;

enum class Kind : uint8_t {
  kAbsent,  // an argument that was not given; never seen by a template
  kUndefined,
  kNone,
  kBool,
  kInteger,
  kBigInteger,  // above 2^63-1: its digits; no arithmetic
  kFloat,
  kString,
  kList,
  kTuple,
  kDict,
  kView,  // of a dict: keys(), values(), items()
  kRange,
  kIterator,  // Python's generators: can be walked once
  kNamespace,
  kLoop,
  kMacro,
  kMethod,    // bound to its object
  kFunction,  // a global
  kCycler,
  kJoiner,
};

struct Value {
  Kind kind = Kind::kAbsent;
  bool data = false;  // from the conversation (strings: see Text)
  union {
    bool boolean;
    int64_t integer = 0;
    double real;
    uint32_t id;  // into the Heap's vector for this kind
  };

  bool is(Kind k) const { return kind == k; }
};

struct Sequence {  // of a list, tuple, view or iterator
  std::vector<Value> items;
  bool is_group = false;       // a tuple made by groupby: also has .grouper and .list
  const char* view = nullptr;  // "dict_keys" and so on
  size_t next = 0;             // of an iterator
};

struct Dict {
  std::vector<std::pair<Value, Value>> entries;  // in the order of insertion
};

struct Range {
  int64_t start = 0;
  int64_t stop = 0;
  int64_t step = 1;
  int64_t size() const;
  // REQUIRES 0 <= i < size(). Unsigned, because the product alone may be beyond 64 bits.
  int64_t at(int64_t i) const {
    return static_cast<int64_t>(static_cast<uint64_t>(start) +
                                static_cast<uint64_t>(i) * static_cast<uint64_t>(step));
  }
};

struct UndefinedInfo {
  Value owner;                 // absent for a variable
  Value name;                  // string or index
  const char* hint = nullptr;  // the whole reason, when there is a better one
  bool unsafe = false;         // a method that would change its object
};

struct Loop {
  std::vector<Value> items;
  size_t index0 = 0;
  std::vector<Value> last_changed;
  bool has_changed = false;
};

struct Closure {  // a macro and the scope that it was defined in; for a call block the caller's scope
  MacroId macro;
  uint32_t scope = 0;
};

struct Method {
  Value self;
  const Builtin* builtin = nullptr;
};

struct Cycler {
  std::vector<Value> items;
  size_t at = 0;
};

struct Joiner {
  Value separator;
  bool used = false;
};

// deques: a reference into one stays good while more is made.
class Heap {
 public:
  explicit Heap(Budget& budget) : budget_(budget) {}

  Value make_string(Text text);
  Value make_string(std::string_view bytes, bool data = false);
  Value make_list(std::vector<Value> items, Kind kind = Kind::kList);
  Value make_pair(Value first, Value second);
  Value make_dict(Dict dict, Kind kind = Kind::kDict);
  Value make_range(Range range);
  Value make_undefined(UndefinedInfo info);
  Value make_loop(Loop loop);
  Value make_macro(Closure closure);
  Value make_method(Value self, const Builtin& builtin);
  Value make_cycler(std::vector<Value> items);
  Value make_joiner(Value separator);

  // REQUIRES a value of the kind.
  const Text& text(Value v) const { return texts_[v.id]; }
  std::string_view bytes(Value v) const { return texts_[v.id].bytes; }
  Sequence& sequence(Value v) { return sequences_[v.id]; }
  Dict& dict(Value v) { return dicts_[v.id]; }
  const Range& range(Value v) const { return ranges_[v.id]; }
  const UndefinedInfo& undefined(Value v) const { return undefineds_[v.id]; }
  Loop& loop(Value v) { return loops_[v.id]; }
  const Closure& macro(Value v) const { return macros_[v.id]; }
  const Method& method(Value v) const { return methods_[v.id]; }
  Cycler& cycler(Value v) { return cyclers_[v.id]; }
  Joiner& joiner(Value v) { return joiners_[v.id]; }

 private:
  template <class T>
  Value make(std::deque<T>& all, T object, Kind kind);

  Budget& budget_;
  std::deque<Text> texts_;  // of strings and big integers
  std::deque<Sequence> sequences_;
  std::deque<Dict> dicts_;
  std::deque<Range> ranges_;
  std::deque<UndefinedInfo> undefineds_;
  std::deque<Loop> loops_;
  std::deque<Closure> macros_;
  std::deque<Method> methods_;
  std::deque<Cycler> cyclers_;
  std::deque<Joiner> joiners_;
};

inline Value none() {
  Value v;
  v.kind = Kind::kNone;
  return v;
}
inline Value boolean(bool b) {
  Value v;
  v.kind = Kind::kBool;
  v.boolean = b;
  return v;
}
inline Value integer(int64_t i, bool data = false) {
  Value v;
  v.kind = Kind::kInteger;
  v.data = data;
  v.integer = i;
  return v;
}
inline Value real(double d, bool data = false) {
  Value v;
  v.kind = Kind::kFloat;
  v.data = data;
  v.real = d;
  return v;
}

}  // namespace plow::jinja
