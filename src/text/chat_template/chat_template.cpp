#include "text/chat_template/chat_template.h"

#include "text/chat_template/interpreter.h"
#include "text/chat_template/json.h"
#include "text/chat_template/program.h"
#include "text/chat_template/unicode.h"

#include <fmt/format.h>

#include <algorithm>

namespace plow {
namespace {

using jinja::Dict;
using jinja::Interpreter;
using jinja::Kind;
using jinja::Runtime;
using jinja::Text;
using jinja::Value;

constexpr size_t kMaxSourceBytes = size_t{1} << 20;  // the largest published template has some 20 KB

Error failure_error(const jinja::Failure& failure) {
  if (failure.line == 0) return input_error(fmt::format("chat template: {}", failure.message));
  return input_error(fmt::format("chat template, line {}: {}", failure.line, failure.message));
}

Error no_memory() {
  return input_error("chat template: there is not enough memory for it; free some and try again");
}

// One message as the template sees it: null values dropped, reasoning under both names, a known role trusted.
// Source: _normalize_chat_messages and _alias_reasoning_fields in transformers' chat_template_utils.
Value message_value(Runtime& rt, const boost::json::object& message, const ChatInput& input) {
  Dict dict;
  const auto add = [&](std::string_view key, const boost::json::value& value) {
    const bool trusted = key == "role" && value.is_string() &&
                         std::find(input.trusted_roles.begin(), input.trusted_roles.end(),
                                   value.get_string()) != input.trusted_roles.end();
    jinja::put_in_dict(rt, dict, from_json(rt, boost::json::value(key), true),
                       from_json(rt, value, !trusted));
  };
  const boost::json::value* reasoning = nullptr;
  for (const std::string_view name : {"reasoning_content", "thinking", "reasoning"}) {
    const boost::json::value* value = message.if_contains(name);
    if (!reasoning && value && !value->is_null()) reasoning = value;
  }
  if (reasoning) add("thinking", *reasoning);
  for (const auto& [key, value] : message) {
    if (!value.is_null()) add(key, value);
  }
  if (reasoning) add("reasoning_content", *reasoning);
  Value result = rt.heap.make_dict(std::move(dict));
  result.data = true;
  return result;
}

Value messages_value(Runtime& rt, const ChatInput& input) {
  if (!input.messages.is_array() || input.messages.get_array().empty()) {
    jinja::fail("the conversation needs at least one message, in an array");
  }
  std::vector<Value> messages;
  for (const boost::json::value& message : input.messages.get_array()) {
    if (!message.is_object()) jinja::fail("a message of the conversation is not an object");
    messages.push_back(message_value(rt, message.get_object(), input));
  }
  Value result = rt.heap.make_list(std::move(messages));
  result.data = true;
  return result;
}

void check_documents(const boost::json::value& documents) {
  if (documents.is_null()) return;
  const bool fits = documents.is_array() &&
                    std::all_of(documents.get_array().begin(), documents.get_array().end(),
                                [](const boost::json::value& document) { return document.is_object(); });
  if (!fits) jinja::fail("the documents must be an array of objects");
}

void set_variables(Interpreter& interpreter, Runtime& rt, const ChatInput& input) {
  const auto set = [&](std::string_view name, const boost::json::value& value, bool data) {
    if (interpreter.mentions(name)) interpreter.set_variable(name, from_json(rt, value, data));
  };
  check_documents(input.documents);
  if (!input.tools.is_null() && !input.tools.is_array()) jinja::fail("the tools must be an array");
  const Value messages = messages_value(rt, input);
  for (const auto& [name, value] : input.special_tokens) set(name, value, false);
  for (const auto& [name, value] : input.variables) set(name, value, true);
  set("tools", input.tools, true);
  set("documents", input.documents, true);
  set("add_generation_prompt", input.add_generation_prompt, false);
  if (interpreter.mentions("messages")) interpreter.set_variable("messages", messages);
}

std::vector<PromptSegment> segments_of(const Text& text) {
  std::vector<PromptSegment> segments;
  const auto add = [&](size_t begin, size_t end, bool trusted) {
    if (begin < end) segments.push_back({text.bytes.substr(begin, end - begin), trusted});
  };
  size_t at = 0;
  for (const jinja::ByteRange& data : text.data) {
    add(at, data.begin, true);
    add(data.begin, data.end, false);
    at = data.end;
  }
  add(at, text.bytes.size(), true);
  return segments;
}

Result<Text> render_text(const jinja::Program& program, const ChatInput& input, const RenderLimits& limits) {
  try {
    Runtime rt(limits);
    rt.now = input.now;
    Interpreter interpreter(program, rt);
    set_variables(interpreter, rt, input);
    return interpreter.run();
  } catch (const jinja::Failure& failure) {
    return failure_error(failure);
  } catch (const std::bad_alloc&) {
    return no_memory();
  }
}

}  // namespace

Result<ChatTemplate> ChatTemplate::compile(std::string_view source) {
  if (source.size() > kMaxSourceBytes) {
    return input_error(fmt::format("chat template: {} bytes are more than the {} that a template may have",
                                   source.size(), kMaxSourceBytes));
  }
  if (!jinja::is_valid_utf8(source)) return input_error("chat template: the text is not UTF-8");
  try {
    return ChatTemplate(std::make_unique<const jinja::Program>(jinja::parse(source)));
  } catch (const jinja::Failure& failure) {
    return failure_error(failure);
  } catch (const std::bad_alloc&) {
    return no_memory();
  }
}

ChatTemplate::ChatTemplate(std::unique_ptr<const jinja::Program> program) : program_(std::move(program)) {}
ChatTemplate::ChatTemplate(ChatTemplate&&) noexcept = default;
ChatTemplate& ChatTemplate::operator=(ChatTemplate&&) noexcept = default;
ChatTemplate::~ChatTemplate() = default;

Result<std::vector<PromptSegment>> ChatTemplate::render_segments(const ChatInput& input,
                                                                 const RenderLimits& limits) const {
  PLOW_TRY(const Text text, render_text(*program_, input, limits));
  return segments_of(text);
}

Result<std::string> ChatTemplate::render(const ChatInput& input, const RenderLimits& limits) const {
  PLOW_TRY(Text text, render_text(*program_, input, limits));
  return std::move(text.bytes);
}

}  // namespace plow
