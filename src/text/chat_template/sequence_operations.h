// What the filters on sequences share.
#pragma once

#include "text/chat_template/runtime.h"

#include <vector>

namespace plow::jinja {

// item.a.0.b for the attribute "a.0.b" (or an index). Where a step finds nothing and `fallback` is given,
// that goes on.
Value attribute_path(Runtime& rt, Value item, const Value& attribute, const Value& fallback);

// What sorting and comparing filters look at: the attribute (None or absent: the item), lower case unless
// `case_sensitive`.
Value sort_key(Runtime& rt, const Value& item, const Value& attribute, bool case_sensitive);

// The permutation that sorts the keys, stable also when reversed.
std::vector<size_t> sorted_order(Runtime& rt, const std::vector<Value>& keys, bool reverse);

}  // namespace plow::jinja
