// One connection of an HttpServer, and what all of them share. For http_server.cpp and http_connection.cpp
// alone: who includes this compiles Asio and Beast, which take long.
#pragma once

#include "serve/http_server.h"

#include <boost/asio/io_context.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/steady_timer.hpp>
#include <boost/asio/strand.hpp>
#include <boost/asio/thread_pool.hpp>
#include <boost/beast/core/flat_buffer.hpp>
#include <boost/beast/http/parser.hpp>
#include <boost/beast/http/string_body.hpp>

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstddef>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <thread>
#include <unordered_set>
#include <utility>
#include <vector>

namespace plow {

class HttpConnection;

struct HttpServer::State {
  explicit State(const HttpServerOptions& o) : options(o), work(o.work_threads) {}

  const HttpServerOptions options;
  HttpHandler* handler = nullptr;
  uint16_t port = 0;  // that it listens on, or did
  std::atomic<bool> finishing{false};
  std::mutex mutex;
  std::condition_variable exchange_ended;
  size_t exchanges = 0;                      // under way
  std::unordered_set<HttpConnection*> live;  // connections

  // These hold connections and exchanges, which use all of the above until they are destroyed.
  boost::asio::io_context io;
  boost::asio::thread_pool work;
  boost::asio::ip::tcp::acceptor acceptor{boost::asio::make_strand(io)};
  boost::asio::steady_timer accept_again{acceptor.get_executor()};
  std::vector<std::thread> threads;

  void exchange_began() {
    const std::lock_guard lock(mutex);
    ++exchanges;
  }
  void exchange_over() {
    const std::lock_guard lock(mutex);
    --exchanges;
    exchange_ended.notify_all();
  }
  void accept();
};

// One connection: reads a request, waits for its exchange to be answered, and again. All of its functions run
// on its strand.
class HttpConnection : public std::enable_shared_from_this<HttpConnection> {
 public:
  using Strand = boost::asio::strand<boost::asio::io_context::executor_type>;
  using Socket = boost::asio::basic_stream_socket<boost::asio::ip::tcp, Strand>;

  HttpConnection(HttpServer::State& server, Socket socket)
      : server_(server),
        socket_(std::move(socket)),
        read_timer_(socket_.get_executor()),
        write_timer_(socket_.get_executor()) {
    const std::lock_guard lock(server_.mutex);
    server_.live.insert(this);
    over_limit_ = server_.live.size() > server_.options.connections;
  }
  ~HttpConnection() {
    const std::lock_guard lock(server_.mutex);
    server_.live.erase(this);
  }

  void begin();
  void close();
  const Strand& strand() { return strand_; }

  // Of an exchange.
  void send(std::string_view bytes);
  void begin_response(const HttpResponse& head, std::string framing);
  void response_over();
  size_t unsent() const { return out_.size() + writing_.size() - written_; }
  bool chunks() const { return version_ >= 11; }
  bool head_only() const { return head_only_; }

 private:
  class Exchange;
  using Timer =
      boost::asio::basic_waitable_timer<std::chrono::steady_clock,
                                        boost::asio::wait_traits<std::chrono::steady_clock>, Strand>;
  using ErrorCode = boost::system::error_code;

  void read_head();
  void on_head(ErrorCode error);
  void on_body(ErrorCode error);
  void refuse(int status, const std::string& why);
  void respond_and_close(const HttpResponse& response);
  void watch();
  void arm(Timer& timer, std::chrono::milliseconds time, void (HttpConnection::*expired)());
  void write();
  void on_written(ErrorCode error, size_t n);
  void on_stall();
  void on_silence();
  void next();
  void linger();

  HttpServer::State& server_;
  Socket socket_;
  Strand strand_ = socket_.get_executor();
  Timer read_timer_, write_timer_;
  boost::beast::flat_buffer buffer_;
  std::optional<boost::beast::http::request_parser<boost::beast::http::string_body>> parser_;
  std::shared_ptr<Exchange> exchange_;
  unsigned version_ = 11;
  bool over_limit_ = false;  // one connection too many
  bool head_only_ = false;   // a HEAD
  bool keep_alive_ = false;  // after this response
  bool over_ = false;        // the response is complete once all is written
  bool stalled_ = false;
  bool closed_ = false;
  std::string out_, writing_;
  size_t written_ = 0;  // of writing_
};

}  // namespace plow
