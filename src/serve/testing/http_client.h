// A client of HTTP/1.1 over a plain socket, for tests: it can also be slow, half-open, or wrong.
#pragma once

#include <arpa/inet.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cctype>
#include <cstdint>
#include <cstdlib>
#include <string>
#include <string_view>
#include <utility>

namespace plow {

struct ClientResponse {
  int status = 0;  // 0: none came
  std::string head, body;
  bool whole = false;  // the body ended as its framing says

  std::string field(std::string_view name) const {
    for (size_t at = head.find("\r\n"); at != std::string::npos; at = head.find("\r\n", at + 2)) {
      const size_t colon = head.find(':', at);
      if (colon == std::string::npos) break;
      const std::string_view key = std::string_view(head).substr(at + 2, colon - at - 2);
      const auto same = [](unsigned char a, unsigned char b) { return std::tolower(a) == std::tolower(b); };
      if (key.size() != name.size() || !std::equal(key.begin(), key.end(), name.begin(), same)) continue;
      const size_t end = head.find("\r\n", colon);
      return head.substr(colon + 2, end - colon - 2);
    }
    return {};
  }
};

class HttpClient {
 public:
  // A receive buffer of so many bytes; 0: the system's.
  explicit HttpClient(uint16_t port, int receive_bytes = 0)
      : fd_(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)) {
    if (receive_bytes > 0) ::setsockopt(fd_, SOL_SOCKET, SO_RCVBUF, &receive_bytes, sizeof(receive_bytes));
    constexpr timeval kPatience{60, 0};
    ::setsockopt(fd_, SOL_SOCKET, SO_RCVTIMEO, &kPatience, sizeof(kPatience));
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_port = htons(port);
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    if (::connect(fd_, reinterpret_cast<const sockaddr*>(&address), sizeof(address)) != 0) drop();
  }
  HttpClient(HttpClient&& other) noexcept
      : fd_(std::exchange(other.fd_, -1)), rest_(std::move(other.rest_)) {}
  HttpClient& operator=(HttpClient&&) = delete;
  ~HttpClient() { drop(); }

  void send(std::string_view bytes) {
    while (!bytes.empty()) {
      const ssize_t n = ::send(fd_, bytes.data(), bytes.size(), MSG_NOSIGNAL);
      if (n <= 0) return;
      bytes.remove_prefix(static_cast<size_t>(n));
    }
  }
  void post(std::string_view path, std::string_view body, std::string_view fields = {}) {
    std::string request = "POST " + std::string(path) + " HTTP/1.1\r\nHost: localhost\r\nContent-Length: ";
    request += std::to_string(body.size()) + "\r\n" + std::string(fields) + "\r\n";
    send(request + std::string(body));
  }
  void get(std::string_view path, std::string_view fields = {}) {
    send("GET " + std::string(path) + " HTTP/1.1\r\nHost: localhost\r\n" + std::string(fields) + "\r\n");
  }

  // One response; `to_head` leaves its body to read_body().
  ClientResponse read(bool to_head = false) {
    ClientResponse response;
    size_t end = std::string::npos;
    while ((end = rest_.find("\r\n\r\n")) == std::string::npos) {
      if (!more()) return response;
    }
    response.head = rest_.substr(0, end + 2);
    rest_.erase(0, end + 4);
    response.status = std::atoi(response.head.c_str() + 9);
    if (response.status == 100) return read(to_head);
    if (!to_head) read_body(response);
    return response;
  }
  void read_body(ClientResponse& response) {
    const std::string length = response.field("Content-Length");
    if (response.field("Transfer-Encoding") == "chunked") {
      while (read_chunk(response)) {
      }
    } else if (!length.empty()) {
      const size_t size = std::stoul(length);
      while (rest_.size() < size && more()) {
      }
      response.whole = rest_.size() >= size;
      response.body = rest_.substr(0, size);
      rest_.erase(0, response.body.size());
    } else {
      while (more()) {
      }
      response.body = std::exchange(rest_, {});
      response.whole = true;
    }
  }
  // One chunk into the body; false at the end.
  bool read_chunk(ClientResponse& response) {
    size_t line = std::string::npos;
    while ((line = rest_.find("\r\n")) == std::string::npos) {
      if (!more()) return false;
    }
    const size_t size = std::stoul(rest_.substr(0, line), nullptr, 16);
    while (rest_.size() < line + 2 + size + 2) {
      if (!more()) return false;
    }
    response.body += rest_.substr(line + 2, size);
    rest_.erase(0, line + 2 + size + 2);
    response.whole = size == 0;
    return size != 0;
  }

  // Bytes that come now; false at the end.
  bool more() {
    std::array<char, 65536> chunk;
    const ssize_t n = ::recv(fd_, chunk.data(), chunk.size(), 0);
    if (n > 0) rest_.append(chunk.data(), static_cast<size_t>(n));
    return n > 0;
  }
  bool connected() const { return fd_ >= 0; }
  void finish_sending() { ::shutdown(fd_, SHUT_WR); }
  void drop() {
    if (fd_ >= 0) ::close(std::exchange(fd_, -1));
  }

 private:
  int fd_;
  std::string rest_;
};

}  // namespace plow
