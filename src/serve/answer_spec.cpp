#include "serve/answer_spec.h"

#include "runtime/engine.h"
#include "serve/fields.h"
#include "serve/request_fields.h"
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

// Whole numbers beyond 53 bits are exact here. -1 stands for none.
std::optional<uint64_t> read_seed(const FieldReader& fields) {
  const json::value* value = fields.find("seed");
  if (value == nullptr) return std::nullopt;
  if (value->is_uint64()) return value->get_uint64();
  if (value->is_double() && value->get_double() >= 0) {
    constexpr double kEnd = 18446744073709551616.0;  // 2^64
    return value->get_double() < kEnd ? static_cast<uint64_t>(value->get_double()) : ~uint64_t{0};
  }
  const int64_t seed = value->is_int64() ? value->get_int64() : static_cast<int64_t>(value->get_double());
  return seed == -1 ? std::nullopt : std::optional(static_cast<uint64_t>(seed));
}

std::optional<ApiError> read_sampling(const FieldReader& fields, const ServedModel& model, AnswerSpec& out) {
  SamplingParams& p = out.sampling;
  p = model.sampling;
  if (const auto t = fields.number("temperature")) {
    p.flags = *t > 0 ? p.flags & ~uint32_t{kSampleGreedy} : p.flags | kSampleGreedy;
    p.temperature = *t > 0 ? static_cast<float>(*t) : 1.0f;
  }
  const auto set = [&](const char* name, float& target) {
    if (const auto value = fields.number(name)) target = static_cast<float>(*value);
  };
  set("top_p", p.top_p);
  set("min_p", p.min_p);
  set("presence_penalty", p.presence_penalty);
  set("frequency_penalty", p.frequency_penalty);
  set("repetition_penalty", p.repetition_penalty);
  if (const auto k = fields.number("top_k")) p.top_k = *k > 0 ? static_cast<uint32_t>(*k) : 0;
  out.seed = read_seed(fields);
  // The ranges of the table are those of the sampler, but for what a float rounds to: a temperature of 1e-60.
  const Status status = check_sampling(p);
  return status.ok() ? std::nullopt : std::optional(invalid_field("temperature", status.error().message));
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

std::optional<ApiError> parse_chat(const json::object& body, const ServedModel& model, AnswerSpec& out,
                                   std::vector<std::string>& unknown) {
  out.chat = true;
  if (auto error = read_common(chat_fields(), body, model, out, unknown)) return error;
  const FieldReader fields(body);
  out.logprobs = fields.boolean("logprobs").value_or(false);
  json::array messages;
  if (auto error = read_messages(fields.find("messages")->get_array(), messages)) return error;
  json::object variables;
  if (const json::value* kwargs = fields.find("chat_template_kwargs")) variables = kwargs->get_object();
  if (const json::value* effort = fields.find("reasoning_effort")) variables["reasoning_effort"] = *effort;
  ToolRequest tools;
  if (auto error = read_tools(fields, model, tools)) return error;
  if (tools.grammar && out.structure)
    return invalid_field("tools", "tools and a structure of the answer exclude each other.");
  if (tools.grammar) out.structure = tools.grammar;
  out.tools = tools.dialect;
  out.named_tool = tools.named;
  auto conversation =
      encode_conversation(model, {std::move(messages), std::move(tools.for_template), std::move(variables),
                                  fields.boolean("add_generation_prompt").value_or(true)});
  if (!conversation.ok()) return unreadable("messages", conversation.error());
  out.thinks = model.thinks;
  out.in_thought = conversation->in_thought;
  out.prompts.push_back(std::move(conversation->ids));
  return fit_context(fields, model, std::nullopt, out);
}

std::optional<ApiError> parse_completion(const json::object& body, const ServedModel& model, AnswerSpec& out,
                                         std::vector<std::string>& unknown) {
  if (auto error = read_common(completion_fields(), body, model, out, unknown)) return error;
  const FieldReader fields(body);
  if (const auto logprobs = fields.count("logprobs")) {
    if (*logprobs > 0) {
      return unsupported_field("logprobs",
                               "This server gives the log-probability of the tokens of the answer "
                               "only: logprobs must be 0.");
    }
    out.logprobs = true;
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
  if (fields.boolean("echo").value_or(false)) {
    if (out.logprobs)
      return unsupported_field(
          "logprobs", "This server has no log-probabilities of the prompt: use logprobs without echo.");
    for (const auto& prompt : out.prompts)
      out.echoes.push_back(model.tokenizer.decode(prompt, out.skip_special));
  }
  constexpr uint32_t kOpenAiDefault = 16;
  return fit_context(fields, model, kOpenAiDefault, out);
}

}  // namespace plow
