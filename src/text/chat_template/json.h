// JSON into values, and values into JSON as Python's json.dumps writes it.
#pragma once

#include "text/chat_template/runtime.h"

#include <boost/json/value.hpp>

#include <optional>
#include <string>

namespace plow::jinja {

// Everything in it becomes data, or, with `data` false, template text. Throws Failure for strings that are
// not UTF-8.
Value from_json(Runtime& rt, const boost::json::value& json, bool data);

struct JsonStyle {
  bool ensure_ascii = false;
  bool sort_keys = false;
  std::optional<std::string> indent;  // of one level; without it all is on one line
  std::string item_separator = ", ";
  std::string key_separator = ": ";
};

// Throws Failure for what json.dumps refuses.
Value to_json(Runtime& rt, const Value& v, const JsonStyle& style);

}  // namespace plow::jinja
