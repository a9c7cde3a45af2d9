// A connection to a server as its clients on the command line need it: one request of HTTP/1.0, and what
// comes back until the server closes.
#pragma once

#include "base/error.h"

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <utility>

namespace plow {

class Connection {
 public:
  // Errors (kUsage): no such host; (kInput): nothing answers there. `patience_seconds` is for each piece.
  static Result<Connection> open(const std::string& host, uint16_t port, int patience_seconds = 10);
  static Result<Connection> open_local(const std::string& path);
  Connection(Connection&& other) noexcept : fd_(std::exchange(other.fd_, -1)) {}
  Connection& operator=(Connection&&) = delete;
  ~Connection();

  // Errors (kInput): the server cannot be written to, or does not answer.
  Status send(std::string_view request);
  // Appends what comes next; false when the server has closed.
  Result<bool> receive(std::string& to);
  // All that the server sends until it closes, at most so many bytes.
  Result<std::string> exchange(const std::string& request, size_t most);

 private:
  explicit Connection(int fd) : fd_(fd) {}
  int fd_;
};

}  // namespace plow
