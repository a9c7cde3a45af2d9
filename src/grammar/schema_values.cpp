#include "grammar/schema_values.h"

#include "grammar/json_schema.h"

#include <boost/json.hpp>
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <iterator>
#include <string_view>

namespace plow {
namespace {

namespace json = boost::json;

// Numbers are equal by value: 1 and 1.0.
bool same_value(const json::value& a, const json::value& b) {
  if (!a.is_number() || !b.is_number()) return a == b;
  boost::system::error_code ignored;
  return a.to_number<double>(ignored) == b.to_number<double>(ignored);
}

bool in_common(const json::array& a, const json::array& b) {
  return std::ranges::any_of(a, [&](const json::value& x) {
    return std::ranges::any_of(b, [&](const json::value& y) { return same_value(x, y); });
  });
}

bool requires_member(const json::object& object, std::string_view name) {
  const json::value* required = object.if_contains("required");
  return required != nullptr && required->is_array() &&
         std::ranges::find(required->get_array(), json::value(name)) != required->get_array().end();
}

bool told_apart_by_a_member(const json::object& x, const json::object& y) {
  const json::value *x_members = x.if_contains("properties"), *y_members = y.if_contains("properties");
  if (x_members == nullptr || y_members == nullptr || !x_members->is_object() || !y_members->is_object())
    return false;
  for (const auto& [name, member] : x_members->get_object()) {
    const json::value* other = y_members->get_object().if_contains(name);
    if (other == nullptr || !member.is_object() || !other->is_object()) continue;
    if (!requires_member(x, name) || !requires_member(y, name)) continue;
    const auto a = listed_values(member.get_object()), b = listed_values(other->get_object());
    if (a && b && !in_common(*a, *b)) return true;
  }
  return false;
}

}  // namespace

const std::map<std::string, std::vector<std::string>, std::less<>>& schema_keywords() {
  static const std::map<std::string, std::vector<std::string>, std::less<>> keywords = {
      {"properties", {"object"}},
      {"required", {"object"}},
      {"additionalProperties", {"object"}},
      {"minProperties", {"object"}},
      {"maxProperties", {"object"}},
      {"items", {"array"}},
      {"prefixItems", {"array"}},
      {"minItems", {"array"}},
      {"maxItems", {"array"}},
      {"minLength", {"string"}},
      {"maxLength", {"string"}},
      {"pattern", {"string"}},
      {"format", {"string"}},
      {"minimum", {"integer", "number"}},
      {"maximum", {"integer", "number"}},
      {"exclusiveMinimum", {"integer", "number"}},
      {"exclusiveMaximum", {"integer", "number"}},
  };
  return keywords;
}

Result<SchemaNames> schema_types(const json::object& schema) {
  static const SchemaNames kAll = {"object", "array", "string", "number", "integer", "boolean", "null"};
  SchemaNames types;
  const auto add = [&](const json::value& type) {
    const bool known = type.is_string() && kAll.contains(std::string_view(type.get_string()));
    if (known) types.emplace(type.get_string());
    return known;
  };
  if (const json::value* type = schema.if_contains("type")) {
    bool known = true;
    if (type->is_array()) {
      for (const json::value& one : type->get_array()) known = known && add(one);
    } else {
      known = add(*type);
    }
    if (!known || types.empty())
      return input_error(fmt::format("type {} is not known.", json::serialize(*type)));
    if (types.contains("number")) types.erase("integer");
    return types;
  }
  for (const auto& [keyword, meant] : schema_keywords()) {
    if (schema.contains(keyword)) types.insert(meant.back());
  }
  if (types.empty()) types = {"array", "boolean", "null", "number", "object", "string"};
  return types;
}

bool has_schema_type(const json::value& value, const SchemaNames& types) {
  if (value.is_object()) return types.contains("object");
  if (value.is_array()) return types.contains("array");
  if (value.is_string()) return types.contains("string");
  if (value.is_bool()) return types.contains("boolean");
  if (value.is_null()) return types.contains("null");
  const bool whole = !value.is_double() || std::floor(value.get_double()) == value.get_double();
  return types.contains("number") || (whole && types.contains("integer"));
}

std::optional<json::array> listed_values(const json::object& schema) {
  if (const json::value* constant = schema.if_contains("const")) {
    json::array one;
    one.push_back(*constant);
    return one;
  }
  const json::value* values = schema.if_contains("enum");
  if (values == nullptr || !values->is_array()) return std::nullopt;
  return values->get_array();
}

const json::object* resolved_schema(const json::value& root, const json::value& schema) {
  const json::value* at = &schema;
  for (int hops = 0; hops < kMostSchemaDepth && at != nullptr && at->is_object(); ++hops) {
    const json::value* ref = at->get_object().if_contains("$ref");
    if (ref == nullptr) return &at->get_object();
    boost::system::error_code error;
    at = ref->is_string() && ref->get_string().starts_with("#")
             ? root.find_pointer(ref->get_string().subview(1), error)
             : nullptr;
  }
  return nullptr;
}

bool schemas_apart(const json::value& root, const json::value& a, const json::value& b) {
  const json::object *x = resolved_schema(root, a), *y = resolved_schema(root, b);
  if (x == nullptr || y == nullptr) return false;
  const auto x_values = listed_values(*x), y_values = listed_values(*y);
  if (x_values && y_values) return !in_common(*x_values, *y_values);
  if (!x->contains("type") || !y->contains("type")) return false;
  const auto x_types = schema_types(*x), y_types = schema_types(*y);
  if (!x_types.ok() || !y_types.ok()) return false;
  const auto is_number = [](const std::string& type) { return type == "number" || type == "integer"; };
  SchemaNames common;
  std::ranges::copy_if(*x_types, std::inserter(common, common.end()), [&](const std::string& type) {
    return y_types->contains(type) || (is_number(type) && std::ranges::any_of(*y_types, is_number));
  });
  return common.empty() || (common == SchemaNames{"object"} && told_apart_by_a_member(*x, *y));
}

}  // namespace plow
