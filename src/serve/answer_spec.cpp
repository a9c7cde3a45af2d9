#include "serve/answer_spec.h"

#include "serve/channel_parser.h"
#include "serve/fields.h"
#include "serve/request_fields.h"
#include "serve/sampling_fields.h"
#include "serve/structure.h"
#include "serve/tool_request.h"

#include <boost/json.hpp>
#include <fmt/format.h>

#include <algorithm>
#include <utility>

namespace plow {
namespace {

namespace json = boost::json;

std::optional<ApiError> read_stops(const FieldReader& fields, const ServedModel& model, AnswerSpec& out) {
  out.stops = fields.strings("stop");
  if (out.stops.size() > kMostStops) {
    return invalid_field(
        "stop", fmt::format("stop has {} strings; up to {} are allowed.", out.stops.size(), kMostStops));
  }
  for (const std::string& stop : out.stops) {
    if (stop.empty() || stop.size() > kMostStopBytes) {
      return invalid_field("stop", fmt::format("A stop string has from 1 to {} bytes; one has {}.",
                                               kMostStopBytes, stop.size()));
    }
  }
  if (!fields.boolean("ignore_eos").value_or(false)) out.stop_ids = model.stop_ids;
  std::vector<uint32_t> ids;
  if (auto error = fields.ids("stop_token_ids", model.vocab, ids)) return error;
  out.stop_ids.insert(out.stop_ids.end(), ids.begin(), ids.end());
  std::ranges::sort(out.stop_ids);
  out.stop_ids.erase(std::unique(out.stop_ids.begin(), out.stop_ids.end()), out.stop_ids.end());
  return {};
}

std::optional<ApiError> read_stream_options(const FieldReader& fields, AnswerSpec& out,
                                            std::vector<std::string>& unknown) {
  out.stream = fields.boolean("stream").value_or(false);
  const json::value* options = fields.find("stream_options");
  if (options == nullptr) return {};
  if (!out.stream)
    return invalid_field("stream_options", "stream_options is only allowed when stream is true.");
  if (auto error = check_fields(stream_option_fields(), options->get_object(), unknown)) {
    error->param = "stream_options." + error->param;
    return error;
  }
  out.include_usage = FieldReader(options->get_object()).boolean("include_usage").value_or(false);
  return {};
}

// What chats and completions have in common.
std::optional<ApiError> read_common(const FieldTable& table, const json::object& body,
                                    const ServedModel& model, AnswerSpec& out,
                                    std::vector<std::string>& unknown) {
  if (auto error = check_fields(table, body, unknown)) return error;
  if (auto error = check_model_name(body, model)) return error;
  const FieldReader fields(body);
  out.n = fields.count("n").value_or(1);
  out.skip_special = fields.boolean("skip_special_tokens").value_or(true);
  out.return_token_ids = fields.boolean("return_token_ids").value_or(false);
  if (const json::value* salt = fields.find("cache_salt")) out.cache_salt = salt->get_string();
  out.priority = -static_cast<int32_t>(fields.number("priority").value_or(0));
  if (auto error = read_sampling(fields, model, out)) return error;
  if (auto error = read_stops(fields, model, out)) return error;
  if (auto error = read_structure(fields, out.structure)) return error;
  return read_stream_options(fields, out, unknown);
}

// Most tokens of the answer to each prompt. Errors: the context has no room for them.
std::optional<ApiError> fit_context(const FieldReader& fields, const ServedModel& model,
                                    std::optional<uint32_t> fallback, AnswerSpec& out) {
  std::optional<uint32_t> wanted = fields.count("max_completion_tokens");
  if (!wanted) wanted = fields.count("max_tokens");
  for (const std::vector<uint32_t>& prompt : out.prompts) {
    const uint64_t least = wanted.value_or(1);
    if (prompt.size() + least > model.context) {
      ApiError error = invalid_field(
          out.chat ? "messages" : "prompt",
          fmt::format(
              "The context is {} tokens; the prompt has {} and the answer may take {}. Shorten the prompt{}.",
              model.context, prompt.size(), least, wanted ? " or lower max_tokens" : ""));
      error.code = "context_length_exceeded";
      error.context = ContextFigures{prompt.size(), model.context, least};
      return error;
    }
    const auto room = static_cast<uint32_t>(model.context - prompt.size());
    out.max_tokens.push_back(wanted ? *wanted : std::min(fallback.value_or(room), room));
  }
  return {};
}

ApiError unreadable(const std::string& param, const Error& error) {
  return {.message = error.message, .param = param, .code = "invalid_prompt"};
}

// The prompts of /v1/completions: one text, several, one list of ids, several.
std::optional<ApiError> read_prompts(const json::value& prompt, const FieldReader& fields,
                                     const ServedModel& model, AnswerSpec& out) {
  const EncodeOptions options{.add_special_tokens = fields.boolean("add_special_tokens").value_or(true)};
  const auto add_text = [&](const json::string& text) -> std::optional<ApiError> {
    auto ids = model.tokenizer.encode(text, options);
    if (!ids.ok()) return unreadable("prompt", ids.error());
    out.prompts.push_back(std::move(*ids));
    return {};
  };
  const auto add_ids = [&](const json::value& ids) -> std::optional<ApiError> {
    out.prompts.emplace_back();
    return read_ids(ids, "prompt", model.vocab, out.prompts.back());
  };
  if (prompt.is_string()) return add_text(prompt.get_string());
  const json::array& items = prompt.get_array();
  if (items.empty()) return invalid_field("prompt", "prompt is empty; it needs text or token ids.");
  if (items[0].is_number()) return add_ids(prompt);
  if (items.size() > kMostPrompts) {
    return invalid_field("prompt", fmt::format("prompt has {} prompts; up to {} are answered at once.",
                                               items.size(), kMostPrompts));
  }
  for (const json::value& item : items) {
    std::optional<ApiError> error;
    if (item.is_string() && items[0].is_string()) {
      error = add_text(item.get_string());
    } else if (item.is_array() && items[0].is_array()) {
      error = add_ids(item);
    } else {
      error = invalid_field("prompt", "The prompts must all be strings or all be arrays of token ids.");
    }
    if (error) return error;
  }
  return {};
}

}  // namespace

uint64_t seed_of(uint64_t seed, uint64_t i) {
  if (i == 0) return seed;
  // SplitMix64 (Steele, Lea, Flood 2014), which makes far seeds of near ones.
  uint64_t z = seed + i * 0x9e3779b97f4a7c15u;
  z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
  z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
  return z ^ (z >> 31);
}

std::optional<ApiError> parse_body(std::string_view text, json::object& out) {
  json::parse_options options;
  options.max_depth = kMostJsonDepth;
  boost::system::error_code error;
  json::stream_parser parser({}, options);
  parser.write(text.data(), text.size(), error);
  if (!error) parser.finish(error);
  const auto refuse = [](std::string message) {
    return ApiError{.message = std::move(message), .code = "invalid_json"};
  };
  if (error == json::error::too_deep)
    return refuse(fmt::format("The body is nested deeper than {} levels.", kMostJsonDepth));
  if (error) return refuse(fmt::format("The body is not JSON in UTF-8: {}.", error.message()));
  json::value value = parser.release();
  if (!value.is_object()) return refuse("The body must be a JSON object.");
  out = std::move(value.get_object());
  return {};
}

std::optional<ApiError> check_model_name(const json::object& body, const ServedModel& model) {
  const json::value* name = FieldReader(body).find("model");
  if (name == nullptr || name->get_string().empty() || name->get_string() == model.name) return {};
  return ApiError{.status = 404,
                  .message = fmt::format("There is no model {}; this server has \"{}\".",
                                         json::serialize(*name), model.name),
                  .param = "model",
                  .code = "model_not_found"};
}

std::optional<ApiError> read_chat(const json::object& body, const ServedModel& model, AnswerSpec& out,
                                  std::vector<std::string>& unknown) {
  out.chat = true;
  if (auto error = read_common(chat_fields(), body, model, out, unknown)) return error;
  const FieldReader fields(body);
  out.logprobs = fields.boolean("logprobs").value_or(false);
  out.sampling.n_top = fields.count("top_logprobs").value_or(0);
  if (out.sampling.n_top > 0 && !out.logprobs)
    return invalid_field("top_logprobs", "top_logprobs is only allowed when logprobs is true.");
  json::array messages;
  if (auto error = read_messages(fields.find("messages")->get_array(), messages)) return error;
  json::object variables;
  if (const json::value* kwargs = fields.find("chat_template_kwargs")) variables = kwargs->get_object();
  if (const json::value* effort = fields.find("reasoning_effort")) variables["reasoning_effort"] = *effort;
  ToolRequest tools;
  if (auto error = read_tools(fields, model, tools)) return error;
  const ToolDialect channels = has_channels(model.tool_dialect) ? model.tool_dialect : ToolDialect::kNone;
  if (out.structure &&
      (tools.grammar || (channels != ToolDialect::kNone && tools.dialect != ToolDialect::kNone)))
    return invalid_field("tools", "tools and a structure of the answer exclude each other.");
  // A structure is that of the final message, so there it begins.
  if (channels == ToolDialect::kHarmony && out.structure) tools.begin = "<|channel|>final<|message|>";
  if (tools.grammar) out.structure = tools.grammar;
  out.tools = channels == ToolDialect::kNone ? tools.dialect : ToolDialect::kNone;
  out.channels = channels;
  out.begun = tools.begin;
  out.named_tool = tools.named;
  auto conversation =
      encode_conversation(model, {std::move(messages), std::move(tools.for_template), std::move(variables),
                                  fields.boolean("add_generation_prompt").value_or(true)});
  if (!conversation.ok()) return unreadable("messages", conversation.error());
  out.thinks = model.thinks;
  out.in_thought = conversation->in_thought;
  out.prompts.push_back(std::move(conversation->ids));
  if (out.begun.empty()) return {};
  auto begun = model.tokenizer.encode(out.begun, {.add_special_tokens = false, .parse_special = true});
  if (!begun.ok()) return unreadable("messages", begun.error());
  out.prompts[0].insert(out.prompts[0].end(), begun->begin(), begun->end());
  return {};
}

std::optional<ApiError> parse_chat(const json::object& body, const ServedModel& model, AnswerSpec& out,
                                   std::vector<std::string>& unknown) {
  if (auto error = read_chat(body, model, out, unknown)) return error;
  return fit_context(FieldReader(body), model, std::nullopt, out);
}

std::optional<ApiError> parse_completion(const json::object& body, const ServedModel& model, AnswerSpec& out,
                                         std::vector<std::string>& unknown) {
  if (auto error = read_common(completion_fields(), body, model, out, unknown)) return error;
  const FieldReader fields(body);
  if (const auto logprobs = fields.count("logprobs")) {
    out.logprobs = true;
    out.sampling.n_top = *logprobs;
  }
  if (auto error = read_prompts(*fields.find("prompt"), fields, model, out)) return error;
  for (const std::vector<uint32_t>& prompt : out.prompts) {
    if (prompt.empty()) return invalid_field("prompt", "A prompt is empty; it needs at least one token.");
  }
  if (out.prompts.size() * out.n > kMostPrompts) {
    return invalid_field("n",
                         fmt::format("{} prompts with n = {} are {} answers; up to {} are given at once.",
                                     out.prompts.size(), out.n, out.prompts.size() * out.n, kMostPrompts));
  }
  const bool echo = fields.boolean("echo").value_or(false);
  const bool answers =
      fields.count("max_completion_tokens").value_or(fields.count("max_tokens").value_or(1)) > 0;
  if (!answers && !echo)
    return invalid_field("max_tokens", "max_tokens is 0: nothing is left to answer without echo.");
  if (echo) {
    // A prompt without an answer is run for the sake of its scores.
    out.score_prompt = out.logprobs || !answers;
    for (const auto& prompt : out.prompts)
      out.echoes.push_back(model.tokenizer.decode(prompt, out.skip_special));
  }
  constexpr uint32_t kOpenAiDefault = 16;
  return fit_context(fields, model, kOpenAiDefault, out);
}

}  // namespace plow
