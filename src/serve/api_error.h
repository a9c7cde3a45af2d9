// Errors as OpenAI's clients read them: {"error": {"message", "type", "param", "code"}} beside the status of
// the response, which decides whether a client tries again (408, 409, 429 and 5xx are tried again).
#pragma once

#include <cstdint>
#include <optional>
#include <string>

namespace plow {

struct ContextFigures {
  uint64_t n_prompt_tokens = 0, n_ctx = 0, max_tokens = 0;
};

struct ApiError {
  int status = 400;  // of HTTP
  std::string message = {};
  std::string type = "invalid_request_error";
  std::string param = {};                      // the field that is wrong; empty: null
  std::string code = {};                       // empty: null
  std::optional<ContextFigures> context = {};  // of context_length_exceeded
  uint32_t retry_after = 0;                    // seconds, for the header Retry-After; 0: none
};

std::string error_json(const ApiError& error);

// The field `param` is wrong: 400.
ApiError invalid_field(std::string param, std::string message);
// The field `param` would change the answer in a way that is not there: 400.
ApiError unsupported_field(std::string param, std::string message);

}  // namespace plow
