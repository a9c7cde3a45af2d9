#include "base/text_table.h"
#include "plowrt/serve_command.h"

#include <boost/json.hpp>
#include <fmt/format.h>
#include <netdb.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <exception>
#include <memory>
#include <utility>

namespace plow {

namespace {

namespace json = boost::json;

constexpr size_t kMostBytes = size_t{1} << 20;  // of a status

struct FreeAddresses {
  void operator()(addrinfo* list) const { ::freeaddrinfo(list); }
};

class Connection {
 public:
  static Result<Connection> open(const std::string& host, uint16_t port) {
    addrinfo hints{};
    hints.ai_socktype = SOCK_STREAM;
    addrinfo* found = nullptr;
    if (const int code = ::getaddrinfo(host.c_str(), std::to_string(port).c_str(), &hints, &found); code != 0)
      return usage_error(fmt::format("{}: {}.", host, ::gai_strerror(code)));
    const std::unique_ptr<addrinfo, FreeAddresses> list(found);
    Connection connection(::socket(list->ai_family, list->ai_socktype | SOCK_CLOEXEC, list->ai_protocol));
    constexpr timeval kPatience{10, 0};
    ::setsockopt(connection.fd_, SOL_SOCKET, SO_RCVTIMEO, &kPatience, sizeof(kPatience));
    if (::connect(connection.fd_, list->ai_addr, list->ai_addrlen) != 0) {
      return input_error(
          fmt::format("no server answers at {}:{} ({}). Start one with plowrt serve, or name another "
                      "--port.",
                      host, port, std::strerror(errno)));
    }
    return connection;
  }
  Connection(Connection&& other) noexcept : fd_(std::exchange(other.fd_, -1)) {}
  Connection& operator=(Connection&&) = delete;
  ~Connection() {
    if (fd_ >= 0) ::close(fd_);
  }

  // All that the server sends until it closes.
  Result<std::string> exchange(const std::string& request) {
    if (::send(fd_, request.data(), request.size(), MSG_NOSIGNAL) != static_cast<ssize_t>(request.size()))
      return input_error(fmt::format("the server cannot be written to: {}.", std::strerror(errno)));
    std::string all;
    std::array<char, 4096> chunk;
    while (all.size() < kMostBytes) {
      const ssize_t n = ::recv(fd_, chunk.data(), chunk.size(), 0);
      if (n == 0) return all;
      if (n < 0) return input_error(fmt::format("the server does not answer: {}.", std::strerror(errno)));
      all.append(chunk.data(), static_cast<size_t>(n));
    }
    return input_error("this is not a plow server: its status has no end.");
  }

 private:
  explicit Connection(int fd) : fd_(fd) {}
  int fd_;
};

Error not_plow(const PsOptions& options) {
  return input_error(fmt::format("{}:{} is not a plow server.", options.host, options.port));
}

Result<json::value> fetch_status(const PsOptions& options) {
  PLOW_TRY(Connection connection, Connection::open(options.host, options.port));
  const std::string key = options.api_key.empty() ? "" : "Authorization: Bearer " + options.api_key + "\r\n";
  PLOW_TRY(const std::string response,
           connection.exchange(fmt::format("GET /status HTTP/1.0\r\nHost: {}\r\n{}\r\n", options.host, key)));
  const size_t body = response.find("\r\n\r\n");
  if (response.find(" 401 ") == std::string_view("HTTP/1.1").size())
    return usage_error("the server asks for an API key: give --api-key or PLOW_API_KEY.");
  if (response.find(" 200 ") != std::string_view("HTTP/1.1").size() || body == std::string::npos)
    return not_plow(options);
  boost::system::error_code error;
  json::value status = json::parse(std::string_view(response).substr(body + 4), error);
  if (error || !status.is_object() || !status.get_object().contains("models")) return not_plow(options);
  return status;
}

std::string status_table(const json::value& status) {
  TextTable table(
      {"model", "state", ">context", ">running", ">waiting", ">slots", ">cache used", ">tokens", ">memory"});
  for (const json::value& entry : status.at("models").as_array()) {
    const auto number = [&](const char* name) { return entry.at(name).to_number<uint64_t>(); };
    const auto text = [&](const char* name) { return std::string(entry.at(name).as_string()); };
    uint64_t bytes = 0;
    for (const auto& part : entry.at("memory_bytes").as_object()) bytes += part.value().to_number<uint64_t>();
    const uint64_t blocks = std::max<uint64_t>(number("cache_blocks"), 1);
    table.add_row({text("name"), text("state"), std::to_string(number("context")),
                   std::to_string(number("running")), std::to_string(number("waiting")),
                   std::to_string(number("slots")),
                   fmt::format("{}%", 100 * (blocks - number("cache_blocks_free")) / blocks),
                   std::to_string(number("answer_tokens")), format_bytes(static_cast<double>(bytes))});
  }
  return table.to_string();
}

}  // namespace

Status ps_command(const PsOptions& options) {
  PLOW_TRY(const json::value status, fetch_status(options));
  if (options.json) {
    fmt::print("{}\n", json::serialize(status));
    return {};
  }
  std::string table;
  try {
    table = status_table(status);
  } catch (const std::exception&) {  // a field is not there, or of another type
    return not_plow(options);
  }
  fmt::print("{}", table);
  return {};
}

}  // namespace plow
