// HTTP/1.1 over TCP: reads requests, hands them to a handler, writes what the exchanges are given.
//
// Every connection has its own order of events (a strand) on a few threads; requests with a body are handled
// on threads of their own, since reading a long prompt takes a while. What a peer can make the server hold is
// bounded: connections, bytes of header and body, time for each of them, unsent bytes of a stream.
#pragma once

#include "base/error.h"
#include "serve/http.h"

#include <chrono>
#include <cstdint>
#include <memory>
#include <string>

namespace plow {

struct HttpServerOptions {
  std::string host = "127.0.0.1";
  uint16_t port = 8080;       // 0: any that is free
  unsigned threads = 2;       // for sockets
  unsigned work_threads = 2;  // for requests with a body
  size_t connections = 4096;  // beyond it a connection gets 503 and is closed
  size_t header_bytes = size_t{32} << 10;
  size_t body_bytes = size_t{16} << 20;           // a million tokens of text and more
  std::chrono::milliseconds header_time{60'000};  // from the end of one request to the next one's header
  std::chrono::milliseconds body_time{60'000};
  std::chrono::milliseconds stall_time{30'000};  // a client that takes no byte for so long is stalled
  std::chrono::milliseconds ping_time{15'000};   // a stream that is silent for so long gets a comment
};

class HttpServer {
 public:
  // Errors (kUsage): the address cannot be listened on.
  static Result<HttpServer> open(const HttpServerOptions& options);
  HttpServer(HttpServer&&) noexcept;
  HttpServer& operator=(HttpServer&&) = delete;
  ~HttpServer();  // stop()

  uint16_t port() const;

  // Begins to accept. REQUIRES that `handler` outlives the server's stop().
  void start(HttpHandler& handler);
  // Accepts no more, and waits until no exchange is under way, at most so long.
  bool finish(std::chrono::milliseconds limit);
  // Ends all threads. Exchanges can still be called, in vain.
  void stop();

  struct State;

 private:
  explicit HttpServer(std::unique_ptr<State> state);
  std::unique_ptr<State> state_;
};

}  // namespace plow
