#include "checkpoint/json.h"

#include "base/json_string.h"

#include <cmath>

namespace plow {

// Here and not in the class, where JsonMember is not complete yet.
JsonValue::JsonValue() = default;
JsonValue::JsonValue(bool value) : state_(value) {}
JsonValue::JsonValue(int64_t value) : state_(value) {}
JsonValue::JsonValue(double value) : state_(value) {}
JsonValue::JsonValue(std::string value) : state_(std::move(value)) {}
JsonValue::JsonValue(const char* value) : state_(std::string(value)) {}
JsonValue::JsonValue(Array value) : state_(std::move(value)) {}
JsonValue::JsonValue(Object value) : state_(std::move(value)) {}

JsonValue::JsonValue(uint64_t value) {
  if (value <= static_cast<uint64_t>(std::numeric_limits<int64_t>::max())) {
    state_ = static_cast<int64_t>(value);
  } else {
    state_ = value;
  }
}

std::optional<double> JsonValue::as_number() const {
  if (const auto* real = std::get_if<double>(&state_)) return *real;
  if (const auto* integer = as_int()) return static_cast<double>(*integer);
  if (const auto* natural = std::get_if<uint64_t>(&state_)) return static_cast<double>(*natural);
  return std::nullopt;
}

std::optional<uint64_t> JsonValue::as_uint() const {
  if (const auto* natural = std::get_if<uint64_t>(&state_)) return *natural;
  if (const auto* integer = as_int(); integer != nullptr && *integer >= 0)
    return static_cast<uint64_t>(*integer);
  return std::nullopt;
}

const JsonValue* JsonValue::find(std::string_view key) const {
  if (const auto* members = as_object()) {
    for (const auto& member : *members) {
      if (member.key == key) return &member.value;
    }
  }
  return nullptr;
}

bool JsonValue::operator==(const JsonValue& other) const {
  const auto* left = std::get_if<double>(&state_);
  const auto* right = std::get_if<double>(&other.state_);
  if (left != nullptr && right != nullptr && std::isnan(*left) && std::isnan(*right)) return true;
  return state_ == other.state_;
}

namespace {

void write_double(double value, std::string& out) {
  if (std::isnan(value)) {
    out += R"({"__float__":"NaN"})";
  } else if (std::isinf(value)) {
    out += value > 0 ? R"({"__float__":"Infinity"})" : R"({"__float__":"-Infinity"})";
  } else {
    const std::string text = fmt::format("{}", value);  // the shortest that reads back to the same double
    out += text;
    if (text.find_first_of(".e") == std::string::npos)
      out += ".0";  // an integer would read back as another kind
  }
}

// Stops soon after `limit` bytes: brief() must not print a vocabulary to quote its first line.
void write(const JsonValue& value, std::string& out, size_t limit) {
  if (out.size() > limit) return;
  if (value.is_null()) {
    out += "null";
  } else if (const auto* boolean = value.as_bool()) {
    out += *boolean ? "true" : "false";
  } else if (const auto* string = value.as_string()) {
    append_json_string(out, std::string_view(*string).substr(0, limit));
  } else if (const auto* array = value.as_array()) {
    out += '[';
    for (size_t i = 0; i < array->size() && out.size() <= limit; ++i) {
      if (i != 0) out += ',';
      write((*array)[i], out, limit);
    }
    out += ']';
  } else if (const auto* object = value.as_object()) {
    out += '{';
    for (size_t i = 0; i < object->size() && out.size() <= limit; ++i) {
      if (i != 0) out += ',';
      append_json_string(out, (*object)[i].key);
      out += ':';
      write((*object)[i].value, out, limit);
    }
    out += '}';
  } else if (const auto* integer = value.as_int()) {
    out += fmt::format("{}", *integer);
  } else if (const auto natural = value.as_uint()) {
    out += fmt::format("{}", *natural);
  } else {
    write_double(*value.as_number(), out);
  }
}

// Cuts at a character's border, so that a message stays UTF-8.
std::string cut(std::string text, size_t limit) {
  if (text.size() <= limit) return text;
  size_t end = limit;
  while (end > 0 && (static_cast<unsigned char>(text[end]) & 0xc0u) == 0x80u) --end;
  return text.substr(0, end) + "...";
}

}  // namespace

std::string JsonValue::brief() const {
  constexpr size_t kBriefBytes = 60;  // what fits a line of a terminal beside the rest of the message
  std::string text;
  write(*this, text, 2 * kBriefBytes);
  return cut(std::move(text), kBriefBytes);
}

std::string to_json(const JsonValue& value) {
  std::string text;
  write(value, text, std::numeric_limits<size_t>::max());
  return text;
}

}  // namespace plow
