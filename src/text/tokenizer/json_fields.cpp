#include "text/tokenizer/json_fields.h"

#include <fmt/format.h>

namespace plow {

Error JsonElement::error(std::string_view what) const {
  return input_error(path.empty() ? std::string(what) : fmt::format("{}: {}", path, what));
}

Result<std::string_view> JsonElement::string() const {
  std::string_view value;
  if (element.get(value) != simdjson::SUCCESS) return error("must be a string");
  return value;
}

Result<bool> JsonElement::boolean() const {
  bool value = false;
  if (element.get(value) != simdjson::SUCCESS) return error("must be true or false");
  return value;
}

Result<uint64_t> JsonElement::number() const {
  uint64_t value = 0;
  if (element.get(value) != simdjson::SUCCESS) return error("must be a whole number that is not negative");
  return value;
}

Result<double> JsonElement::real() const {
  double value = 0;
  if (element.get(value) != simdjson::SUCCESS) return error("must be a number");
  return value;
}

Result<simdjson::dom::array> JsonElement::array() const {
  simdjson::dom::array value;
  if (element.get(value) != simdjson::SUCCESS) return error("must be an array");
  return value;
}

Result<simdjson::dom::object> JsonElement::object() const {
  simdjson::dom::object value;
  if (element.get(value) != simdjson::SUCCESS) return error("must be an object");
  return value;
}

std::optional<JsonElement> JsonElement::find(std::string_view key) const {
  simdjson::dom::object fields;
  simdjson::dom::element value;
  if (element.get(fields) != simdjson::SUCCESS) return std::nullopt;
  if (fields.at_key(key).get(value) != simdjson::SUCCESS || value.is_null()) return std::nullopt;
  return JsonElement{value, path.empty() ? std::string(key) : fmt::format("{}.{}", path, key)};
}

Result<JsonElement> JsonElement::at(std::string_view key) const {
  if (!is_object()) return error("must be an object");
  if (auto value = find(key)) return std::move(*value);
  return error(fmt::format("the field '{}' is missing", key));
}

Result<bool> JsonElement::boolean_or(std::string_view key, bool fallback) const {
  const auto value = find(key);
  if (!value) return fallback;
  return value->boolean();
}

Result<std::string> JsonElement::string_or(std::string_view key, std::string_view fallback) const {
  const auto value = find(key);
  if (!value) return std::string(fallback);
  PLOW_TRY(const std::string_view text, value->string());
  return std::string(text);
}

JsonElement JsonElement::item(simdjson::dom::element value, size_t index) const {
  return {value, fmt::format("{}[{}]", path, index)};
}

}  // namespace plow
