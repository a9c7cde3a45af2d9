#include "serve/http_connection.h"

#include <boost/asio/post.hpp>
#include <boost/beast/core/string.hpp>
#include <boost/beast/http/read.hpp>
#include <fmt/format.h>

#include <iterator>

namespace plow {

namespace asio = boost::asio;
namespace http = boost::beast::http;
using asio::ip::tcp;

namespace {

using ErrorCode = boost::system::error_code;

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

}  // namespace

class HttpConnection::Exchange : public HttpExchange,
                                 public std::enable_shared_from_this<HttpConnection::Exchange> {
 public:
  Exchange(HttpServer::State& server, std::shared_ptr<HttpConnection> connection)
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
  std::shared_ptr<HttpConnection> connection_;  // null when the response is complete or the client has left
  ExchangeEvents events_;
  bool streams_ = false, gone_ = false;
};

void HttpConnection::begin() {
  ErrorCode ignored;
  socket_.non_blocking(true, ignored);
  socket_.set_option(tcp::no_delay(true), ignored);
  // What a stalled client can make the kernel hold for it.
  socket_.set_option(asio::socket_base::send_buffer_size(static_cast<int>(kStreamRoom)), ignored);
  if (over_limit_) return refuse(503, "This server has as many connections as it takes. Try again later.");
  read_head();
}

void HttpConnection::arm(Timer& timer, std::chrono::milliseconds time, void (HttpConnection::*expired)()) {
  timer.expires_after(time);
  timer.async_wait([self = shared_from_this(), expired, &timer](ErrorCode error) {
    // A timer that was set anew while this waited to run has not expired.
    if (!error && !self->closed_ && timer.expiry() <= std::chrono::steady_clock::now())
      (self.get()->*expired)();
  });
}

void HttpConnection::read_head() {
  over_ = stalled_ = false;
  parser_.emplace();
  parser_->header_limit(static_cast<uint32_t>(server_.options.header_bytes));
  parser_->body_limit(server_.options.body_bytes);
  arm(read_timer_, server_.options.header_time, &HttpConnection::close);
  http::async_read_header(socket_, buffer_, *parser_,
                          [self = shared_from_this()](ErrorCode error, size_t) { self->on_head(error); });
}

void HttpConnection::on_head(ErrorCode error) {
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
  arm(read_timer_, server_.options.body_time, &HttpConnection::close);
  http::async_read(socket_, buffer_, *parser_,
                   [self = shared_from_this()](ErrorCode e, size_t) { self->on_body(e); });
}

void HttpConnection::on_body(ErrorCode error) {
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

void HttpConnection::refuse(int status, const std::string& why) {
  respond_and_close(server_.handler->refuse(status, why));
}

void HttpConnection::respond_and_close(const HttpResponse& response) {
  keep_alive_ = false;
  begin_response(response, fmt::format("Content-Length: {}\r\n\r\n", response.body.size()));
  if (!head_only_) send(response.body);
  response_over();
}

// Learns of a client that leaves while its answer is made. A client that sends its next request ahead is
// watched no longer: that it has left is then found by writing.
void HttpConnection::watch() {
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

void HttpConnection::begin_response(const HttpResponse& head, std::string framing) {
  if (server_.finishing) keep_alive_ = false;
  if (version_ < 11) keep_alive_ = false;
  send(head_text(head, !keep_alive_) + framing);
}

void HttpConnection::send(std::string_view bytes) {
  if (closed_) return;
  out_ += bytes;
  if (writing_.empty()) write();
}

void HttpConnection::response_over() {
  over_ = true;
  if (writing_.empty() && !closed_) next();
}

void HttpConnection::write() {
  if (written_ == writing_.size()) {
    writing_ = std::exchange(out_, {});
    written_ = 0;
  }
  arm(write_timer_, server_.options.stall_time, &HttpConnection::on_stall);
  socket_.async_write_some(
      asio::buffer(writing_.data() + written_, writing_.size() - written_),
      [self = shared_from_this()](ErrorCode error, size_t n) { self->on_written(error, n); });
}

void HttpConnection::on_written(ErrorCode error, size_t n) {
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
  if (exchange_->streams()) arm(write_timer_, server_.options.ping_time, &HttpConnection::on_silence);
  exchange_->room();
}

// At first the answer is told and may end with a word of why; then the connection is cut.
void HttpConnection::on_stall() {
  if (std::exchange(stalled_, true) || !exchange_) return close();
  arm(write_timer_, server_.options.stall_time, &HttpConnection::on_stall);
  exchange_->stalled();
}

void HttpConnection::on_silence() {
  if (exchange_ && exchange_->streams() && !over_) exchange_->send(": ping\n\n");
}

void HttpConnection::next() {
  exchange_.reset();
  write_timer_.cancel();
  if (!keep_alive_) return linger();
  read_head();
}

// The client is told that no more comes and may still be sending: closing at once would reset the connection,
// and the response with it.
void HttpConnection::linger() {
  ErrorCode ignored;
  socket_.shutdown(tcp::socket::shutdown_send, ignored);
  constexpr std::chrono::milliseconds kLinger{2000};
  arm(read_timer_, kLinger, &HttpConnection::close);
  struct Discard {
    std::shared_ptr<HttpConnection> self;
    void operator()(ErrorCode error, size_t) {
      HttpConnection& c = *self;
      if (error || c.closed_) return c.close();
      c.buffer_.clear();
      c.socket_.async_read_some(c.buffer_.prepare(4096), *this);
    }
  };
  Discard{shared_from_this()}({}, 0);
}

void HttpConnection::close() {
  if (std::exchange(closed_, true)) return;
  ErrorCode ignored;
  socket_.close(ignored);
  read_timer_.cancel();
  write_timer_.cancel();
  if (const auto exchange = std::exchange(exchange_, nullptr)) exchange->gone();
}

}  // namespace plow
