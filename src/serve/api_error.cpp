#include "serve/api_error.h"

#include "base/json_string.h"

#include <fmt/format.h>

#include <iterator>
#include <utility>

namespace plow {

std::string error_json(const ApiError& error) {
  const auto string_or_null = [](std::string& out, const std::string& text) {
    if (text.empty()) {
      out += "null";
    } else {
      append_json_string(out, text);
    }
  };
  std::string out = "{\"error\":{\"message\":";
  append_json_string(out, error.message);
  out += ",\"type\":";
  append_json_string(out, error.type);
  out += ",\"param\":";
  string_or_null(out, error.param);
  out += ",\"code\":";
  string_or_null(out, error.code);
  if (const auto& c = error.context) {
    fmt::format_to(std::back_inserter(out), ",\"n_prompt_tokens\":{},\"n_ctx\":{},\"max_tokens\":{}",
                   c->n_prompt_tokens, c->n_ctx, c->max_tokens);
  }
  return out + "}}";
}

ApiError invalid_field(std::string param, std::string message) {
  return {.message = std::move(message), .param = std::move(param), .code = "invalid_value"};
}

ApiError unsupported_field(std::string param, std::string message) {
  return {.message = std::move(message), .param = std::move(param), .code = "unsupported_parameter"};
}

}  // namespace plow
