#include "serve/answer_format.h"
#include "serve/responses_api.h"

#include <boost/json.hpp>
#include <fmt/format.h>

#include <algorithm>
#include <utility>

namespace plow {
namespace {

namespace json = boost::json;

json::array bytes_array(const std::string& bytes) {
  json::array out;
  for (const char byte : bytes) out.push_back(static_cast<unsigned char>(byte));
  return out;
}

json::object logprob_object(const TokenLogprob& token) {
  constexpr float kLeast = -9999;  // as in the other APIs: JSON has no infinities
  return {{"token", token.text},
          {"logprob", std::max(token.logprob, kLeast)},
          {"bytes", bytes_array(token.bytes)}};
}

json::array logprobs_of(const ChoicePart& part) {
  json::array out;
  for (const TokenLogprob& token : part.logprobs) {
    json::object one = logprob_object(token);
    json::array top;
    for (const TokenLogprob& other : token.top) top.push_back(logprob_object(other));
    one["top_logprobs"] = std::move(top);
    out.push_back(std::move(one));
  }
  return out;
}

json::object usage_object(const Usage& usage) {
  return {{"input_tokens", usage.prompt_tokens},
          {"input_tokens_details", {{"cached_tokens", usage.cached_tokens}}},
          {"output_tokens", usage.completion_tokens},
          {"output_tokens_details", {{"reasoning_tokens", usage.reasoning_tokens.value_or(0)}}},
          {"total_tokens", usage.prompt_tokens + usage.completion_tokens}};
}

json::object error_object(const ApiError& error) {
  return {{"code", error.code.empty() ? error.type : error.code}, {"message", error.message}};
}

}  // namespace

ResponseWriter::Item& ResponseWriter::add_item(Kind kind) {
  const char* prefix = kind == Kind::kReasoning ? "rs" : kind == Kind::kMessage ? "msg" : "fc";
  items_.push_back({kind, fmt::format("{}_{}_{}", prefix, id_, items_.size()), {}, {}, {}, {}});
  return items_.back();
}

json::object ResponseWriter::text_part(const Item& item) const {
  if (item.kind == Kind::kReasoning) return {{"type", "reasoning_text"}, {"text", item.text}};
  return {{"type", "output_text"},
          {"text", item.text},
          {"annotations", json::array()},
          {"logprobs", item.logprobs}};
}

json::object ResponseWriter::item_object(const Item& item, const char* status) const {
  json::object out{{"id", item.id}, {"status", status}};
  const auto content = [&] { return item.text.empty() ? json::array() : json::array{text_part(item)}; };
  switch (item.kind) {
    case Kind::kReasoning:
      out["type"] = "reasoning";
      out["summary"] = json::array();
      out["content"] = content();
      break;
    case Kind::kMessage:
      out["type"] = "message";
      out["role"] = "assistant";
      out["content"] = content();
      break;
    case Kind::kCall:
      out["type"] = "function_call";
      out["call_id"] = item.call_id;
      out["name"] = item.name;
      out["arguments"] = item.text;
      break;
  }
  return out;
}

json::object ResponseWriter::response(const char* status, const Usage* usage) const {
  const bool cut = std::string_view(status) == "incomplete";
  json::array output;
  for (const Item& item : items_) {
    const bool last = &item == &items_.back();
    output.push_back(item_object(item, cut && last ? "incomplete" : "completed"));
  }
  json::object out{{"id", id_},
                   {"object", "response"},
                   {"created_at", created_},
                   {"status", status},
                   {"background", false},
                   {"error", nullptr},
                   {"incomplete_details",
                    cut ? json::value(json::object{{"reason", "max_output_tokens"}}) : json::value()},
                   {"model", model_},
                   {"output", std::move(output)},
                   {"usage", usage == nullptr ? json::value() : json::value(usage_object(*usage))}};
  for (const auto& member : request_.echo) out[member.key()] = member.value();
  return out;
}

json::object ResponseWriter::final_response(const Usage& usage) const {
  return response(finish_reason_ == "length" ? "incomplete" : "completed", &usage);
}

void ResponseWriter::remember(const json::object& response) {
  if (!request_.store) return;
  json::object answer{{"role", "assistant"}, {"content", nullptr}};
  json::array calls;
  for (const Item& item : items_) {
    if (item.kind == Kind::kMessage) answer["content"] = item.text;
    if (item.kind != Kind::kCall) continue;
    calls.push_back({{"id", item.call_id},
                     {"type", "function"},
                     {"function", {{"name", item.name}, {"arguments", item.text}}}});
  }
  if (!calls.empty()) answer["tool_calls"] = std::move(calls);
  request_.remembered.push_back(std::move(answer));
  store_.put(id_, {json::serialize(request_.remembered), json::serialize(response)});
}

std::string ResponseWriter::event(const char* type, json::object data) {
  data["type"] = type;
  data["sequence_number"] = sequence_++;
  return fmt::format("event: {}\ndata: {}\n\n", type, json::serialize(data));
}

// Of an item: which it is and where it stands; of text, also which of its contents.
std::string ResponseWriter::item_event(const char* type, const Item& item, json::object data) {
  data["item_id"] = item.id;
  data["output_index"] = items_.size() - 1;
  if (item.kind != Kind::kCall) data["content_index"] = 0;
  return event(type, std::move(data));
}

std::string ResponseWriter::begin_item(const Item& item) {
  std::string out = event("response.output_item.added",
                          {{"output_index", items_.size() - 1}, {"item", item_object(item, "in_progress")}});
  if (item.kind != Kind::kCall)
    out += item_event("response.content_part.added", item, {{"part", text_part(item)}});
  return out;
}

std::string ResponseWriter::end_item(const Item& item) {
  std::string out;
  if (item.kind == Kind::kCall) {
    out = item_event("response.function_call_arguments.done", item,
                     {{"name", item.name}, {"arguments", item.text}});
  } else {
    const bool message = item.kind == Kind::kMessage;
    json::object data{{"text", item.text}};
    if (message) data["logprobs"] = item.logprobs;
    out = item_event(message ? "response.output_text.done" : "response.reasoning_text.done", item,
                     std::move(data));
    out += item_event("response.content_part.done", item, {{"part", text_part(item)}});
  }
  const char* status = finish_reason_ == "length" ? "incomplete" : "completed";
  out += event("response.output_item.done",
               {{"output_index", items_.size() - 1}, {"item", item_object(item, status)}});
  return out;
}

// Ends the item that is open unless it is of this kind, and begins one.
std::string ResponseWriter::move_to(Kind kind) {
  if (item_open_ && items_.back().kind == kind && kind != Kind::kCall) return {};
  std::string out;
  if (item_open_) out = end_item(items_.back());
  add_item(kind);
  item_open_ = true;
  return out;
}

std::string ResponseWriter::begin(const Usage&) {
  std::string out = event("response.created", {{"response", response("in_progress", nullptr)}});
  return out + event("response.in_progress", {{"response", response("in_progress", nullptr)}});
}

std::string ResponseWriter::part(const ChoicePart& part, bool) {
  std::string out;
  if (!part.reasoning.empty()) {
    const size_t before = items_.size();
    out += move_to(Kind::kReasoning);
    if (items_.size() > before) out += begin_item(items_.back());
    out += item_event("response.reasoning_text.delta", items_.back(), {{"delta", part.reasoning}});
    items_.back().text += part.reasoning;
  }
  json::array told = logprobs_of(part);
  pending_.insert(pending_.end(), told.begin(), told.end());
  if (!part.text.empty()) {
    const size_t before = items_.size();
    out += move_to(Kind::kMessage);
    if (items_.size() > before) out += begin_item(items_.back());
    const json::array logprobs = std::exchange(pending_, {});
    out += item_event("response.output_text.delta", items_.back(),
                      {{"delta", part.text}, {"logprobs", logprobs}});
    items_.back().text += part.text;
    items_.back().logprobs.insert(items_.back().logprobs.end(), logprobs.begin(), logprobs.end());
  }
  for (const ToolCallPart& call : part.calls) {
    if (call.begins) {
      out += move_to(Kind::kCall);
      items_.back().call_id = call.id;
      items_.back().name = call.name;
      out += begin_item(items_.back());
    }
    if (call.arguments.empty()) continue;
    out += item_event("response.function_call_arguments.delta", items_.back(), {{"delta", call.arguments}});
    items_.back().text += call.arguments;
  }
  if (part.finish_reason != nullptr) finish_reason_ = part.finish_reason;
  return out;
}

std::string ResponseWriter::end(const Usage& usage) {
  std::string out;
  if (item_open_) out = end_item(items_.back());
  item_open_ = false;
  const json::object whole = final_response(usage);
  remember(whole);
  const bool cut = finish_reason_ == "length";
  return out + event(cut ? "response.incomplete" : "response.completed", {{"response", whole}});
}

std::string ResponseWriter::failure(const ApiError& error) {
  json::object failed = response("failed", nullptr);
  failed["error"] = error_object(error);
  return event("response.failed", {{"response", std::move(failed)}});
}

std::string ResponseWriter::whole(std::span<const ChoicePart> choices, const Usage& usage) {
  (void)part(choices[0], true);
  item_open_ = false;
  const json::object whole = final_response(usage);
  remember(whole);
  return json::serialize(whole);
}

}  // namespace plow
