#include "serve/http_server.h"

#include "serve/http_connection.h"

#include <boost/asio/post.hpp>
#include <fmt/format.h>

namespace plow {

namespace asio = boost::asio;
using asio::ip::tcp;
using ErrorCode = boost::system::error_code;

void HttpServer::State::accept() {
  acceptor.async_accept(asio::make_strand(io), [this](ErrorCode error, HttpConnection::Socket socket) {
    if (finishing || error == asio::error::operation_aborted) return;
    if (error) {  // out of descriptors, most likely: connections that end give some back
      accept_again.expires_after(std::chrono::milliseconds(100));
      accept_again.async_wait([this](ErrorCode e) {
        if (!e) accept();
      });
      return;
    }
    const auto connection = std::make_shared<HttpConnection>(*this, std::move(socket));
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
  std::vector<std::shared_ptr<HttpConnection>> live;
  {
    const std::lock_guard lock(state_->mutex);
    for (HttpConnection* connection : state_->live) {
      if (auto held = connection->weak_from_this().lock()) live.push_back(std::move(held));
    }
  }
  for (const auto& connection : live) connection->close();
}

}  // namespace plow
