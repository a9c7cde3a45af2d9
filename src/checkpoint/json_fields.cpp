#include "checkpoint/json.h"

#include <algorithm>
#include <cmath>

namespace plow {

namespace {

using Read = std::unordered_set<const JsonValue*>;

// What all readings of one walk share.
struct Unread {
  const Read& read;
  const Read& entered;
  std::vector<std::pair<std::string, const JsonValue*>> found;

  void walk_object(const JsonValue& value, const std::string& prefix) {
    const auto* members = value.as_object();
    if (members == nullptr) return;
    for (const auto& member : *members) {
      const std::string path = prefix + member.key;
      if (entered.contains(&member.value)) {
        walk_object(member.value, path + ".");
        walk_elements(member.value, path);
      } else if (!read.contains(&member.value)) {
        found.emplace_back(path, &member.value);
      }
    }
  }

  void walk_elements(const JsonValue& value, const std::string& path) {
    const auto* elements = value.as_array();
    if (elements == nullptr) return;
    for (size_t i = 0; i < elements->size(); ++i)
      walk_object((*elements)[i], fmt::format("{}[{}].", path, i));
  }
};

std::string integer_range(int64_t least, int64_t most) {
  if (least == 1 && most == JsonFields::kMaxDimension) return "a positive integer";
  return fmt::format("an integer from {} to {}", least, most);
}

std::optional<double> finite_number(const JsonValue& value) {
  const auto number = value.as_number();
  return number && std::isfinite(*number) ? number : std::nullopt;
}

}  // namespace

Result<JsonFields> JsonReader::root() {
  if (tree_.as_object() == nullptr) return input_error(source_ + ": the document must be a JSON object");
  return JsonFields(this, &tree_, "");
}

std::vector<std::string> JsonReader::unread() const {
  Unread unread{read_, entered_, {}};
  unread.walk_object(tree_, "");
  std::vector<std::string> paths;
  for (auto& [path, value] : unread.found) paths.push_back(std::move(path));
  return paths;
}

Status JsonReader::check_all_read() const {
  Unread unread{read_, entered_, {}};
  unread.walk_object(tree_, "");
  if (unread.found.empty()) return {};
  std::string list;
  for (const auto& [path, value] : unread.found) {
    list += fmt::format("{}'{}' ({})", list.empty() ? "" : ", ", path, value->brief());
  }
  return input_error(fmt::format(
      "{}: not understood: {}. A field that may change the result is never skipped.", source_, list));
}

bool JsonFields::has(std::string_view key) const {
  const JsonValue* value = object_->find(key);
  return value != nullptr && !value->is_null();
}

const JsonValue* JsonFields::find(std::string_view key) const {
  const JsonValue* value = object_->find(key);
  if (value != nullptr) reader_->read_.insert(value);
  return value;
}

Error JsonFields::error(std::string_view key, std::string_view must_be) const {
  const JsonValue* value = object_->find(key);
  if (value == nullptr) {
    return input_error(
        fmt::format("{}: '{}{}' is missing; it must be {}", reader_->source_, path_, key, must_be));
  }
  return input_error(
      fmt::format("{}: '{}{}' must be {}, found {}", reader_->source_, path_, key, must_be, value->brief()));
}

Error JsonFields::error(std::string_view message) const {
  return input_error(fmt::format("{}: {}", reader_->source_, message));
}

Result<bool> JsonFields::boolean(std::string_view key) const {
  const JsonValue* value = find(key);
  if (value == nullptr || value->as_bool() == nullptr) return error(key, "true or false");
  return *value->as_bool();
}

Result<bool> JsonFields::boolean_or(std::string_view key, bool absent) const {
  find(key);
  return has(key) ? boolean(key) : Result<bool>(absent);
}

Result<int64_t> JsonFields::integer(std::string_view key, int64_t least, int64_t most) const {
  const JsonValue* value = find(key);
  const int64_t* integer = value != nullptr ? value->as_int() : nullptr;
  if (integer == nullptr || *integer < least || *integer > most)
    return error(key, integer_range(least, most));
  return *integer;
}

Result<int64_t> JsonFields::integer_or(std::string_view key, int64_t absent, int64_t least,
                                       int64_t most) const {
  find(key);
  return has(key) ? integer(key, least, most) : Result<int64_t>(absent);
}

Result<double> JsonFields::number(std::string_view key) const {
  const JsonValue* value = find(key);
  const auto number = value != nullptr ? finite_number(*value) : std::nullopt;
  if (!number) return error(key, "a finite number");
  return *number;
}

Result<double> JsonFields::number_or(std::string_view key, double absent) const {
  find(key);
  return has(key) ? number(key) : Result<double>(absent);
}

Result<std::string> JsonFields::string(std::string_view key) const {
  const JsonValue* value = find(key);
  if (value == nullptr || value->as_string() == nullptr) return error(key, "a string");
  return *value->as_string();
}

Result<std::string> JsonFields::string_or(std::string_view key, std::string absent) const {
  find(key);
  return has(key) ? string(key) : Result<std::string>(std::move(absent));
}

Result<std::vector<int64_t>> JsonFields::integers(std::string_view key) const {
  const JsonValue* value = find(key);
  const auto* array = value != nullptr ? value->as_array() : nullptr;
  if (array == nullptr) return error(key, "an array of integers");
  std::vector<int64_t> integers;
  for (const auto& element : *array) {
    if (element.as_int() == nullptr) return error(key, "an array of integers");
    integers.push_back(*element.as_int());
  }
  return integers;
}

Result<std::vector<double>> JsonFields::numbers(std::string_view key) const {
  const JsonValue* value = find(key);
  const auto* array = value != nullptr ? value->as_array() : nullptr;
  if (array == nullptr) return error(key, "an array of finite numbers");
  std::vector<double> numbers;
  for (const auto& element : *array) {
    const auto number = finite_number(element);
    if (!number) return error(key, "an array of finite numbers");
    numbers.push_back(*number);
  }
  return numbers;
}

Result<std::vector<std::string>> JsonFields::strings(std::string_view key) const {
  const JsonValue* value = find(key);
  const auto* array = value != nullptr ? value->as_array() : nullptr;
  if (array == nullptr) return error(key, "an array of strings");
  std::vector<std::string> strings;
  for (const auto& element : *array) {
    if (element.as_string() == nullptr) return error(key, "an array of strings");
    strings.push_back(*element.as_string());
  }
  return strings;
}

Result<JsonFields> JsonFields::object(std::string_view key) const {
  const JsonValue* value = object_->find(key);
  if (value == nullptr || value->as_object() == nullptr) return error(key, "an object");
  reader_->entered_.insert(value);
  return JsonFields(reader_, value, fmt::format("{}{}.", path_, key));
}

Result<std::optional<JsonFields>> JsonFields::object_or_none(std::string_view key) const {
  if (!has(key)) {
    find(key);
    return std::optional<JsonFields>();
  }
  PLOW_TRY(JsonFields fields, object(key));
  return std::optional<JsonFields>(std::move(fields));
}

Result<std::vector<JsonFields>> JsonFields::objects(std::string_view key) const {
  const JsonValue* value = object_->find(key);
  const auto* array = value != nullptr ? value->as_array() : nullptr;
  if (array == nullptr) return error(key, "an array of objects");
  std::vector<JsonFields> fields;
  for (size_t i = 0; i < array->size(); ++i) {
    const JsonValue& element = (*array)[i];
    if (element.as_object() == nullptr) return error(key, "an array of objects");
    fields.push_back(JsonFields(reader_, &element, fmt::format("{}{}[{}].", path_, key, i)));
  }
  reader_->entered_.insert(value);
  return fields;
}

void JsonFields::ignore(std::initializer_list<std::string_view> keys) const {
  for (const auto key : keys) find(key);
}

}  // namespace plow
