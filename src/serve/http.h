// HTTP as the server's logic sees it: plain requests in, and one exchange for each to answer through.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace plow {

struct HttpField {
  std::string name, value;
};

struct HttpRequest {
  std::string method, path, query;  // the path as it was sent, without the query
  std::vector<HttpField> fields;
  std::string body;

  // The value of the first field of that name, in any case; empty when there is none.
  std::string_view field(std::string_view name) const;
};

struct HttpResponse {
  int status = 200;
  std::string content_type = "application/json";
  std::vector<HttpField> fields;
  std::string body;
};

// What may happen to a response under way; called in the exchange's order.
struct ExchangeEvents {
  std::function<void()> on_room;     // less is unsent than kStreamRoom
  std::function<void()> on_stalled;  // the client has read nothing for long: end the stream
  std::function<void()> on_gone;     // the client has left; nothing that is written arrives any more
};

// Unsent bytes of a stream from which on no more should be written until on_room.
constexpr size_t kStreamRoom = size_t{64} << 10;

// The answer to one request: either respond() once, or begin_stream(), send() any number of times, end().
// Once it is over, and when the client has left, calls do nothing. What is posted runs one after the other
// and never at the same time as an event; all but post() must be called there.
class HttpExchange {
 public:
  virtual ~HttpExchange() = default;
  virtual void post(std::function<void()> work) = 0;  // from any thread
  virtual void listen(ExchangeEvents events) = 0;
  virtual void respond(HttpResponse response) = 0;
  virtual void begin_stream(HttpResponse head) = 0;  // `head` without a body
  virtual void send(std::string_view bytes) = 0;
  virtual void end() = 0;
  virtual size_t unsent() const = 0;  // bytes that wait for the client
};

// Answers requests. All functions may be called from several threads at once.
class HttpHandler {
 public:
  virtual ~HttpHandler() = default;
  // Looks at a request before its body is read; a response ends it.
  virtual std::optional<HttpResponse> check_head(const HttpRequest& head) = 0;
  // May take long when the request has a body, and is then called on a thread for that.
  virtual void handle(HttpRequest request, std::shared_ptr<HttpExchange> exchange) = 0;
  // The response to what is not a request, or one that is too large or too slow: 400, 408, 413, 431, 503.
  virtual HttpResponse refuse(int status, const std::string& why) = 0;
};

}  // namespace plow
