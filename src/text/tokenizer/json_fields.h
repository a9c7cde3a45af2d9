// Fields of a JSON object, with errors that name the place ("model.merges[17]"). Only for the compiler.
#pragma once

#include "base/error.h"

#include <simdjson.h>

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace plow {

// A JSON value and its path in the file.
struct JsonElement {
  simdjson::dom::element element;
  std::string path;

  Error error(std::string_view what) const;  // "PATH: what"

  bool is_object() const { return element.is_object(); }
  bool is_array() const { return element.is_array(); }
  bool is_string() const { return element.is_string(); }

  Result<std::string_view> string() const;
  Result<bool> boolean() const;
  Result<uint64_t> number() const;  // a whole number, not negative
  Result<double> real() const;
  Result<simdjson::dom::array> array() const;
  Result<simdjson::dom::object> object() const;

  // The field of that name; none when it is absent or null. REQUIRES is_object() for a result.
  std::optional<JsonElement> find(std::string_view key) const;
  // Errors: the value is no object, or has no such field, or it is null.
  Result<JsonElement> at(std::string_view key) const;

  // Fields with a default. Errors: the field is there and of another type.
  Result<bool> boolean_or(std::string_view key, bool fallback) const;
  Result<std::string> string_or(std::string_view key, std::string_view fallback) const;

  JsonElement item(simdjson::dom::element value, size_t index) const;  // an item of this array
};

}  // namespace plow
