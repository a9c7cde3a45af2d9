#include "serve/fields.h"
#include "serve/messages_api.h"
#include "serve/request_fields.h"

#include <boost/json.hpp>
#include <fmt/format.h>

#include <utility>

namespace plow {
namespace {

namespace json = boost::json;

// The text of a string, or of an array of text blocks.
std::optional<ApiError> read_text(const json::value& content, const std::string& where, std::string& out) {
  if (content.is_string()) {
    out = std::string_view(content.get_string());
    return {};
  }
  if (!content.is_array())
    return invalid_field(where, where + " must be a string or an array of text blocks.");
  for (size_t i = 0; i < content.get_array().size(); ++i) {
    const json::object* block = content.get_array()[i].if_object();
    const json::value* text = block == nullptr ? nullptr : block->if_contains("text");
    if (text == nullptr || !text->is_string() || text_at(*block, "type") != "text") {
      const std::string place = fmt::format("{}[{}]", where, i);
      return unsupported_field(
          place, place + " must be {\"type\":\"text\",\"text\":...}: this model reads text only.");
    }
    if (i > 0) out += '\n';
    out += std::string_view(text->get_string());
  }
  return {};
}

// One message's blocks on their way to messages of a chat: results of calls become messages of their own.
class BlockReader {
 public:
  BlockReader(std::string role, json::array& messages) : role_(std::move(role)), messages_(messages) {}

  std::optional<ApiError> add(const json::value& value, const std::string& where) {
    const json::object* block = value.if_object();
    if (block == nullptr || text_at(*block, "type").empty())
      return invalid_field(where, where + " must be an object with a type.");
    const std::string_view type = text_at(*block, "type");
    if (type == "text") return add_text(*block, where);
    if (type == "tool_result" && role_ == "user") return add_result(*block, where);
    if (type == "tool_use" && role_ == "assistant") return add_call(*block, where);
    if (type == "thinking" && role_ == "assistant") {
      thoughts_ += text_at(*block, "thinking");
      return {};
    }
    if (type == "redacted_thinking" && role_ == "assistant") return {};
    return unsupported_field(
        where, fmt::format("{} is of type {}; this model reads text, and calls of tools.", where,
                           json::serialize(block->at("type"))));
  }

  void finish() {
    if (!has_text_ && calls_.empty()) return;
    json::object message{{"role", role_}, {"content", text_}};
    if (!thoughts_.empty()) message["reasoning_content"] = thoughts_;
    if (!calls_.empty()) message["tool_calls"] = std::move(calls_);
    messages_.push_back(std::move(message));
  }

 private:
  std::optional<ApiError> add_text(const json::object& block, const std::string& where) {
    const json::value* text = block.if_contains("text");
    if (text == nullptr || !text->is_string())
      return invalid_field(where, where + " must have its text as a string.");
    if (std::exchange(has_text_, true)) text_ += '\n';
    text_ += std::string_view(text->get_string());
    return {};
  }

  std::optional<ApiError> add_result(const json::object& block, const std::string& where) {
    const std::string_view id = text_at(block, "tool_use_id");
    if (id.empty())
      return invalid_field(where, where + ".tool_use_id is missing: which call this is the result of.");
    std::string text;
    if (const json::value* content = block.if_contains("content")) {
      if (auto error = read_text(*content, where + ".content", text)) return error;
    }
    messages_.push_back({{"role", "tool"}, {"tool_call_id", id}, {"content", text}});
    return {};
  }

  std::optional<ApiError> add_call(const json::object& block, const std::string& where) {
    const json::value* input = block.if_contains("input");
    const std::string_view name = text_at(block, "name"), id = text_at(block, "id");
    if (name.empty() || id.empty() || input == nullptr || !input->is_object())
      return invalid_field(where, where + " must have id, name, and input as an object.");
    calls_.push_back({{"id", id},
                      {"type", "function"},
                      {"function", {{"name", name}, {"arguments", json::serialize(*input)}}}});
    return {};
  }

