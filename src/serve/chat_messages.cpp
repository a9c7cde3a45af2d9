#include "serve/answer_spec.h"
#include "serve/request_fields.h"

#include <boost/json.hpp>
#include <fmt/format.h>

#include <algorithm>

namespace plow {
namespace {

namespace json = boost::json;

std::string place(size_t i, const char* field) { return fmt::format("messages[{}].{}", i, field); }

// The text of a content given in parts; a message has one text.
std::optional<ApiError> join_parts(const json::array& parts, size_t i, json::string& text) {
  for (size_t p = 0; p < parts.size(); ++p) {
    const std::string where = fmt::format("messages[{}].content[{}]", i, p);
    const json::object* part = parts[p].if_object();
    const json::value* type = part == nullptr ? nullptr : part->if_contains("type");
    if (type == nullptr || !type->is_string())
      return invalid_field(
          where, where + " must be an object with a type, such as {\"type\":\"text\",\"text\":...}.");
    const std::string_view name = type->get_string();
    if (name != "text" && name != "input_text" && name != "output_text" && name != "refusal") {
      return unsupported_field(
          where, fmt::format("{} is of type {}; this model reads text only.", where, json::serialize(*type)));
    }
    const json::value* value = part->if_contains(name == "refusal" ? "refusal" : "text");
    if (value == nullptr || !value->is_string())
      return invalid_field(where, where + " must have its text as a string.");
    if (p > 0) text += '\n';
    text += value->get_string();
  }
  return {};
}

std::optional<ApiError> read_content(const json::object& message, size_t i, bool may_lack,
                                     json::string& text) {
  const json::value* content = message.if_contains("content");
  if (content == nullptr || content->is_null()) {
    if (may_lack) return {};
    return invalid_field(place(i, "content"), place(i, "content") + " is missing.");
  }
  if (content->is_string()) {
    text = content->get_string();
    return {};
  }
  if (content->is_array()) return join_parts(content->get_array(), i, text);
  return invalid_field(place(i, "content"),
                       place(i, "content") + " must be a string or an array of parts with text.");
}

// Clients send the arguments of a call as JSON text; templates print them as what they are.
json::value with_parsed_arguments(json::value calls) {
  if (!calls.is_array()) return calls;
  for (json::value& call : calls.get_array()) {
    json::object* object = call.if_object();
    json::value* function = object == nullptr ? nullptr : object->if_contains("function");
    if (function == nullptr || !function->is_object()) continue;
    json::value* arguments = function->get_object().if_contains("arguments");
    if (arguments == nullptr || !arguments->is_string()) continue;
    boost::system::error_code error;
    json::value parsed = json::parse(arguments->get_string(), error);
    if (!error && parsed.is_object()) *arguments = std::move(parsed);
  }
  return calls;
}

std::optional<ApiError> read_message(const json::value& value, size_t i, json::array& out) {
  const json::object* message = value.if_object();
  if (message == nullptr) {
    const std::string where = fmt::format("messages[{}]", i);
    return invalid_field(where, where + " must be an object with role and content.");
  }
  static const std::vector<std::string> kRoles = ChatInput().trusted_roles;
  const json::value* role = message->if_contains("role");
  if (role == nullptr || !role->is_string() ||
      std::ranges::find(kRoles, std::string_view(role->get_string())) == kRoles.end()) {
    return invalid_field(place(i, "role"),
                         fmt::format("{} must be one of {}.", place(i, "role"), fmt::join(kRoles, ", ")));
  }
  json::string text;
  const bool may_lack = role->get_string() == "assistant";
  if (auto error = read_content(*message, i, may_lack, text)) return error;
  json::object read = *message;
  read["content"] = text;
  if (json::value* calls = read.if_contains("tool_calls")) *calls = with_parsed_arguments(std::move(*calls));
  out.push_back(std::move(read));
  return {};
}

}  // namespace

std::optional<ApiError> read_messages(const json::array& messages, json::array& out) {
  if (messages.empty()) return invalid_field("messages", "messages is empty; it needs at least one message.");
  if (messages.size() > kMostMessages) {
    return invalid_field("messages", fmt::format("messages has {} messages; up to {} are read.",
                                                 messages.size(), kMostMessages));
  }
  for (size_t i = 0; i < messages.size(); ++i) {
    if (auto error = read_message(messages[i], i, out)) return error;
  }
  return {};
}

}  // namespace plow
