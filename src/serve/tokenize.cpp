// /tokenize and /detokenize in the shapes of vLLM (prompt, messages; count, tokens) and of llama.cpp
// (content; tokens).
#include "base/json_string.h"
#include "serve/answer_spec.h"
#include "serve/messages_api.h"
#include "serve/request_fields.h"
#include "serve/service.h"
#include "text/tokenizer/utf8.h"

#include <boost/json.hpp>
#include <fmt/format.h>

#include <algorithm>
#include <iterator>

namespace plow {
namespace {

namespace json = boost::json;

Result<std::vector<uint32_t>> encode_text(const FieldReader& fields, const ServedModel& model,
                                          const char* name) {
  const bool is_prompt = std::string_view(name) == "prompt";
  EncodeOptions options;
  options.add_special_tokens =
      fields.boolean("add_special_tokens").value_or(fields.boolean("add_special").value_or(is_prompt));
  options.parse_special = fields.boolean("parse_special").value_or(false);
  return model.tokenizer.encode(fields.find(name)->get_string(), options);
}

std::optional<ApiError> encode_input(const FieldReader& fields, const ServedModel& model,
                                     std::vector<uint32_t>& ids) {
  const char* name = *std::ranges::find_if(tokenize_fields().one_of,
                                           [&](const char* each) { return fields.find(each) != nullptr; });
  Result<std::vector<uint32_t>> encoded = std::vector<uint32_t>();
  if (std::string_view(name) == "messages") {
    json::array messages;
    if (auto error = read_messages(fields.find(name)->get_array(), messages)) return error;
    const json::value* kwargs = fields.find("chat_template_kwargs");
    const json::value* tools = fields.find("tools");
    const bool has_tools = tools != nullptr && !tools->get_array().empty();
    auto conversation = encode_conversation(model, {std::move(messages), has_tools ? *tools : json::value(),
                                                    kwargs == nullptr ? json::object() : kwargs->get_object(),
                                                    fields.boolean("add_generation_prompt").value_or(true)});
    if (!conversation.ok()) return invalid_field(name, conversation.error().message);
    encoded = std::move(conversation->ids);
  } else {
    encoded = encode_text(fields, model, name);
  }
  if (!encoded.ok()) return invalid_field(name, encoded.error().message);
  ids = std::move(*encoded);
  return {};
}

// The bytes of a token as a string, or as an array of numbers when they are not UTF-8, as llama.cpp does.
void append_piece(std::string& out, const std::string& bytes) {
  if (!first_invalid_utf8(bytes)) return append_json_string(out, bytes);
  out += '[';
  for (size_t i = 0; i < bytes.size(); ++i)
    fmt::format_to(std::back_inserter(out), "{}{}", i > 0 ? "," : "",
                   static_cast<unsigned>(static_cast<unsigned char>(bytes[i])));
  out += ']';
}

}  // namespace

std::variant<std::string, ApiError> tokenize(const json::object& body, const ServedModel& model,
                                             std::vector<std::string>& unknown) {
  if (auto error = check_fields(tokenize_fields(), body, unknown)) return *error;
  if (auto error = check_model_name(body, model)) return *error;
  const FieldReader fields(body);
  std::vector<uint32_t> ids;
  if (auto error = encode_input(fields, model, ids)) return *error;
  const bool pieces = fields.boolean("with_pieces").value_or(false);
  std::string out =
      fmt::format("{{\"count\":{},\"max_model_len\":{},\"tokens\":[", ids.size(), model.context);
  for (size_t i = 0; i < ids.size(); ++i) {
    if (i > 0) out += ',';
    if (!pieces) {
      fmt::format_to(std::back_inserter(out), "{}", ids[i]);
      continue;
    }
    fmt::format_to(std::back_inserter(out), "{{\"id\":{},\"piece\":", ids[i]);
    append_piece(out, model.tokenizer.token_bytes(ids[i]));
    out += '}';
  }
  out += "],\"token_strs\":";
  if (!fields.boolean("return_token_strs").value_or(false)) return out + "null}";
  for (size_t i = 0; i < ids.size(); ++i) {
    out += i == 0 ? '[' : ',';
    append_json_string(out, model.tokenizer.id_to_token(ids[i]));
  }
  return out + (ids.empty() ? "[]}" : "]}");
}

std::variant<std::string, ApiError> detokenize(const json::object& body, const ServedModel& model,
                                               std::vector<std::string>& unknown) {
  if (auto error = check_fields(detokenize_fields(), body, unknown)) return *error;
  if (auto error = check_model_name(body, model)) return *error;
  std::vector<uint32_t> ids;
  if (auto error = FieldReader(body).ids("tokens", model.vocab, ids)) return *error;
  const std::string text = model.tokenizer.decode(ids, false);
  std::string out = "{\"prompt\":";
  append_json_string(out, text);
  out += ",\"content\":";
  append_json_string(out, text);
  return out + "}";
}

std::variant<std::string, ApiError> count_tokens(const json::object& body, const ServedModel& model,
                                                 std::vector<std::string>& unknown) {
  json::object chat;
  if (auto error = chat_of_messages(body, true, chat, unknown)) return *error;
  AnswerSpec spec;
  if (auto error = read_chat(chat, model, spec, unknown)) return *error;
  return json::serialize(json::object{{"input_tokens", spec.prompts[0].size()}});
}

std::string tokenizer_info(const ServedModel& model) {
  json::object info = special_token_names(model.tokenizer);
  for (const char* name : {"bos_token", "eos_token", "pad_token", "unk_token"}) info.emplace(name, nullptr);
  info["tokenizer_class"] = "plow";
  info["vocab_size"] = model.tokenizer.vocab_size();
  info["model_max_length"] = model.context;
  return json::serialize(info);
}

}  // namespace plow
