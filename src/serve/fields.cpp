#include "serve/fields.h"

#include <boost/json.hpp>
#include <fmt/format.h>

#include <algorithm>
#include <cmath>

namespace plow {
namespace {

namespace json = boost::json;

// What is quoted of a value in a message: enough to recognise it, however large it is.
constexpr size_t kMostQuoted = 60;

std::string quoted(const json::value& value) {
  std::string text = json::serialize(value);
  if (text.size() <= kMostQuoted) return text;
  size_t end = kMostQuoted;
  while (end > 0 && (static_cast<unsigned char>(text[end]) & 0xc0) == 0x80) --end;  // not inside a character
  return text.substr(0, end) + "...";
}

const char* type_text(FieldType type) {
  switch (type) {
    case FieldType::kBoolean:
      return "true or false";
    case FieldType::kInteger:
      return "a whole number";
    case FieldType::kNumber:
      return "a number";
    case FieldType::kString:
      return "a string";
    case FieldType::kObject:
      return "an object";
    case FieldType::kArray:
      return "an array";
    case FieldType::kStrings:
      return "a string or an array of strings";
    case FieldType::kIds:
      return "an array of token ids";
    case FieldType::kTextOrArray:
      return "a string or an array";
    case FieldType::kPrompt:
      return "a string, an array of strings, or an array (of arrays) of token ids";
    case FieldType::kAny:
      break;
  }
  return "anything";
}

// The number, when it is one and a whole one where that is asked for.
std::optional<double> as_number(const json::value& value, bool whole) {
  double number = 0;
  if (value.is_int64()) {
    number = static_cast<double>(value.get_int64());
  } else if (value.is_uint64()) {
    number = static_cast<double>(value.get_uint64());
  } else if (value.is_double()) {
    number = value.get_double();
  } else {
    return std::nullopt;
  }
  if (!std::isfinite(number) || (whole && number != std::floor(number))) return std::nullopt;
  return number;
}

bool is_array_of(const json::value& value, json::kind kind) {
  return value.is_array() &&
         std::ranges::all_of(value.get_array(), [&](const json::value& item) { return item.kind() == kind; });
}

bool has_type(const json::value& value, FieldType type) {
  switch (type) {
    case FieldType::kBoolean:
      return value.is_bool();
    case FieldType::kInteger:
      return as_number(value, true).has_value();
    case FieldType::kNumber:
      return as_number(value, false).has_value();
    case FieldType::kString:
      return value.is_string();
    case FieldType::kObject:
      return value.is_object();
    case FieldType::kArray:
      return value.is_array();
    case FieldType::kStrings:
      return value.is_string() || is_array_of(value, json::kind::string);
    case FieldType::kIds:
      return value.is_array();
    case FieldType::kTextOrArray:
    case FieldType::kPrompt:
      return value.is_string() || value.is_array();
    case FieldType::kAny:
      break;
  }
  return true;
}

bool says_nothing(const json::value& value) {
  switch (value.kind()) {
    case json::kind::null:
      return true;
    case json::kind::bool_:
      return !value.get_bool();
    case json::kind::int64:
      return value.get_int64() == 0;
    case json::kind::uint64:
      return value.get_uint64() == 0;
    case json::kind::double_:
      return value.get_double() == 0;
    case json::kind::string:
      return value.get_string().empty();
    case json::kind::array:
      return value.get_array().empty();
    case json::kind::object:
      return value.get_object().empty();
  }
  return false;
}

std::optional<ApiError> check_refused(const Field& field, const json::value& value) {
  if (says_nothing(value) || (field.harmless != nullptr && value == json::parse(field.harmless))) return {};
  return unsupported_field(field.name, fmt::format("{} is not supported by this server ({}). Leave it out.",
                                                   field.name, field.meaning));
}

std::optional<ApiError> check_field(const Field& field, const json::value& value) {
  if (field.support == Support::kIgnored) return {};
  if (field.support == Support::kRefused) return check_refused(field, value);
  if (!has_type(value, field.type)) {
    return invalid_field(
        field.name, fmt::format("{} must be {}, not {}.", field.name, type_text(field.type), quoted(value)));
  }
  if (field.least == field.most) return {};
  const std::optional<double> number = as_number(value, false);
  if (number && (*number < field.least || *number > field.most)) {
    return invalid_field(field.name, fmt::format("{} must be from {} to {}, not {}.", field.name, field.least,
                                                 field.most, quoted(value)));
  }
  return {};
}

json::value type_schema(FieldType type) {
  const json::value string{{"type", "string"}};
  const json::value strings{{"type", "array"}, {"items", string}};
  const json::value ids{{"type", "array"}, {"items", {{"type", "integer"}, {"minimum", 0}}}};
  switch (type) {
    case FieldType::kBoolean:
      return {{"type", "boolean"}};
    case FieldType::kInteger:
      return {{"type", "integer"}};
    case FieldType::kNumber:
      return {{"type", "number"}};
    case FieldType::kString:
      return string;
    case FieldType::kObject:
      return {{"type", "object"}};
    case FieldType::kArray:
      return {{"type", "array"}};
    case FieldType::kStrings:
      return {{"anyOf", json::array{string, strings}}};
    case FieldType::kIds:
      return ids;
    case FieldType::kTextOrArray:
      return {{"anyOf", json::array{string, {{"type", "array"}}}}};
    case FieldType::kPrompt:
      return {{"anyOf", json::array{string, strings, ids, {{"type", "array"}, {"items", ids}}}}};
    case FieldType::kAny:
      break;
  }
  return json::object();
}

// Beside the type, null is allowed wherever absence is.
json::value nullable(json::value schema) {
  return {{"anyOf", json::array{std::move(schema), {{"type", "null"}}}}};
}

std::optional<ApiError> check_one_of(const FieldTable& table, const json::object& body) {
  const char* found = nullptr;
  for (const char* name : table.one_of) {
    if (FieldReader(body).find(name) == nullptr) continue;
    if (found != nullptr) return invalid_field(name, fmt::format("Give {} or {}, not both.", found, name));
    found = name;
  }
  if (found != nullptr || table.one_of.empty()) return {};
  return invalid_field(table.one_of.front(), fmt::format("Give {}.", fmt::join(table.one_of, " or ")));
}

// What must be there of fields of which one must be: one that is not null.
json::array one_of_schema(const FieldTable& table) {
  json::array choices;
  for (const char* name : table.one_of) {
    const auto field =
        std::ranges::find_if(table.fields, [&](const Field& f) { return std::string_view(f.name) == name; });
    choices.push_back({{"required", {name}}, {"properties", {{name, type_schema(field->type)}}}});
  }
  return choices;
}

}  // namespace

std::optional<ApiError> check_fields(const FieldTable& table, const json::object& body,
                                     std::vector<std::string>& unknown) {
  for (const Field& field : table.fields) {
    const json::value* value = body.if_contains(field.name);
    if (value == nullptr || value->is_null()) {
      if (field.required) {
        ApiError error =
            invalid_field(field.name, fmt::format("{} is missing: {}.", field.name, field.meaning));
        error.code = "missing_required_parameter";
        return error;
      }
      continue;
    }
    if (auto error = check_field(field, *value)) return error;
  }
  for (const auto& member : body) {
    const auto is_it = [&](const Field& field) { return member.key() == field.name; };
    if (std::ranges::none_of(table.fields, is_it)) unknown.emplace_back(member.key());
  }
  return check_one_of(table, body);
}

json::object field_schema(const FieldTable& table) {
  json::object properties;
  json::array required;
  for (const Field& field : table.fields) {
    if (field.support == Support::kRefused) continue;
    json::value schema = field.support == Support::kIgnored ? json::object() : type_schema(field.type);
    if (field.least != field.most) {
      schema.as_object()["minimum"] = field.least;
      schema.as_object()["maximum"] = field.most;
    }
    // What must be there has something in it.
    if (field.required && field.type == FieldType::kArray) schema.as_object()["minItems"] = 1;
    if (!field.required && field.support == Support::kSupported) schema = nullable(std::move(schema));
    schema.as_object()["description"] = field.support == Support::kIgnored
                                            ? fmt::format("Accepted and not used: {}.", field.meaning)
                                            : fmt::format("{}.", field.meaning);
    properties[field.name] = std::move(schema);
    if (field.required) required.emplace_back(field.name);
  }
  json::object schema{{"type", "object"}, {"properties", properties}, {"required", required}};
  if (!table.one_of.empty()) schema["oneOf"] = one_of_schema(table);
  return schema;
}

const json::value* FieldReader::find(std::string_view name) const {
  const json::value* value = body_.if_contains(name);
  return value == nullptr || value->is_null() ? nullptr : value;
}

std::optional<double> FieldReader::number(std::string_view name) const {
  const json::value* value = find(name);
  return value == nullptr ? std::nullopt : as_number(*value, false);
}

std::optional<uint32_t> FieldReader::count(std::string_view name) const {
  const auto value = number(name);
  return value ? std::optional(static_cast<uint32_t>(*value)) : std::nullopt;
}

std::optional<bool> FieldReader::boolean(std::string_view name) const {
  const json::value* value = find(name);
  return value == nullptr ? std::nullopt : std::optional(value->get_bool());
}

std::vector<std::string> FieldReader::strings(std::string_view name) const {
  const json::value* value = find(name);
  if (value == nullptr) return {};
  if (value->is_string()) return {std::string(value->get_string())};
  std::vector<std::string> strings;
  for (const json::value& item : value->get_array()) strings.emplace_back(item.get_string());
  return strings;
}

std::optional<ApiError> FieldReader::ids(std::string_view name, uint32_t vocab,
                                         std::vector<uint32_t>& out) const {
  const json::value* value = find(name);
  return value == nullptr ? std::nullopt : read_ids(*value, name, vocab, out);
}

std::string_view text_at(const json::object& object, std::string_view key) {
  const json::value* value = object.if_contains(key);
  return value != nullptr && value->is_string() ? std::string_view(value->get_string()) : std::string_view();
}

std::optional<ApiError> read_ids(const json::value& array, std::string_view name, uint32_t vocab,
                                 std::vector<uint32_t>& out) {
  for (const json::value& item : array.get_array()) {
    const std::optional<double> id = as_number(item, true);
    if (!id || *id < 0 || *id >= vocab) {
      return invalid_field(std::string(name), fmt::format("{} must hold token ids from 0 to {}, not {}.",
                                                          name, vocab - 1, quoted(item)));
    }
    out.push_back(static_cast<uint32_t>(*id));
  }
  return {};
}

}  // namespace plow
