// What a request asks for, read and checked: nothing in it can be refused for what it says any more.
#pragma once

#include "grammar/automaton.h"
#include "serve/api_error.h"
#include "serve/served_model.h"
#include "serve/tool_calls.h"

#include <boost/json/object.hpp>

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace plow {

struct AnswerSpec {
  bool chat = false;
  // One of a chat, one or several of a completion; each gets n answers.
  std::vector<std::vector<uint32_t>> prompts;
  std::vector<std::string> echoes;  // the prompts' text, when it goes in front of the answers; else empty
  uint32_t n = 1;
  std::vector<uint32_t> max_tokens;  // [prompts]
  SamplingParams sampling{};         // without a seed and biases
  std::vector<TokenBias> biases;     // tokens ascending
  std::optional<uint64_t> seed;
  std::vector<uint32_t> stop_ids;
  std::vector<std::string> stops;
  int32_t priority = 0;                        // the higher goes first
  std::string cache_salt;                      // as of AnswerRequest
  std::shared_ptr<const Automaton> structure;  // of every answer; null: free text
  ToolDialect tools = ToolDialect::kNone;      // in which calls are written; kNone: an answer is text
  bool named_tool = false;
  ToolDialect channels = ToolDialect::kNone;  // of a chat whose answers are in marked parts
  std::string begun;                          // what the prompt has of the answer already
  bool thinks = false, in_thought = false;    // as of ServedModel and Conversation
  bool logprobs = false;                      // of the answer's tokens, with sampling.n_top others for each
  bool score_prompt = false;                  // of the prompt's, too
  bool stream = false, include_usage = false;
  bool skip_special = true;
  bool return_token_ids = false;
};

// Bodies that are too deep to be a request.
constexpr size_t kMostJsonDepth = 64;

// Errors: not UTF-8, not JSON, too deep, not an object.
std::optional<ApiError> parse_body(std::string_view text, boost::json::object& out);

// Errors: what the tables of request_fields.h refuse; stop strings, messages or prompts of a wrong shape;
// `model` names another model (404); the prompt and the answer do not fit the context
// (context_length_exceeded). Unknown fields are appended to `unknown`.
std::optional<ApiError> parse_chat(const boost::json::object& body, const ServedModel& model, AnswerSpec& out,
                                   std::vector<std::string>& unknown);
std::optional<ApiError> parse_completion(const boost::json::object& body, const ServedModel& model,
                                         AnswerSpec& out, std::vector<std::string>& unknown);

// As parse_chat(), whatever the length of the prompt: nothing is said of max_tokens.
std::optional<ApiError> read_chat(const boost::json::object& body, const ServedModel& model, AnswerSpec& out,
                                  std::vector<std::string>& unknown);

// The field `model`, when it is there, names this one. Errors: 404.
std::optional<ApiError> check_model_name(const boost::json::object& body, const ServedModel& model);

// Messages in the shape that templates read: contents of text parts joined by newlines, arguments of tool
// calls as objects. Errors: no messages, a role or a content that is not known.
std::optional<ApiError> read_messages(const boost::json::array& messages, boost::json::array& out);

// The seed of the i-th answer of a request; the first is the request's own.
uint64_t seed_of(uint64_t seed, uint64_t i);

}  // namespace plow
