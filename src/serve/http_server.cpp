// The one file that knows Asio and Beast, which take long to compile.
#include "serve/http_server.h"

#include <boost/asio/bind_executor.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/post.hpp>
#include <boost/asio/steady_timer.hpp>
#include <boost/asio/strand.hpp>
#include <boost/asio/thread_pool.hpp>
#include <boost/beast/core/flat_buffer.hpp>
#include <boost/beast/core/string.hpp>
#include <boost/beast/http/parser.hpp>
#include <boost/beast/http/read.hpp>
#include <boost/beast/http/string_body.hpp>
#include <fmt/format.h>

#include <algorithm>
#include <atomic>
#include <condition_variable>
#include <iterator>
#include <mutex>
#include <thread>
#include <unordered_set>
#include <utility>
#include <vector>

namespace plow {

namespace asio = boost::asio;
namespace http = boost::beast::http;
using asio::ip::tcp;
using ErrorCode = boost::system::error_code;
using Strand = asio::strand<asio::io_context::executor_type>;
using Socket = asio::basic_stream_socket<tcp, Strand>;
using Timer = asio::basic_waitable_timer<std::chrono::steady_clock,
                                         asio::wait_traits<std::chrono::steady_clock>, Strand>;

namespace {

const char* reason(int status) {
  const auto text = http::obsolete_reason(static_cast<http::status>(status));
  return text.empty() ? "Unknown" : text.data();
}

std::string head_text(const HttpResponse& response, bool close) {
  std::string out = fmt::format("HTTP/1.1 {} {}\r\nServer: plow\r\nContent-Type: {}\r\n", response.status,
                                reason(response.status), response.content_type);
  for (const HttpField& field : response.fields)
    fmt::format_to(std::back_inserter(out), "{}: {}\r\n", field.name, field.value);
  return out + (close ? "Connection: close\r\n" : "");
}

// Whether the peer broke the protocol, and not the connection.
bool is_http(ErrorCode error) {
  return error.category() == http::make_error_code(http::error::end_of_stream).category();
}

HttpRequest plain(const http::request<http::string_body>& message) {
  HttpRequest request;
  request.method = std::string(message.method_string());
  const std::string_view target = message.target();
  const size_t question = target.find('?');
  request.path = std::string(target.substr(0, question));
  if (question != std::string_view::npos) request.query = std::string(target.substr(question + 1));
  for (const auto& field : message)
    request.fields.push_back({std::string(field.name_string()), std::string(field.value())});
  return request;
}

class Connection;

}  // namespace

struct HttpServer::State {
  explicit State(const HttpServerOptions& o) : options(o), work(o.work_threads) {}

  const HttpServerOptions options;
  HttpHandler* handler = nullptr;
  uint16_t port = 0;  // that it listens on, or did
  std::atomic<bool> finishing{false};
  std::mutex mutex;
  std::condition_variable exchange_ended;
  size_t exchanges = 0;                  // under way
  std::unordered_set<Connection*> live;  // connections

