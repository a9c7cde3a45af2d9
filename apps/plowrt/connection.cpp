#include "plowrt/connection.h"

#include <fmt/format.h>
#include <netdb.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <sys/un.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstring>
#include <memory>

namespace plow {
namespace {

struct FreeAddresses {
  void operator()(addrinfo* list) const { ::freeaddrinfo(list); }
};

}  // namespace

Result<Connection> Connection::open(const std::string& host, uint16_t port, int patience_seconds) {
  addrinfo hints{};
  hints.ai_socktype = SOCK_STREAM;
  addrinfo* found = nullptr;
  if (const int code = ::getaddrinfo(host.c_str(), std::to_string(port).c_str(), &hints, &found); code != 0)
    return usage_error(fmt::format("{}: {}.", host, ::gai_strerror(code)));
  const std::unique_ptr<addrinfo, FreeAddresses> list(found);
  Connection connection(::socket(list->ai_family, list->ai_socktype | SOCK_CLOEXEC, list->ai_protocol));
  const timeval patience{patience_seconds, 0};
  ::setsockopt(connection.fd_, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof(patience));
  if (::connect(connection.fd_, list->ai_addr, list->ai_addrlen) != 0) {
    return input_error(
        fmt::format("no server answers at {}:{} ({}). Start one with plowrt serve, or name another "
                    "--port.",
                    host, port, std::strerror(errno)));
  }
  return connection;
}

Result<Connection> Connection::open_local(const std::string& path) {
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  if (path.size() >= sizeof(address.sun_path))
    return usage_error(fmt::format("{}: this is too long for a socket's path.", path));
  std::memcpy(address.sun_path, path.data(), path.size());
  Connection connection(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0));
  if (::connect(connection.fd_, reinterpret_cast<const sockaddr*>(&address), sizeof(address)) != 0) {
    return input_error(fmt::format("no server answers at {} ({}). Start one with plowrt serve --control {}.",
                                   path, std::strerror(errno), path));
  }
  return connection;
}

Connection::~Connection() {
  if (fd_ >= 0) ::close(fd_);
}

Status Connection::send(std::string_view request) {
  while (!request.empty()) {
    const ssize_t n = ::send(fd_, request.data(), request.size(), MSG_NOSIGNAL);
    if (n <= 0) return input_error(fmt::format("the server cannot be written to: {}.", std::strerror(errno)));
    request.remove_prefix(static_cast<size_t>(n));
  }
  return {};
}

Result<bool> Connection::receive(std::string& to) {
  std::array<char, 16384> chunk;
  const ssize_t n = ::recv(fd_, chunk.data(), chunk.size(), 0);
  if (n < 0) return input_error(fmt::format("the server does not answer: {}.", std::strerror(errno)));
  to.append(chunk.data(), static_cast<size_t>(n));
  return n > 0;
}

Result<std::string> Connection::exchange(const std::string& request, size_t most) {
  PLOW_TRY_STATUS(send(request));
  std::string all;
  while (all.size() < most) {
    PLOW_TRY(const bool more, receive(all));
    if (!more) return all;
  }
  return input_error("this is not a plow server: its answer has no end.");
}

}  // namespace plow
