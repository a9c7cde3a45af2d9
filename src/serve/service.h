// The server's logic behind HTTP: routes, keys, errors, answers.
#pragma once

#include "serve/answer.h"
#include "serve/http.h"
#include "serve/metrics.h"
#include "serve/queue_estimate.h"
#include "serve/response_store.h"
#include "serve/serve_log.h"
#include "serve/served_model.h"

#include <atomic>
#include <chrono>
#include <cstdint>
#include <deque>
#include <memory>
#include <mutex>
#include <set>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

namespace plow {

struct ServiceOptions {
  std::string version;
  std::string api_key;  // empty: none is asked for
  // A step that takes longer makes the server not ready. Above the engine's own deadline, which fails a step
  // that hangs on a device that is there.
  std::chrono::seconds step_bound{60};
};

// Why requests are not taken; empty when they are.
std::string not_ready_because(const DispatchStatus& status, std::chrono::steady_clock::time_point now,
                              std::chrono::seconds step_bound);

struct HostedModel {
  const ServedModel* model;
  AnswerSource* source;
};

class Service : public HttpHandler {
 public:
  // The first model answers requests that name none. REQUIRES at least one; that models, sources and log
  // outlive the service, and the service all exchanges.
  Service(const std::vector<HostedModel>& models, ServeLog& log, const ServiceOptions& options);

  std::optional<HttpResponse> check_head(const HttpRequest& head) override;
  void handle(HttpRequest request, std::shared_ptr<HttpExchange> exchange) override;
  HttpResponse refuse(int status, const std::string& why) override;

  const Metrics& metrics() const { return metrics_; }
  std::string status_json() const;  // what GET /status says

 private:
  using Exchange = std::shared_ptr<HttpExchange>;
  struct Host {
    explicit Host(const HostedModel& hosted) : model(*hosted.model), source(*hosted.source) {}
    const ServedModel& model;
    AnswerSource& source;
    QueueEstimate queue;
    std::once_flag trie_made;  // at the first request with a structure: not every model gets one
    std::unique_ptr<const TokenTrie> trie;
  };

  RequestOrigin origin_of(const HttpRequest& request, RouteId route);
  std::optional<ApiError> check_access(const HttpRequest& head, const RouteMatch& match) const;
  void answer(const HttpRequest& request, RequestOrigin origin, Exchange exchange);
  HttpResponse page_or_document(RouteId route, const std::string& parameter);
  HttpResponse ready() const;
  std::string why_not_ready() const;
  std::variant<Host*, ApiError> host_of(const boost::json::object& body);
  ApiError no_such_model(std::string_view name) const;
  HttpResponse models(const std::string& only) const;
  HttpResponse stored_response(const std::string& id) const;
  std::string metrics_text() const;
  std::optional<ApiError> read_answer(const HttpRequest& request, const RequestOrigin& origin, Host*& host,
                                      AnswerSpec& spec, std::unique_ptr<AnswerWriter>& writer);
  HttpResponse run_text_route(const HttpRequest& request, RouteId route, const std::string& id);
  void warn_of_unknown(const std::vector<std::string>& fields);
  void reply(RequestOrigin origin, Exchange exchange, HttpResponse response);
  void account(RequestOrigin& origin, int status, const std::string& note);

  static const TokenTrie& trie_of(Host& host);

  std::deque<Host> hosts_;
  ServeLog& log_;
  const ServiceOptions options_;
  Metrics metrics_;
  const std::chrono::system_clock::time_point started_ = std::chrono::system_clock::now();
  const uint64_t random_;  // differs between runs: ids and seeds are made of it
  std::atomic<uint64_t> requests_{0};

  ResponseStore responses_;

  std::mutex unknown_mutex_;
  std::set<std::string> unknown_;  // fields that were warned of
};

// The texts of /tokenize, /detokenize, /v1/messages/count_tokens and /tokenizer_info; or what is wrong with
// the request.
std::variant<std::string, ApiError> tokenize(const boost::json::object& body, const ServedModel& model,
                                             std::vector<std::string>& unknown);
std::variant<std::string, ApiError> detokenize(const boost::json::object& body, const ServedModel& model,
                                               std::vector<std::string>& unknown);
std::variant<std::string, ApiError> count_tokens(const boost::json::object& body, const ServedModel& model,
                                                 std::vector<std::string>& unknown);
std::string tokenizer_info(const ServedModel& model);

}  // namespace plow
