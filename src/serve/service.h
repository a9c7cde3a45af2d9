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
#include <memory>
#include <mutex>
#include <set>
#include <string>

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

class Service : public HttpHandler {
 public:
  // REQUIRES that model, source and log outlive the service, and the service all exchanges.
  Service(const ServedModel& model, AnswerSource& source, ServeLog& log, const ServiceOptions& options);

  std::optional<HttpResponse> check_head(const HttpRequest& head) override;
  void handle(HttpRequest request, std::shared_ptr<HttpExchange> exchange) override;
  HttpResponse refuse(int status, const std::string& why) override;

  const Metrics& metrics() const { return metrics_; }

 private:
  using Exchange = std::shared_ptr<HttpExchange>;

  RequestOrigin origin_of(const HttpRequest& request, RouteId route);
  std::optional<ApiError> check_access(const HttpRequest& head, const RouteMatch& match) const;
  void answer(const HttpRequest& request, RequestOrigin origin, Exchange exchange);
  HttpResponse page_or_document(RouteId route, const std::string& parameter);
  HttpResponse ready() const;
  HttpResponse models(const std::string& only) const;
  HttpResponse stored_response(const std::string& id) const;
  std::string status_json() const;
  std::string metrics_text() const;
  std::optional<ApiError> read_answer(const HttpRequest& request, const RequestOrigin& origin,
                                      AnswerSpec& spec, std::unique_ptr<AnswerWriter>& writer);
  HttpResponse run_text_route(const HttpRequest& request, RouteId route, const std::string& id);
  void warn_of_unknown(const std::vector<std::string>& fields);
  void reply(RequestOrigin origin, Exchange exchange, HttpResponse response);
  void account(RequestOrigin& origin, int status, const std::string& note);

  const TokenTrie& trie();

  const ServedModel& model_;
  AnswerSource& source_;
  ServeLog& log_;
  const ServiceOptions options_;
  Metrics metrics_;
  QueueEstimate queue_;
  const std::chrono::system_clock::time_point started_ = std::chrono::system_clock::now();
  const uint64_t random_;  // differs between runs: ids and seeds are made of it
  std::atomic<uint64_t> requests_{0};

  ResponseStore responses_;

  std::once_flag trie_made_;  // at the first request with a structure: not every server gets one
  std::unique_ptr<const TokenTrie> trie_;

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
