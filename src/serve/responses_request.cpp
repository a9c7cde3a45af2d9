#include "serve/fields.h"
#include "serve/request_fields.h"
#include "serve/responses_api.h"

#include <boost/json.hpp>
#include <fmt/format.h>

#include <algorithm>
#include <utility>

namespace plow {
namespace {

namespace json = boost::json;

// A call joins those that the assistant made right before.
std::optional<ApiError> add_call(const json::object& item, const std::string& where, json::array& out) {
  const std::string_view id = text_at(item, "call_id"), name = text_at(item, "name");
  const json::value* arguments = item.if_contains("arguments");
  if (id.empty() || name.empty() || arguments == nullptr || !arguments->is_string())
    return invalid_field(where, where + " must have call_id, name, and arguments as JSON text.");
  const bool joins = !out.empty() && text_at(out.back().get_object(), "role") == "assistant";
  if (!joins) out.push_back({{"role", "assistant"}, {"content", nullptr}});
  json::value& calls = out.back().get_object()["tool_calls"];
  if (!calls.is_array()) calls = json::array();
  calls.get_array().push_back(
      {{"id", id}, {"type", "function"}, {"function", {{"name", name}, {"arguments", *arguments}}}});
  return {};
}

std::optional<ApiError> add_item(const json::value& value, size_t i, json::array& out) {
  const std::string where = fmt::format("input[{}]", i);
  const json::object* item = value.if_object();
  if (item == nullptr) return invalid_field(where, where + " must be an object.");
  const std::string_view type = text_at(*item, "type");
  if (type == "function_call") return add_call(*item, where, out);
  if (type == "function_call_output") {
    const json::value* output = item->if_contains("output");
    if (text_at(*item, "call_id").empty() || output == nullptr ||
        !(output->is_string() || output->is_array()))
      return invalid_field(where, where + " must have call_id, and output as text.");
    out.push_back({{"role", "tool"}, {"tool_call_id", text_at(*item, "call_id")}, {"content", *output}});
    return {};
  }
  if (type == "reasoning") return {};  // of an answer before: templates leave old thoughts out
  if (!type.empty() && type != "message") {
    return unsupported_field(where,
                             fmt::format("{} is of type {}; this server reads messages, function_call and "
                                         "function_call_output.",
                                         where, json::serialize(item->at("type"))));
  }
  const std::string_view role = text_at(*item, "role");
  const json::value* content = item->if_contains("content");
  if (role.empty() || content == nullptr) return invalid_field(where, where + " must have role and content.");
  out.push_back({{"role", role == "developer" ? "system" : role}, {"content", *content}});
  return {};
}

std::optional<ApiError> read_input(const json::value& input, json::array& out) {
  if (input.is_string()) {
    out.push_back({{"role", "user"}, {"content", input}});
    return {};
  }
  for (size_t i = 0; i < input.get_array().size(); ++i) {
    if (auto error = add_item(input.get_array()[i], i, out)) return error;
  }
  return {};
}

std::optional<ApiError> read_tools(const json::array& tools, json::object& chat) {
  json::array out;
  for (size_t i = 0; i < tools.size(); ++i) {
    const std::string where = fmt::format("tools[{}]", i);
    const json::object* tool = tools[i].if_object();
    if (tool == nullptr || text_at(*tool, "type") != "function")
      return unsupported_field(where, where + " must be of type function: this server runs no tools itself.");
    json::object function = *tool;
    function.erase("type");
    out.push_back({{"type", "function"}, {"function", std::move(function)}});
  }
  chat["tools"] = std::move(out);
  return {};
}

std::optional<ApiError> read_format(const json::object& text, json::object& chat) {
  const json::value* format = text.if_contains("format");
  if (format == nullptr || format->is_null()) return {};
  if (!format->is_object()) return invalid_field("text.format", "text.format must be an object.");
  json::object own = format->get_object();
  if (text_at(own, "type") != "json_schema") {
    chat["response_format"] = own;
    return {};
  }
  own.erase("type");
  chat["response_format"] = {{"type", "json_schema"}, {"json_schema", std::move(own)}};
  return {};
}

// What was said before, from the store.
std::optional<ApiError> read_previous(const FieldReader& fields, const ResponseStore& store,
                                      json::array& out) {
  const json::value* id = fields.find("previous_response_id");
  if (id == nullptr) return {};
  const auto stored = store.find(id->get_string());
  if (!stored) {
    ApiError error = invalid_field(
        "previous_response_id",
        fmt::format(
            "There is no response {}: it was not stored, or it is forgotten. Send the conversation as input.",
            json::serialize(json::value(id->get_string().subview(0, 100)))));
    error.code = "previous_response_not_found";
    return error;
  }
  json::parse_options deep;
  deep.max_depth = 128;  // it was within the limit of a request when it came
  out = json::parse(stored->conversation, {}, deep).as_array();
  return {};
}

void copy_settings(const FieldReader& fields, ResponsesRequest& out) {
  const auto copy = [&](const char* from, const char* to) {
    if (const json::value* value = fields.find(from)) out.chat[to] = *value;
  };
  for (const char* name : {"model", "stream", "temperature", "top_p", "parallel_tool_calls"})
    copy(name, name);
  copy("max_output_tokens", "max_tokens");
  const json::value* effort = nullptr;
  if (const json::value* reasoning = fields.find("reasoning"))
    effort = FieldReader(reasoning->get_object()).find("effort");
  if (effort != nullptr) out.chat["reasoning_effort"] = *effort;
  const json::value* include = fields.find("include");
  const auto names_logprobs = [](const json::value& item) {
    return item.is_string() && item.get_string() == "message.output_text.logprobs";
  };
  const bool logprobs = include != nullptr && std::ranges::any_of(include->get_array(), names_logprobs);
  if (logprobs || fields.count("top_logprobs").value_or(0) > 0) out.chat["logprobs"] = true;
  copy("top_logprobs", "top_logprobs");
}

// Absent fields are named, too.
json::object echo_of(const FieldReader& fields) {
  json::object echo;
  const auto set = [&](const char* name, json::value fallback) {
    const json::value* value = fields.find(name);
    echo[name] = value == nullptr ? std::move(fallback) : *value;
  };
  set("instructions", nullptr);
  set("max_output_tokens", nullptr);
  set("metadata", json::object());
  set("parallel_tool_calls", true);
  set("previous_response_id", nullptr);
  set("reasoning", json::object{{"effort", nullptr}, {"summary", nullptr}});
  set("store", true);
  set("temperature", nullptr);
  set("text", json::object{{"format", json::object{{"type", "text"}}}});
  set("tool_choice", "auto");
  set("tools", json::array());
  set("top_p", nullptr);
  set("truncation", "disabled");
  set("user", nullptr);
  return echo;
}

}  // namespace

std::optional<ApiError> read_responses(const json::object& body, const ResponseStore& store,
                                       ResponsesRequest& out, std::vector<std::string>& unknown) {
  if (auto error = check_fields(responses_fields(), body, unknown)) return error;
  const FieldReader fields(body);
  out.store = fields.boolean("store").value_or(true);
  out.echo = echo_of(fields);
  copy_settings(fields, out);
  if (auto error = read_previous(fields, store, out.remembered)) return error;
  if (auto error = read_input(*fields.find("input"), out.remembered)) return error;
  json::array messages;
  if (const json::value* instructions = fields.find("instructions"))
    messages.push_back({{"role", "system"}, {"content", *instructions}});
  messages.insert(messages.end(), out.remembered.begin(), out.remembered.end());
  out.chat["messages"] = std::move(messages);
  if (const json::value* tools = fields.find("tools")) {
    if (auto error = read_tools(tools->get_array(), out.chat)) return error;
  }
  if (const json::value* choice = fields.find("tool_choice")) {
    const json::object* named = choice->if_object();
    out.chat["tool_choice"] =
        named == nullptr
            ? *choice
            : json::value{{"type", "function"}, {"function", {{"name", text_at(*named, "name")}}}};
  }
  if (const json::value* text = fields.find("text")) return read_format(text->get_object(), out.chat);
  return {};
}

}  // namespace plow
