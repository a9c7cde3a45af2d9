// A service on the model of bytes, and requests to it, for tests.
#pragma once

#include "serve/service.h"
#include "serve/testing/byte_model.h"

#include <boost/json.hpp>

#include <memory>
#include <string>
#include <string_view>
#include <vector>

namespace plow {

class ServiceRig {
 public:
  explicit ServiceRig(ToolDialect dialect = ToolDialect::kNone, bool thinks = false, std::string key = {})
      : model_(dialect, thinks) {
    ServiceOptions options;
    options.version = "1.2.3";
    options.api_key = std::move(key);
    service_ = std::make_unique<Service>(std::vector<HostedModel>{{&*model_, &source}}, log, options);
  }
  const HttpResponse& send(std::string method, std::string path, std::string body = {},
                           std::vector<HttpField> fields = {{"X-Request-Id", "1"}}) {
    HttpRequest request{std::move(method), std::move(path), {}, std::move(fields), {}};
    exchange = std::make_shared<RecordedExchange>();
    if (auto response = service_->check_head(request)) return exchange->response = *response;
    request.body = std::move(body);
    service_->handle(request, exchange);
    exchange->run();
    return exchange->response;
  }
  // Ends the last answer with this text, a token a byte.
  const HttpResponse& answer(std::string_view text, EndReason reason = EndReason::kStopToken) {
    source.say(source.asked.size() - 1, text);
    source.end(source.asked.size() - 1, reason);
    exchange->run();
    return exchange->response;
  }
  boost::json::value body() const { return boost::json::parse(exchange->response.body); }
  // The data of a stream's events; each has its name as `type`, too.
  std::vector<boost::json::object> events() const {
    std::vector<boost::json::object> events;
    std::string_view rest = exchange->response.body;
    while (!rest.empty()) {
      const size_t line = rest.find('\n'), end = rest.find("\n\n");
      PLOW_CHECK(rest.starts_with("event: ") && rest.substr(line + 1).starts_with("data: "), "{}", rest);
      events.push_back(boost::json::parse(rest.substr(line + 7, end - line - 7)).as_object());
      PLOW_CHECK(events.back().at("type").as_string() == rest.substr(7, line - 7), "{}", rest);
      rest.remove_prefix(end + 2);
    }
    return events;
  }
  // What the last answer was asked to go on from.
  std::string prompt() const { return model_->tokenizer.decode(source.asked.back().prompt, false); }

  ScriptedSource source;
  SilentLog log;
  std::shared_ptr<RecordedExchange> exchange;

 private:
  ByteModel model_;
  std::unique_ptr<Service> service_;
};

}  // namespace plow
