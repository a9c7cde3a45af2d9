#include "serve/messages_api.h"

#include <boost/json.hpp>
#include <fmt/format.h>

#include <utility>

namespace plow {
namespace {

namespace json = boost::json;

// Every event's data repeats its name as `type`.
std::string event(const json::object& data) {
  return fmt::format("event: {}\ndata: {}\n\n", std::string_view(data.at("type").get_string()),
                     json::serialize(data));
}

json::object usage_object(const Usage& usage) {
  return {{"input_tokens", usage.prompt_tokens}, {"output_tokens", usage.completion_tokens}};
}

json::value stop_reason(const std::string& finish_reason, bool called, bool stop_string) {
  if (finish_reason == "length") return "max_tokens";
  if (called) return "tool_use";
  return stop_string ? "stop_sequence" : "end_turn";
}

json::value string_or_null(const std::optional<std::string>& text) {
  return text ? json::value(*text) : json::value();
}

json::object thinking_block(const std::string& text) {
  return {{"type", "thinking"}, {"thinking", text}, {"signature", ""}};
}

json::object error_object(const ApiError& error) {
  // Names of Anthropic's reference, "Errors". Its clients go by the status.
  const char* type = error.status == 401   ? "authentication_error"
                     : error.status == 403 ? "permission_error"
                     : error.status == 404 ? "not_found_error"
                     : error.status == 413 ? "request_too_large"
                     : error.status == 503 ? "overloaded_error"
                     : error.status >= 500 ? "api_error"
                                           : "invalid_request_error";
  return {{"type", "error"}, {"error", {{"type", type}, {"message", error.message}}}};
}

}  // namespace

std::string message_error_json(const ApiError& error) { return json::serialize(error_object(error)); }

std::string MessageWriter::begin(const Usage& usage) {
  json::object message{{"id", id_},
                       {"type", "message"},
                       {"role", "assistant"},
                       {"model", model_},
                       {"content", json::array()},
                       {"stop_reason", nullptr},
                       {"stop_sequence", nullptr},
                       {"usage", usage_object(usage)}};
  return event({{"type", "message_start"}, {"message", std::move(message)}});
}

void MessageWriter::close(std::string& out) {
  if (block_ == Block::kNone) return;
  out += event({{"type", "content_block_stop"}, {"index", index_}});
  block_ = Block::kNone;
  ++index_;
}

void MessageWriter::open(std::string& out, Block kind, json::object block) {
  if (block_ == kind && kind != Block::kCall) return;
  close(out);
  block_ = kind;
  out += event({{"type", "content_block_start"}, {"index", index_}, {"content_block", std::move(block)}});
}

void MessageWriter::add(std::string& out, json::object delta) {
  out += event({{"type", "content_block_delta"}, {"index", index_}, {"delta", std::move(delta)}});
}

std::string MessageWriter::part(const ChoicePart& part, bool) {
  std::string out;
  if (!part.reasoning.empty()) {
    open(out, Block::kThinking, thinking_block(""));
    add(out, {{"type", "thinking_delta"}, {"thinking", part.reasoning}});
  }
  if (!part.text.empty()) {
    open(out, Block::kText, {{"type", "text"}, {"text", ""}});
    add(out, {{"type", "text_delta"}, {"text", part.text}});
  }
  for (const ToolCallPart& call : part.calls) {
    if (call.begins) {
      called_ = true;
      open(out, Block::kCall,
           {{"type", "tool_use"}, {"id", call.id}, {"name", call.name}, {"input", json::object()}});
    }
    if (!call.arguments.empty()) add(out, {{"type", "input_json_delta"}, {"partial_json", call.arguments}});
  }
  if (part.finish_reason != nullptr) {
    finish_reason_ = part.finish_reason;
    stop_string_ = part.stop_string;
  }
  return out;
}

std::string MessageWriter::end(const Usage& usage) {
  std::string out;
  close(out);
  json::object delta{{"stop_reason", stop_reason(finish_reason_, called_, stop_string_.has_value())},
                     {"stop_sequence", string_or_null(stop_string_)}};
  out += event({{"type", "message_delta"}, {"delta", std::move(delta)}, {"usage", usage_object(usage)}});
  return out + event({{"type", "message_stop"}});
}

std::string MessageWriter::failure(const ApiError& error) { return event(error_object(error)); }

std::string MessageWriter::whole(std::span<const ChoicePart> choices, const Usage& usage) {
  const ChoicePart& answer = choices[0];
  json::array content;
  if (!answer.reasoning.empty()) content.push_back(thinking_block(answer.reasoning));
  if (!answer.text.empty()) content.push_back({{"type", "text"}, {"text", answer.text}});
  for (const ToolCallPart& call : answer.calls) {
    // An answer that was cut may end inside of a call.
    boost::system::error_code error;
    json::value input = json::parse(call.arguments, error);
    if (error || !input.is_object()) input = json::object();
    content.push_back(
        {{"type", "tool_use"}, {"id", call.id}, {"name", call.name}, {"input", std::move(input)}});
  }
  const json::object message{{"id", id_},
                             {"type", "message"},
                             {"role", "assistant"},
                             {"model", model_},
                             {"content", std::move(content)},
                             {"stop_reason", stop_reason(answer.finish_reason, !answer.calls.empty(),
                                                         answer.stop_string.has_value())},
                             {"stop_sequence", string_or_null(answer.stop_string)},
                             {"usage", usage_object(usage)}};
  return json::serialize(message);
}

}  // namespace plow
