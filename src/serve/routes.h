// The routes of the server: one table that requests are looked up in, that metrics are labelled with, and
// that /openapi.json is made of.
#pragma once

#include "serve/fields.h"

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>

namespace plow {

enum class RouteId : uint8_t {
  kChat,
  kCompletions,
  kResponses,
  kResponse,
  kMessages,
  kCountTokens,
  kModels,
  kModel,
  kTokenize,
  kDetokenize,
  kTokenizerInfo,
  kHealthz,
  kReadyz,
  kHealth,
  kVersion,
  kStatus,
  kMetrics,
  kOpenApi,
  kPage,
  kNone,  // no such route; not in the table
};
constexpr size_t kRouteIds = static_cast<size_t>(RouteId::kNone) + 1;

struct Route {
  RouteId id;
  const char* method;
  const char* path;  // /v1/models/{model}: a last part that may be anything, once no other path fits
  bool keyless;      // answers without the API key
  const char* summary;
  const FieldTable& (*fields)() = nullptr;  // of the body, when it has one
};

std::span<const Route> routes();

struct RouteMatch {
  const Route* route = nullptr;  // null: none for this path and method
  std::string parameter;         // what stands for {model} or {response}, decoded
  std::string allowed;           // methods that the path has, when the method is not among them: "GET, HEAD"
};
// Routes under /v1 answer without it too. HEAD finds what GET does.
RouteMatch find_route(std::string_view method, std::string_view path);

// "/v1/chat/completions"; "other" for kNone.
const char* route_name(RouteId id);

// Percent-decoding; null for a broken escape.
std::optional<std::string> percent_decoded(std::string_view text);

}  // namespace plow
