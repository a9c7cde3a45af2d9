#include "serve/routes.h"

#include "serve/request_fields.h"

#include <array>
#include <charconv>

namespace plow {
namespace {

constexpr bool kKeyless = true, kNeedsKey = false;

// clang-format off
constexpr std::array<Route, kRouteIds - 1> kRoutes = {{
    {RouteId::kChat, "POST", "/v1/chat/completions", kNeedsKey, "An answer to a conversation", chat_fields},
    {RouteId::kCompletions, "POST", "/v1/completions", kNeedsKey, "Text that goes on from a prompt", completion_fields},
    {RouteId::kResponses, "POST", "/v1/responses", kNeedsKey, "An answer to a conversation, as a list of items", responses_fields},
    {RouteId::kResponse, "GET", "/v1/responses/{response}", kNeedsKey, "A response that was stored"},
    {RouteId::kMessages, "POST", "/v1/messages", kNeedsKey, "An answer to a conversation, in the shape of Anthropic's API", messages_fields},
    {RouteId::kCountTokens, "POST", "/v1/messages/count_tokens", kNeedsKey, "How many tokens a conversation has", count_tokens_fields},
    {RouteId::kModels, "GET", "/v1/models", kNeedsKey, "The models"},
    {RouteId::kModel, "GET", "/v1/models/{model}", kNeedsKey, "One model"},
    {RouteId::kTokenize, "POST", "/tokenize", kNeedsKey, "Text to token ids", tokenize_fields},
    {RouteId::kDetokenize, "POST", "/detokenize", kNeedsKey, "Token ids to text", detokenize_fields},
    {RouteId::kTokenizerInfo, "GET", "/tokenizer_info", kNeedsKey, "The tokenizer's special tokens"},
    {RouteId::kHealthz, "GET", "/healthz", kKeyless, "200 while the process lives"},
    {RouteId::kReadyz, "GET", "/readyz", kNeedsKey, "200 while requests are taken; 503 when the server drains or a step hangs"},
    {RouteId::kHealth, "GET", "/health", kNeedsKey, "The same under the name that others use"},
    {RouteId::kVersion, "GET", "/version", kNeedsKey, "The program's version"},
    {RouteId::kStatus, "GET", "/status", kNeedsKey, "What runs, waits, and takes memory"},
    {RouteId::kMetrics, "GET", "/metrics", kNeedsKey, "Figures for Prometheus"},
    {RouteId::kOpenApi, "GET", "/openapi.json", kNeedsKey, "This document"},
    {RouteId::kPage, "GET", "/", kKeyless, "A page to chat in; it asks for the key by itself"},
}};
// clang-format on

constexpr std::string_view kVersionPrefix = "/v1";

// What stands for {model} when `path` is of the form `pattern`.
std::optional<std::string_view> matched(std::string_view pattern, std::string_view path) {
  const size_t brace = pattern.find('{');
  if (brace == std::string_view::npos)
    return pattern == path ? std::optional(std::string_view()) : std::nullopt;
  if (path.size() <= brace || path.substr(0, brace) != pattern.substr(0, brace)) return std::nullopt;
  return path.substr(brace);
}

std::optional<std::string_view> matched_with_prefix(std::string_view pattern, std::string_view path) {
  if (const auto parameter = matched(pattern, path)) return parameter;
  return pattern.starts_with("/v1/") ? matched(pattern.substr(kVersionPrefix.size()), path) : std::nullopt;
}

}  // namespace

std::span<const Route> routes() { return kRoutes; }

RouteMatch find_route(std::string_view method, std::string_view path) {
  RouteMatch match;
  for (const Route& route : kRoutes) {
    const auto parameter = matched_with_prefix(route.path, path);
    if (!parameter) continue;
    const std::string_view own = route.method;
    if (own == method || (own == "GET" && method == "HEAD")) {
      const auto decoded = percent_decoded(*parameter);
      if (!decoded) return {};
      return {&route, *decoded, {}};
    }
    match.allowed = own == "GET" ? "GET, HEAD" : route.method;
  }
  return match;
}

const char* route_name(RouteId id) {
  for (const Route& route : kRoutes) {
    if (route.id == id) return route.path;
  }
  return "other";
}

std::optional<std::string> percent_decoded(std::string_view text) {
  std::string decoded;
  for (size_t i = 0; i < text.size(); ++i) {
    if (text[i] != '%') {
      decoded += text[i];
      continue;
    }
    unsigned value = 0;
    if (i + 2 >= text.size()) return std::nullopt;
    const auto [end, error] = std::from_chars(text.data() + i + 1, text.data() + i + 3, value, 16);
    if (error != std::errc{} || end != text.data() + i + 3) return std::nullopt;
    decoded += static_cast<char>(value);
    i += 2;
  }
  return decoded;
}

}  // namespace plow
