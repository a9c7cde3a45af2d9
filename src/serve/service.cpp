#include "serve/service.h"

#include "base/json_string.h"
#include "serve/answer_format.h"
#include "serve/answer_spec.h"
#include "serve/messages_api.h"
#include "serve/openapi.h"
#include "serve/request_fields.h"
#include "serve/responses_api.h"

#include <boost/json.hpp>
#include <fmt/format.h>

#include <algorithm>
#include <random>
#include <utility>

namespace plow {

extern const std::string_view kChatPageHtml, kChatPageCss, kChatPageJs;

namespace {

namespace json = boost::json;

constexpr size_t kMostIdBytes = 128;  // of an X-Request-Id that is taken over
constexpr size_t kMostUnknown = 256;  // names of unknown fields that are remembered

bool may_be_id(std::string_view text) {
  const auto allowed = [](unsigned char c) {
    return std::isalnum(c) || c == '-' || c == '_' || c == '.' || c == ':';
  };
  return !text.empty() && text.size() <= kMostIdBytes && std::ranges::all_of(text, allowed);
}

// Compares all bytes whatever they are, so that the time tells nothing of the key.
bool same_key(std::string_view given, std::string_view key) {
  unsigned difference = given.size() == key.size() ? 0 : 1;
  for (size_t i = 0; i < given.size(); ++i)
    difference |= static_cast<unsigned char>(given[i]) ^ static_cast<unsigned char>(key[i % key.size()]);
  return difference == 0;
}

// A page of another site must not use the server through its visitor's browser, which says in Origin where
// the page is from.
bool from_another_site(const HttpRequest& head) {
  const std::string_view origin = head.field("Origin");
  if (origin.empty()) return false;
  const size_t scheme = origin.find("://");
  return scheme == std::string_view::npos || origin.substr(scheme + 3) != head.field("Host");
}

HttpResponse with_body(std::string type, std::string body, int status = 200) {
  HttpResponse response;
  response.status = status;
  response.content_type = std::move(type);
  response.body = std::move(body);
  return response;
}

HttpResponse json_response(std::string body) { return with_body("application/json", std::move(body)); }

int64_t unix_seconds(std::chrono::system_clock::time_point time) {
  return std::chrono::duration_cast<std::chrono::seconds>(time.time_since_epoch()).count();
}

std::string chat_page() {
  std::string page(kChatPageHtml);
  const auto insert = [&](std::string_view mark, std::string_view text) {
    const size_t at = page.find(mark);
    PLOW_CHECK(at != std::string::npos, "the chat page has no {}", mark);
    page.replace(at, mark.size(), text);
  };
  insert("/*CHAT_CSS*/", kChatPageCss);
  insert("/*CHAT_JS*/", kChatPageJs);
  return page;
}

}  // namespace

std::string not_ready_because(const DispatchStatus& status, std::chrono::steady_clock::time_point now,
                              std::chrono::seconds step_bound) {
  if (status.draining) return "The server is shutting down.";
  if (status.in_step && now - status.since > step_bound) {
    return fmt::format("A step of the engine takes longer than {} s; the device may hang.",
                       step_bound.count());
  }
  return {};
}

Service::Service(const std::vector<HostedModel>& models, ServeLog& log, const ServiceOptions& options)
    : log_(log), options_(options), random_([] {
        std::random_device device;
        return uint64_t{device()} << 32 | device();
      }()) {
  PLOW_CHECK(!models.empty(), "a server without a model");
  for (const HostedModel& model : models) hosts_.emplace_back(model);
}

ApiError Service::no_such_model(std::string_view name) const {
  std::string names;
  for (const Host& host : hosts_)
    names += (names.empty() ? "" : ", ") + json::serialize(json::value(host.model.name));
  return ApiError{.status = 404,
                  .message = fmt::format("There is no model {}; this server has {}.",
                                         json::serialize(json::value(name)), names),
                  .param = "model",
                  .code = "model_not_found"};
}

// Whom the field `model` names; the first one when it is absent. What it may be else is the parser's to say.
std::variant<Service::Host*, ApiError> Service::host_of(const json::object& body) {
  const json::value* name = body.if_contains("model");
  if (name == nullptr || !name->is_string() || name->get_string().empty()) return &hosts_.front();
  const std::string_view wanted = name->get_string();
  for (Host& host : hosts_) {
    if (host.model.name == wanted) return &host;
  }
  return no_such_model(wanted);
}

RequestOrigin Service::origin_of(const HttpRequest& request, RouteId route) {
  RequestOrigin origin;
  origin.route = route;
  origin.arrival = std::chrono::steady_clock::now();
  const std::string_view given = request.field("X-Request-Id");
  const uint64_t n = ++requests_;
  origin.record.id =
      may_be_id(given) ? std::string(given) : fmt::format("{:016x}{:08x}", seed_of(random_, n), n);
  origin.record.method = request.method;
  origin.record.path = request.path;
  return origin;
}

std::optional<ApiError> Service::check_access(const HttpRequest& head, const RouteMatch& match) const {
  if (match.route == nullptr && match.allowed.empty()) {
    return ApiError{.status = 404,
                    .message = "There is nothing at this path. /openapi.json lists what there is.",
                    .type = "not_found_error",
                    .code = "not_found"};
  }
  if (from_another_site(head)) {
    return ApiError{.status = 403,
                    .message = "Requests from pages of other sites are not answered.",
                    .type = "permission_error",
                    .code = "cross_origin"};
  }
  if (match.route == nullptr) {
    return ApiError{.status = 405,
                    .message = fmt::format("This path takes {}.", match.allowed),
                    .code = "method_not_allowed"};
  }
  if (match.route->keyless || options_.api_key.empty()) return {};
  constexpr std::string_view kScheme = "Bearer ";
  const std::string_view given = head.field("Authorization");
  if (given.starts_with(kScheme) && same_key(given.substr(kScheme.size()), options_.api_key)) return {};
  // The header of Anthropic's clients.
  if (same_key(head.field("X-Api-Key"), options_.api_key)) return {};
  return ApiError{.status = 401,
                  .message = given.empty() ? "This server asks for an API key: Authorization: Bearer KEY."
                                           : "The API key is wrong.",
                  .type = "authentication_error",
                  .code = "invalid_api_key"};
}

std::optional<HttpResponse> Service::check_head(const HttpRequest& head) {
  const RouteMatch match = find_route(head.method, head.path);
  const std::optional<ApiError> error = check_access(head, match);
  if (!error) return {};
  RequestOrigin origin = origin_of(head, match.route == nullptr ? RouteId::kNone : match.route->id);
  HttpResponse response = error_response(*error, origin.record.id, origin.route);
  if (error->status == 405) response.fields.push_back({"Allow", match.allowed});
  if (error->status == 401) response.fields.push_back({"WWW-Authenticate", "Bearer"});
  account(origin, error->status, error->message);
  return response;
}

HttpResponse Service::refuse(int status, const std::string& why) {
  RequestOrigin origin = origin_of({}, RouteId::kNone);
  account(origin, status, why);
  ApiError error{.status = status, .message = why, .code = "bad_http"};
  if (status == 503) {
    error.type = "unavailable_error";
    const Host& host = hosts_.front();
    error.retry_after = host.queue.seconds(host.source.status().counts.waiting);
  }
  return error_response(error, origin.record.id, origin.route);
}

void Service::account(RequestOrigin& origin, int status, const std::string& note) {
  metrics_.count_response(origin.route, status);
  origin.record.status = status;
  origin.record.seconds =
      std::chrono::duration<double>(std::chrono::steady_clock::now() - origin.arrival).count();
  origin.record.note = note;
  log_.request(origin.record);
}

void Service::reply(RequestOrigin origin, Exchange exchange, HttpResponse response) {
  const auto is_id = [](const HttpField& field) { return field.name == "X-Request-Id"; };
  if (std::ranges::none_of(response.fields, is_id))
    response.fields.push_back({"X-Request-Id", origin.record.id});
  account(origin, response.status, response.status < 400 ? "" : "refused");
  exchange->post(
      [exchange, response = std::move(response)]() mutable { exchange->respond(std::move(response)); });
}

void Service::handle(HttpRequest request, Exchange exchange) {
  const RouteMatch match = find_route(request.method, request.path);
  PLOW_CHECK(match.route != nullptr, "a request without a route passed check_head()");
  const RouteId route = match.route->id;
  RequestOrigin origin = origin_of(request, route);
  if (route == RouteId::kChat || route == RouteId::kCompletions || route == RouteId::kResponses ||
      route == RouteId::kMessages)
    return answer(request, std::move(origin), exchange);
  if (route == RouteId::kTokenize || route == RouteId::kDetokenize || route == RouteId::kCountTokens) {
    HttpResponse response = run_text_route(request, route, origin.record.id);
    return reply(std::move(origin), exchange, std::move(response));
  }
  HttpResponse response = page_or_document(route, match.parameter);
  reply(std::move(origin), exchange, std::move(response));
}

// The body in the shape of its API; unknown fields are warned of.
std::optional<ApiError> Service::read_answer(const HttpRequest& request, const RequestOrigin& origin,
                                             Host*& host, AnswerSpec& spec,
                                             std::unique_ptr<AnswerWriter>& writer) {
  json::object body;
  if (auto error = parse_body(request.body, body)) return error;
  std::vector<std::string> unknown;
  auto found = host_of(body);
  if (ApiError* none = std::get_if<ApiError>(&found)) return std::move(*none);
  host = std::get<Host*>(found);
  const ServedModel& model = host->model;
  std::optional<ApiError> error;
  const std::string& id = origin.record.id;
  const int64_t now = unix_seconds(std::chrono::system_clock::now());
  if (origin.route == RouteId::kMessages) {
    json::object chat;
    error = chat_of_messages(body, false, chat, unknown);
    if (!error) error = parse_chat(chat, model, spec, unknown);
    writer = std::make_unique<MessageWriter>("msg_" + id, model.name);
  } else if (origin.route == RouteId::kResponses) {
    ResponsesRequest read;
    error = read_responses(body, responses_, read, unknown);
    if (!error) error = parse_chat(read.chat, model, spec, unknown);
    writer = std::make_unique<ResponseWriter>("resp_" + id, model.name, now, std::move(read), responses_);
  } else {
    const bool chat = origin.route == RouteId::kChat;
    error = chat ? parse_chat(body, model, spec, unknown) : parse_completion(body, model, spec, unknown);
    writer = std::make_unique<CompletionWriter>(AnswerHead{
        chat, (chat ? "chatcmpl-" : "cmpl-") + id, model.name, model.fingerprint, now, spec.include_usage});
  }
  if (!error) warn_of_unknown(unknown);
  return error;
}

void Service::answer(const HttpRequest& request, RequestOrigin origin, Exchange exchange) {
  Host* host = nullptr;
  AnswerSpec spec;
  std::unique_ptr<AnswerWriter> writer;
  if (const auto error = read_answer(request, origin, host, spec, writer)) {
    HttpResponse response = error_response(*error, origin.record.id, origin.route);
    return reply(std::move(origin), exchange, std::move(response));
  }
  const uint64_t seed = seed_of(random_, ++requests_);
  const AnswerSurroundings surroundings{
      host->model, host->source, log_, metrics_, host->queue, spec.structure ? &trie_of(*host) : nullptr};
  auto started =
      std::make_shared<Answer>(surroundings, std::move(spec), std::move(writer), std::move(origin), exchange);
  exchange->post([started, seed] { started->start(seed); });
}

const TokenTrie& Service::trie_of(Host& host) {
  std::call_once(host.trie_made, [&host] {
    const ServedModel& model = host.model;
    host.trie = std::make_unique<const TokenTrie>(model.vocab, [&model](uint32_t token) {
      const bool text = token < model.tokenizer.vocab_size() && !model.tokenizer.is_special(token);
      return text ? model.tokenizer.token_bytes(token) : std::string();
    });
  });
  return *host.trie;
}

// A client that sends the same unknown field with every request is named once.
void Service::warn_of_unknown(const std::vector<std::string>& fields) {
  for (const std::string& field : fields) {
    std::string name;
    append_json_string(name, field.substr(0, 64));
    {
      const std::lock_guard lock(unknown_mutex_);
      if (unknown_.size() >= kMostUnknown || !unknown_.insert(name).second) continue;
    }
    log_.warn(fmt::format("requests have the field {}, which this server does not know and ignores", name));
  }
}

HttpResponse Service::run_text_route(const HttpRequest& request, RouteId route, const std::string& id) {
  json::object body;
  std::vector<std::string> unknown;
  std::variant<std::string, ApiError> result;
  if (auto error = parse_body(request.body, body)) {
    result = *error;
  } else {
    auto found = host_of(body);
    if (ApiError* none = std::get_if<ApiError>(&found)) {
      result = std::move(*none);
    } else {
      const ServedModel& model = std::get<Host*>(found)->model;
      result = route == RouteId::kTokenize     ? tokenize(body, model, unknown)
               : route == RouteId::kDetokenize ? detokenize(body, model, unknown)
                                               : count_tokens(body, model, unknown);
    }
  }
  warn_of_unknown(unknown);
  if (const ApiError* error = std::get_if<ApiError>(&result)) return error_response(*error, id, route);
  return json_response(std::get<std::string>(std::move(result)));
}

HttpResponse Service::page_or_document(RouteId route, const std::string& parameter) {
  switch (route) {
    case RouteId::kModels:
      return models({});
    case RouteId::kModel:
      return models(parameter);
    case RouteId::kResponse:
      return stored_response(parameter);
    case RouteId::kTokenizerInfo:
      return json_response(tokenizer_info(hosts_.front().model));
    case RouteId::kHealthz:
      return json_response("{\"status\":\"ok\"}");
    case RouteId::kReadyz:
    case RouteId::kHealth:
      return ready();
    case RouteId::kVersion:
      return json_response(json::serialize(json::object{{"version", options_.version}}));
    case RouteId::kStatus:
      return json_response(status_json());
    case RouteId::kMetrics:
      return with_body("text/plain; version=0.0.4; charset=utf-8", metrics_text());
    case RouteId::kOpenApi:
      return json_response(openapi_document(options_.version));
    case RouteId::kPage: {
      HttpResponse response = with_body("text/html; charset=utf-8", chat_page());
      // The page needs nothing but itself and this server; markdown of an answer must not fetch anything.
      response.fields.push_back(
          {"Content-Security-Policy",
           "default-src 'none'; style-src 'unsafe-inline'; script-src 'unsafe-inline'; connect-src 'self'; "
           "img-src data:; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"});
      return response;
    }
    default:
      break;
  }
  PLOW_CHECK(false, "route {} has no answer", static_cast<int>(route));
  return {};
}

std::string Service::why_not_ready() const {
  for (const Host& host : hosts_) {
    std::string why =
        not_ready_because(host.source.status(), std::chrono::steady_clock::now(), options_.step_bound);
    if (!why.empty()) return why;
  }
  return {};
}

HttpResponse Service::ready() const {
  const std::string why = why_not_ready();
  if (why.empty()) return json_response("{\"status\":\"ok\"}");
  const ApiError error{.status = 503, .message = why, .type = "unavailable_error", .code = "not_ready"};
  return with_body("application/json", error_json(error), error.status);
}

HttpResponse Service::models(const std::string& only) const {
  json::array list;
  for (const Host& host : hosts_) {
    const ServedModel& model = host.model;
    const json::object entry{
        {"id", model.name},   {"object", "model"}, {"created", model.created},      {"owned_by", "plow"},
        {"root", model.name}, {"parent", nullptr}, {"max_model_len", model.context}};
    if (only == model.name) return json_response(json::serialize(entry));
    list.push_back(entry);
  }
  if (only.empty())
    return json_response(json::serialize(json::object{{"object", "list"}, {"data", std::move(list)}}));
  const ApiError error = no_such_model(only);
  return with_body("application/json", error_json(error), error.status);
}

HttpResponse Service::stored_response(const std::string& id) const {
  if (auto stored = responses_.find(id)) return json_response(std::move(stored->response));
  const ApiError error{.status = 404,
                       .message = "There is no such response: it was not stored, or it is forgotten.",
                       .type = "not_found_error",
                       .code = "not_found"};
  return with_body("application/json", error_json(error), error.status);
}

std::string Service::status_json() const {
  json::array models;
  for (const Host& host : hosts_) {
    const ServedModel& model = host.model;
    const DispatchStatus status = host.source.status();
    const Residency residency = host.source.residency();
    const BatchCounts& c = status.counts;
    const std::string why = not_ready_because(status, std::chrono::steady_clock::now(), options_.step_bound);
    json::object memory;
    for (const MemoryPart& part : model.memory) memory[part.name] = part.bytes;
    models.push_back(json::object{{"name", model.name},
                                  {"state", status.draining ? "draining"
                                            : !why.empty()  ? "stalled"
                                                            : model_state_name(residency.state)},
                                  {"fingerprint", model.fingerprint},
                                  {"isa", model.isa},
                                  {"context", model.context},
                                  {"slots", model.slots},
                                  {"running", c.running},
                                  {"waiting", c.waiting},
                                  {"steps", c.steps},
                                  {"prompt_tokens", c.prompt_tokens},
                                  {"answer_tokens", c.answer_tokens},
                                  {"preemptions", c.preemptions},
                                  {"cache_blocks", c.blocks},
                                  {"cache_blocks_free", c.free_blocks},
                                  {"loads", residency.loads},
                                  {"load_seconds", residency.load_seconds},
                                  {"load_error", residency.error},
                                  {"memory_bytes", memory}});
  }
  const json::object all{
      {"version", options_.version},
      {"uptime_seconds", unix_seconds(std::chrono::system_clock::now()) - unix_seconds(started_)},
      {"models", std::move(models)}};
  return json::serialize(all);
}

std::string Service::metrics_text() const {
  MetricsFacts facts;
  facts.version = options_.version;
  facts.ready = why_not_ready().empty();
  facts.started = unix_seconds(started_);
  for (const Host& host : hosts_) {
    const ServedModel& model = host.model;
    facts.models.push_back({model.name, model.fingerprint, model.context, model.slots, host.source.status(),
                            host.source.residency()});
  }
  return metrics_.text(facts);
}

}  // namespace plow
