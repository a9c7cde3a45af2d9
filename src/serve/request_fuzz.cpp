// Arbitrary bytes as the body of every request. Beyond not crashing: what is accepted fits the context and
// its ids lie in the vocabulary, a structure that is accepted can be written until it ends or fails with a
// message, and every error is JSON with a message.
#include "base/check.h"
#include "serve/answer_spec.h"
#include "serve/messages_api.h"
#include "serve/responses_api.h"
#include "serve/service.h"
#include "serve/structure.h"
#include "serve/testing/byte_model.h"

#include <cstddef>
#include <cstdint>
#include <string_view>

namespace {

void check_error(const plow::ApiError& error) {
  const auto body = boost::json::parse(plow::error_json(error));
  PLOW_CHECK(!body.at("error").at("message").as_string().empty(), "an error without a message");
}

void check_spec(const plow::AnswerSpec& spec, const plow::ServedModel& model) {
  PLOW_CHECK(!spec.prompts.empty() && spec.n >= 1, "nothing was asked for");
  for (size_t i = 0; i < spec.prompts.size(); ++i) {
    PLOW_CHECK(!spec.prompts[i].empty() && (spec.max_tokens[i] >= 1 || spec.score_prompt),
               "an empty prompt or answer");
    PLOW_CHECK(spec.prompts[i].size() + spec.max_tokens[i] <= model.context, "beyond the context");
    for (const uint32_t id : spec.prompts[i]) PLOW_CHECK(id < model.vocab, "beyond the vocabulary");
  }
  for (const uint32_t id : spec.stop_ids) PLOW_CHECK(id < model.vocab, "beyond the vocabulary");
  PLOW_CHECK(plow::check_sampling(spec.sampling, plow::kByteModelVocab).ok(),
             "sampling that the engine refuses");
}

// Picks the first token that is allowed, or the last, some steps far.
void check_structure(const plow::AnswerSpec& spec, const plow::ServedModel& model) {
  static const plow::TokenTrie trie(
      model.vocab, [](uint32_t t) { return t < 256 ? std::string(1, static_cast<char>(t)) : std::string(); });
  plow::StructureRule rule(spec.structure, trie, model.vocab, spec.stop_ids);
  for (int step = 0; step < 40; ++step) {
    const auto mask = rule.allowed();
    if (!mask.ok()) {
      PLOW_CHECK(!mask.error().message.empty(), "an error without a message");
      return;
    }
    std::vector<uint32_t> allowed;
    for (uint32_t t = 0; t < 256; ++t) {
      if (((*mask)[t / 32] >> (t % 32) & 1) != 0) allowed.push_back(t);
    }
    if (allowed.empty() || rule.accept(step % 2 == 0 ? allowed.front() : allowed.back())) return;
  }
}

std::optional<plow::ApiError> parse_messages(const boost::json::object& body, const plow::ServedModel& model,
                                             plow::AnswerSpec& spec, std::vector<std::string>& unknown) {
  boost::json::object chat;
  if (auto error = plow::chat_of_messages(body, false, chat, unknown)) return error;
  return plow::parse_chat(chat, model, spec, unknown);
}

std::optional<plow::ApiError> parse_response(const boost::json::object& body, const plow::ServedModel& model,
                                             plow::AnswerSpec& spec, std::vector<std::string>& unknown) {
  static const plow::ResponseStore store;
  plow::ResponsesRequest read;
  if (auto error = plow::read_responses(body, store, read, unknown)) return error;
  return plow::parse_chat(read.chat, model, spec, unknown);
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  static const plow::ByteModel model(plow::ToolDialect::kHermes, true);
  boost::json::object body;
  if (const auto error = plow::parse_body({reinterpret_cast<const char*>(data), size}, body)) {
    check_error(*error);
    return 0;
  }
  for (const auto parse : {plow::parse_chat, plow::parse_completion, parse_messages, parse_response}) {
    plow::AnswerSpec spec;
    std::vector<std::string> unknown;
    if (const auto error = parse(body, *model, spec, unknown)) {
      check_error(*error);
    } else {
      check_spec(spec, *model);
      if (spec.structure) check_structure(spec, *model);
    }
  }
  for (const auto run : {plow::tokenize, plow::detokenize, plow::count_tokens}) {
    std::vector<std::string> unknown;
    const auto result = run(body, *model, unknown);
    if (const auto* error = std::get_if<plow::ApiError>(&result)) {
      check_error(*error);
    } else {
      PLOW_CHECK(boost::json::parse(std::get<std::string>(result)).is_object(), "no object");
    }
  }
  return 0;
}
