#include "serve/openapi.h"

#include "serve/request_fields.h"
#include "serve/routes.h"

#include <boost/json.hpp>
#include <fmt/format.h>

namespace plow {
namespace {

namespace json = boost::json;

json::value reference(const char* schema) {
  return {{"$ref", fmt::format("#/components/schemas/{}", schema)}};
}

json::value content(const char* type, json::value schema) {
  return {{type, {{"schema", std::move(schema)}}}};
}

bool answers(const Route& route) {
  return route.id == RouteId::kChat || route.id == RouteId::kCompletions || route.id == RouteId::kResponses ||
         route.id == RouteId::kMessages;
}

json::object success(const Route& route) {
  switch (route.id) {
    case RouteId::kChat:
    case RouteId::kCompletions:
    case RouteId::kResponses:
    case RouteId::kMessages:
      return {{"description", "The answer; server-sent events when stream is true"},
              {"content",
               {{"application/json", {{"schema", {{"type", "object"}}}}},
                {"text/event-stream", {{"schema", {{"type", "string"}}}}}}}};
    case RouteId::kPage:
      return {{"description", "HTML"}, {"content", content("text/html", {{"type", "string"}})}};
    case RouteId::kMetrics:
      return {{"description", "Prometheus' text format"},
              {"content", content("text/plain", {{"type", "string"}})}};
    default:
      return {{"description", "Done"}, {"content", content("application/json", {{"type", "object"}})}};
  }
}

json::object responses(const Route& route) {
  json::object all{{"200", success(route)}};
  const bool message = route.id == RouteId::kMessages || route.id == RouteId::kCountTokens;
  const auto add = [&](const char* status, const char* meaning) {
    all[status] = {{"description", meaning},
                   {"content", content("application/json", reference(message ? "MessageError" : "Error"))}};
  };
  if (route.fields != nullptr) {
    add("400", "The body is wrong; error.param names the field");
    add("413", "The body is too large");
  }
  if (!route.keyless) add("401", "The API key is missing or wrong");
  if (route.fields != nullptr || route.id == RouteId::kModel) add("404", "There is no such model");
  if (route.id == RouteId::kResponse) add("404", "There is no such response");
  if (answers(route)) add("500", "The engine failed");
  if (answers(route) || route.id == RouteId::kReadyz || route.id == RouteId::kHealth)
    add("503", "No place is free, or the server shuts down; Retry-After says when to try again");
  return all;
}

json::object operation(const Route& route) {
  json::object out{{"summary", route.summary},
                   {"operationId", fmt::format("{}{}", route.method, route.path)},
                   {"responses", responses(route)}};
  if (route.keyless) out["security"] = json::array();
  if (route.fields != nullptr) {
    out["requestBody"] = {{"required", true},
                          {"content", content("application/json", reference(route.fields().name))}};
  }
  if (const std::string_view path = route.path; path.ends_with('}')) {
    const std::string_view name = path.substr(path.find('{') + 1, path.size() - path.find('{') - 2);
    out["parameters"] = {
        {{"name", name}, {"in", "path"}, {"required", true}, {"schema", {{"type", "string"}}}}};
  }
  return out;
}

json::value error_schema() {
  const json::value text{{"type", "string"}};
  const json::value text_or_null{{"type", {"string", "null"}}};
  return {{"type", "object"},
          {"required", {"error"}},
          {"properties",
           {{"error",
             {{"type", "object"},
              {"required", {"message", "type", "param", "code"}},
              {"properties",
               {{"message", text}, {"type", text}, {"param", text_or_null}, {"code", text_or_null}}}}}}}};
}

json::value message_error_schema() {
  const json::value text{{"type", "string"}};
  return {{"type", "object"},
          {"required", {"type", "error"}},
          {"properties",
           {{"type", {{"const", "error"}}},
            {"error",
             {{"type", "object"},
              {"required", {"type", "message"}},
              {"properties", {{"type", text}, {"message", text}}}}}}}};
}

}  // namespace

std::string openapi_document(std::string_view version) {
  json::object paths, schemas{{"Error", error_schema()}, {"MessageError", message_error_schema()}};
  for (const Route& route : routes()) {
    json::object& path = paths[route.path].is_null() ? (paths[route.path] = json::object()).as_object()
                                                     : paths[route.path].as_object();
    path[route.method == std::string_view("GET") ? "get" : "post"] = operation(route);
    if (route.fields != nullptr) schemas[route.fields().name] = field_schema(route.fields());
  }
  const json::object document{
      {"openapi", "3.1.0"},
      {"info", {{"title", "plow"}, {"version", version}}},
      {"paths", paths},
      {"components",
       {{"schemas", schemas}, {"securitySchemes", {{"key", {{"type", "http"}, {"scheme", "bearer"}}}}}}},
      {"security", json::array{{{"key", json::array()}}}}};
  return json::serialize(document);
}

}  // namespace plow