  const std::string role_;
  json::array& messages_;
  std::string text_, thoughts_;
  bool has_text_ = false;
  json::array calls_;
};

std::optional<ApiError> read_turn(const json::value& value, size_t i, json::array& out) {
  const std::string where = fmt::format("messages[{}]", i);
  const json::object* turn = value.if_object();
  const std::string_view role = turn == nullptr ? std::string_view() : text_at(*turn, "role");
  if (role != "user" && role != "assistant")
    return invalid_field(where + ".role", where + ".role must be \"user\" or \"assistant\".");
  const json::value* content = turn->if_contains("content");
  if (content != nullptr && content->is_string()) {
    out.push_back({{"role", role}, {"content", *content}});
    return {};
  }
  if (content == nullptr || !content->is_array())
    return invalid_field(where + ".content", where + ".content must be a string or an array of blocks.");
  BlockReader reader{std::string(role), out};
  for (size_t b = 0; b < content->get_array().size(); ++b) {
    if (auto error = reader.add(content->get_array()[b], fmt::format("{}.content[{}]", where, b)))
      return error;
  }
  reader.finish();
  return {};
}

std::optional<ApiError> read_turns(const FieldReader& fields, bool counts, json::array& out) {
  if (const json::value* system = fields.find("system")) {
    std::string text;
    if (auto error = read_text(*system, "system", text)) return error;
    if (!text.empty()) out.push_back({{"role", "system"}, {"content", text}});
  }
  const json::array& turns = fields.find("messages")->get_array();
  if (turns.empty()) return invalid_field("messages", "messages is empty; it needs at least one message.");
  for (size_t i = 0; i < turns.size(); ++i) {
    if (auto error = read_turn(turns[i], i, out)) return error;
  }
  if (!counts && text_at(turns[turns.size() - 1].get_object(), "role") == "assistant") {
    return unsupported_field(
        "messages",
        "The last message is the assistant's, and this server does not go on with it: end with a "
        "message of the user's.");
  }
  return {};
}

std::optional<ApiError> read_tools(const json::array& tools, json::object& chat) {
  json::array out;
  for (size_t i = 0; i < tools.size(); ++i) {
    const std::string where = fmt::format("tools[{}]", i);
    const json::object* tool = tools[i].if_object();
    if (tool == nullptr)
      return invalid_field(where, where + " must be an object with name and input_schema.");
    const std::string_view type = text_at(*tool, "type");
    if (!type.empty() && type != "custom") {
      return unsupported_field(where, fmt::format("{} is of type {}; this server runs no tools itself.",
                                                  where, json::serialize(tool->at("type"))));
    }
    json::object function{{"name", text_at(*tool, "name")}};
    const auto copy = [&](const char* from, const char* to) {
      if (const json::value* value = tool->if_contains(from)) function[to] = *value;
    };
    copy("description", "description");
    copy("input_schema", "parameters");
    copy("strict", "strict");
    out.push_back({{"type", "function"}, {"function", std::move(function)}});
  }
  chat["tools"] = std::move(out);
  return {};
}

std::optional<ApiError> read_choice(const json::object& choice, json::object& chat) {
  const std::string_view type = text_at(choice, "type");
  if (type == "auto" || type == "none") {
    chat["tool_choice"] = type;
  } else if (type == "any") {
    chat["tool_choice"] = "required";
  } else if (type == "tool" && !text_at(choice, "name").empty()) {
    chat["tool_choice"] = {{"type", "function"}, {"function", {{"name", text_at(choice, "name")}}}};
  } else {
    return invalid_field("tool_choice",
                         "tool_choice.type must be \"auto\", \"any\", \"none\", or \"tool\" with a name.");
  }
  const json::value* single = choice.if_contains("disable_parallel_tool_use");
  if (single != nullptr && single->is_bool()) chat["parallel_tool_calls"] = !single->get_bool();
  return {};
}

std::optional<ApiError> read_thinking(const json::object& thinking, json::object& chat) {
  const std::string_view type = text_at(thinking, "type");
  if (type != "enabled" && type != "adaptive" && type != "disabled")
    return invalid_field("thinking", "thinking.type must be \"enabled\", \"adaptive\" or \"disabled\".");
  chat["chat_template_kwargs"] = {{"enable_thinking", type != "disabled"}};
  return {};
}

}  // namespace

std::optional<ApiError> chat_of_messages(const json::object& body, bool counts, json::object& chat,
                                         std::vector<std::string>& unknown) {
  if (auto error = check_fields(counts ? count_tokens_fields() : messages_fields(), body, unknown))
    return error;
  const FieldReader fields(body);
  const auto copy = [&](const char* from, const char* to) {
    if (const json::value* value = fields.find(from)) chat[to] = *value;
  };
  for (const char* name : {"model", "max_tokens", "stream", "temperature", "top_p", "top_k"})
    copy(name, name);
  copy("stop_sequences", "stop");
  json::array messages;
  if (auto error = read_turns(fields, counts, messages)) return error;
  chat["messages"] = std::move(messages);
  if (const json::value* tools = fields.find("tools")) {
    if (auto error = read_tools(tools->get_array(), chat)) return error;
  }
  if (const json::value* choice = fields.find("tool_choice")) {
    if (auto error = read_choice(choice->get_object(), chat)) return error;
  }
  if (const json::value* thinking = fields.find("thinking"))
    return read_thinking(thinking->get_object(), chat);
  return {};
}

}  // namespace plow