  // These hold connections and exchanges, which use all of the above until they are destroyed.
  asio::io_context io;
  asio::thread_pool work;
  tcp::acceptor acceptor{asio::make_strand(io)};
  asio::steady_timer accept_again{acceptor.get_executor()};
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

namespace {

class Exchange;

// One connection: reads a request, waits for its exchange to be answered, and again. All of its functions run
// on its strand.
class Connection : public std::enable_shared_from_this<Connection> {
 public:
  Connection(HttpServer::State& server, Socket socket)
      : server_(server),
        socket_(std::move(socket)),
        read_timer_(socket_.get_executor()),
        write_timer_(socket_.get_executor()) {
    const std::lock_guard lock(server_.mutex);
    server_.live.insert(this);
    over_limit_ = server_.live.size() > server_.options.connections;
  }
  ~Connection() {
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
  void read_head();
  void on_head(ErrorCode error);
  void on_body(ErrorCode error);
  void refuse(int status, const std::string& why);
  void respond_and_close(const HttpResponse& response);
  void watch();
  void arm(Timer& timer, std::chrono::milliseconds time, void (Connection::*expired)());
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
  std::optional<http::request_parser<http::string_body>> parser_;
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

class Exchange : public HttpExchange, public std::enable_shared_from_this<Exchange> {
 public:
  Exchange(HttpServer::State& server, std::shared_ptr<Connection> connection)
      : server_(server), strand_(connection->strand()), connection_(std::move(connection)) {
    server_.exchange_began();
  }
  ~Exchange() override { server_.exchange_over(); }

  void post(std::function<void()> work) override {
    asio::post(strand_, [self = shared_from_this(), work = std::move(work)] { work(); });
  }
  void listen(ExchangeEvents events) override {
    events_ = std::move(events);
    if (gone_ && events_.on_gone) post(events_.on_gone);
  }
  void respond(HttpResponse response) override {
    if (!connection_) return;
    connection_->begin_response(response, fmt::format("Content-Length: {}\r\n\r\n", response.body.size()));
    if (!connection_->head_only()) connection_->send(response.body);
    over();
  }
  void begin_stream(HttpResponse head) override {
    if (!connection_) return;
    streams_ = true;
    connection_->begin_response(head, connection_->chunks() ? "Transfer-Encoding: chunked\r\n\r\n" : "\r\n");
  }
  void send(std::string_view bytes) override {
    if (!connection_ || bytes.empty()) return;
    if (!connection_->chunks()) return connection_->send(bytes);
    connection_->send(fmt::format("{:x}\r\n{}\r\n", bytes.size(), bytes));
  }
  void end() override {
    if (!connection_) return;
    if (connection_->chunks()) connection_->send("0\r\n\r\n");
    over();
  }
  size_t unsent() const override { return connection_ ? connection_->unsent() : 0; }

  // Of the connection. An event is copied before it is called: it may take itself back by listen().
  bool streams() const { return streams_; }
  void room() { call(events_.on_room); }
  void stalled() { call(events_.on_stalled); }
  void gone() {
    if (!std::exchange(connection_, nullptr)) return;
    gone_ = true;
    call(events_.on_gone);
  }

 private:
  static void call(std::function<void()> event) {
    if (event) event();
  }
  void over() { std::exchange(connection_, nullptr)->response_over(); }

  HttpServer::State& server_;
  const Strand strand_;
  std::shared_ptr<Connection> connection_;  // null when the response is complete or the client has left
  ExchangeEvents events_;
  bool streams_ = false, gone_ = false;
};

void Connection::begin() {
  ErrorCode ignored;
  socket_.non_blocking(true, ignored);
  socket_.set_option(tcp::no_delay(true), ignored);
  // What a stalled client can make the kernel hold for it.
  socket_.set_option(asio::socket_base::send_buffer_size(static_cast<int>(kStreamRoom)), ignored);
  if (over_limit_) return refuse(503, "This server has as many connections as it takes. Try again later.");
  read_head();
}

void Connection::arm(Timer& timer, std::chrono::milliseconds time, void (Connection::*expired)()) {
  timer.expires_after(time);
  timer.async_wait([self = shared_from_this(), expired, &timer](ErrorCode error) {
    // A timer that was set anew while this waited to run has not expired.
    if (!error && !self->closed_ && timer.expiry() <= std::chrono::steady_clock::now())
      (self.get()->*expired)();
  });
}

void Connection::read_head() {
  over_ = stalled_ = false;
  parser_.emplace();
  parser_->header_limit(static_cast<uint32_t>(server_.options.header_bytes));
  parser_->body_limit(server_.options.body_bytes);
  arm(read_timer_, server_.options.header_time, &Connection::close);
  http::async_read_header(socket_, buffer_, *parser_,
                          [self = shared_from_this()](ErrorCode error, size_t) { self->on_head(error); });
}

void Connection::on_head(ErrorCode error) {
  read_timer_.cancel();
  if (closed_) return;
  if (error == http::error::end_of_stream || (error && !is_http(error))) return close();
  if (error == http::error::header_limit) return refuse(431, "The header is too large.");
  if (error == http::error::body_limit) {
    return refuse(413,
                  fmt::format("The body is too large; up to {} bytes are read.", server_.options.body_bytes));
  }
  if (error) return refuse(400, "This is not HTTP: " + error.message() + ".");
  const auto& message = parser_->get();
  version_ = message.version();
  head_only_ = message.method() == http::verb::head;
  keep_alive_ = message.keep_alive() && version_ >= 11 && !server_.finishing;
  if (version_ != 10 && version_ != 11) return refuse(505, "This server speaks HTTP/1.1.");
  if (const auto response = server_.handler->check_head(plain(message))) return respond_and_close(*response);
  if (boost::beast::iequals(message[http::field::expect], "100-continue"))
    send("HTTP/1.1 100 Continue\r\n\r\n");
  arm(read_timer_, server_.options.body_time, &Connection::close);
  http::async_read(socket_, buffer_, *parser_,
                   [self = shared_from_this()](ErrorCode e, size_t) { self->on_body(e); });
}

void Connection::on_body(ErrorCode error) {
  read_timer_.cancel();
  if (closed_) return;
  if (error == http::error::body_limit) {
    return refuse(413,
                  fmt::format("The body is too large; up to {} bytes are read.", server_.options.body_bytes));
  }
  if (error == http::error::partial_message || (error && !is_http(error))) return close();
  if (error) return refuse(400, "This is not HTTP: " + error.message() + ".");
  HttpRequest request = plain(parser_->get());
  request.body = std::move(parser_->get().body());
  parser_.reset();
  exchange_ = std::make_shared<Exchange>(server_, shared_from_this());
  watch();
  if (request.body.empty()) return server_.handler->handle(std::move(request), exchange_);
  asio::post(server_.work,
             [&handler = *server_.handler, request = std::move(request), exchange = exchange_]() mutable {
               handler.handle(std::move(request), std::move(exchange));
             });
}

void Connection::refuse(int status, const std::string& why) {
  respond_and_close(server_.handler->refuse(status, why));
}

void Connection::respond_and_close(const HttpResponse& response) {
  keep_alive_ = false;
  begin_response(response, fmt::format("Content-Length: {}\r\n\r\n", response.body.size()));
  if (!head_only_) send(response.body);
  response_over();
}

// Learns of a client that leaves while its answer is made. A client that sends its next request ahead is
// watched no longer: that it has left is then found by writing.
void Connection::watch() {
  socket_.async_wait(Socket::wait_read,
                     [self = shared_from_this(), watched = std::weak_ptr(exchange_)](ErrorCode error) {
                       const auto exchange = watched.lock();
                       if (error || self->closed_ || self->over_ || !exchange || exchange != self->exchange_)
                         return;
                       char byte = 0;
                       ErrorCode peeked;
                       self->socket_.receive(asio::buffer(&byte, 1), Socket::message_peek, peeked);
                       if (peeked == asio::error::would_block) return self->watch();
                       if (peeked) self->close();
                     });
}

void Connection::begin_response(const HttpResponse& head, std::string framing) {
  if (server_.finishing) keep_alive_ = false;
  if (version_ < 11) keep_alive_ = false;
  send(head_text(head, !keep_alive_) + framing);
}

void Connection::send(std::string_view bytes) {
  if (closed_) return;
  out_ += bytes;
  if (writing_.empty()) write();
}

void Connection::response_over() {
  over_ = true;
  if (writing_.empty() && !closed_) next();
}

void Connection::write() {
  if (written_ == writing_.size()) {
    writing_ = std::exchange(out_, {});
    written_ = 0;
  }
  arm(write_timer_, server_.options.stall_time, &Connection::on_stall);
  socket_.async_write_some(
      asio::buffer(writing_.data() + written_, writing_.size() - written_),
      [self = shared_from_this()](ErrorCode error, size_t n) { self->on_written(error, n); });
}

void Connection::on_written(ErrorCode error, size_t n) {
  if (closed_) return;
  if (error) return close();
  written_ += n;
  if (written_ < writing_.size()) return write();
  writing_.clear();
  written_ = 0;
  if (!out_.empty()) return write();
  write_timer_.cancel();
  if (over_) return next();
  if (!exchange_) return;
  if (exchange_->streams()) arm(write_timer_, server_.options.ping_time, &Connection::on_silence);
  exchange_->room();
}

// At first the answer is told and may end with a word of why; then the connection is cut.
void Connection::on_stall() {
  if (std::exchange(stalled_, true) || !exchange_) return close();
  arm(write_timer_, server_.options.stall_time, &Connection::on_stall);
  exchange_->stalled();
}

void Connection::on_silence() {
  if (exchange_ && exchange_->streams() && !over_) exchange_->send(": ping\n\n");
}

void Connection::next() {
  exchange_.reset();
  write_timer_.cancel();
  if (!keep_alive_) return linger();
  read_head();
}

// The client is told that no more comes and may still be sending: closing at once would reset the connection,
// and the response with it.
void Connection::linger() {
  ErrorCode ignored;
  socket_.shutdown(tcp::socket::shutdown_send, ignored);
  constexpr std::chrono::milliseconds kLinger{2000};
  arm(read_timer_, kLinger, &Connection::close);
  struct Discard {
    std::shared_ptr<Connection> self;
    void operator()(ErrorCode error, size_t) {
      Connection& c = *self;
      if (error || c.closed_) return c.close();
      c.buffer_.clear();
      c.socket_.async_read_some(c.buffer_.prepare(4096), *this);
    }
  };
  Discard{shared_from_this()}({}, 0);
}

void Connection::close() {
  if (std::exchange(closed_, true)) return;
  ErrorCode ignored;
  socket_.close(ignored);
  read_timer_.cancel();
  write_timer_.cancel();
  if (const auto exchange = std::exchange(exchange_, nullptr)) exchange->gone();
}

}  // namespace

void HttpServer::State::accept() {
  acceptor.async_accept(asio::make_strand(io), [this](ErrorCode error, Socket socket) {
    if (finishing || error == asio::error::operation_aborted) return;
    if (error) {  // out of descriptors, most likely: connections that end give some back
      accept_again.expires_after(std::chrono::milliseconds(100));
      accept_again.async_wait([this](ErrorCode e) {
        if (!e) accept();
      });
      return;
    }
    const auto connection = std::make_shared<Connection>(*this, std::move(socket));
    asio::post(connection->strand(), [connection] { connection->begin(); });
    accept();
  });
}

HttpServer::HttpServer(std::unique_ptr<State> state) : state_(std::move(state)) {}
HttpServer::HttpServer(HttpServer&&) noexcept = default;
HttpServer::~HttpServer() {
  if (state_) stop();
}

Result<HttpServer> HttpServer::open(const HttpServerOptions& options) {
  auto state = std::make_unique<State>(options);
  ErrorCode error;
  tcp::resolver resolver(state->io);
  const auto found =
      resolver.resolve(options.host, std::to_string(options.port), tcp::resolver::passive, error);
  const auto refused = [&] {
    return usage_error(fmt::format("{}:{} cannot be listened on: {}. Choose another --host or --port.",
                                   options.host, options.port, error.message()));
  };
  if (error) return refused();
  const tcp::endpoint endpoint = *found.begin();
  state->acceptor.open(endpoint.protocol(), error);
  if (!error) state->acceptor.set_option(asio::socket_base::reuse_address(true), error);
  if (!error) state->acceptor.bind(endpoint, error);
  if (!error) state->acceptor.listen(asio::socket_base::max_listen_connections, error);
  if (!error) state->port = state->acceptor.local_endpoint(error).port();
  if (error) return refused();
  return HttpServer(std::move(state));
}

uint16_t HttpServer::port() const { return state_->port; }

void HttpServer::start(HttpHandler& handler) {
  state_->handler = &handler;
  state_->accept();
  for (unsigned i = 0; i < state_->options.threads; ++i)
    state_->threads.emplace_back([state = state_.get()] { state->io.run(); });
}

bool HttpServer::finish(std::chrono::milliseconds limit) {
  state_->finishing = true;
  asio::post(state_->acceptor.get_executor(), [state = state_.get()] {
    ErrorCode ignored;
    state->acceptor.close(ignored);
    state->accept_again.cancel();
  });
  std::unique_lock lock(state_->mutex);
  return state_->exchange_ended.wait_for(lock, limit, [&] { return state_->exchanges == 0; });
}

void HttpServer::stop() {
  state_->io.stop();
  state_->work.stop();
  for (std::thread& thread : state_->threads) thread.join();
  state_->threads.clear();
  state_->work.join();
  // Connections and exchanges hold each other until they are over.
  std::vector<std::shared_ptr<Connection>> live;
  {
    const std::lock_guard lock(state_->mutex);
    for (Connection* connection : state_->live) {
      if (auto held = connection->weak_from_this().lock()) live.push_back(std::move(held));
    }
  }
  for (const auto& connection : live) connection->close();
}

}  // namespace plow
