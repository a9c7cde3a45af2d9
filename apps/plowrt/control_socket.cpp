#include "plowrt/control_socket.h"

#include "base/json_string.h"
#include "serve/routes.h"

#include <fmt/format.h>
#include <poll.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstring>
#include <memory>
#include <utility>

namespace plow {
namespace {

constexpr size_t kMostRequest = 4096;  // bytes; a name is what a command line holds
constexpr timeval kPatience{5, 0};     // for a client to send its line and to take its answer

class Descriptor {
 public:
  explicit Descriptor(int fd = -1) : fd_(fd) {}
  Descriptor(Descriptor&& other) noexcept : fd_(std::exchange(other.fd_, -1)) {}
  Descriptor& operator=(Descriptor&& other) noexcept {
    std::swap(fd_, other.fd_);
    return *this;
  }
  ~Descriptor() {
    if (fd_ >= 0) ::close(fd_);
  }
  int get() const { return fd_; }

 private:
  int fd_;
};

struct Reply {
  int status = 200;
  std::string body;
};

Reply problem(int status, const std::string& message) {
  Reply reply{status, "{\"error\":"};
  append_json_string(reply.body, message);
  reply.body += '}';
  return reply;
}

}  // namespace

struct ControlSocket::State {
  std::string path;
  ModelPool& pool;
  std::function<std::string()> status;
  Descriptor listener, wake;
  std::thread thread;

  Status listen() {
    sockaddr_un address{};
    address.sun_family = AF_UNIX;
    if (path.size() >= sizeof(address.sun_path)) {
      return usage_error(fmt::format("{}: a socket's path has at most {} bytes. Give a shorter --control.",
                                     path, sizeof(address.sun_path) - 1));
    }
    std::memcpy(address.sun_path, path.data(), path.size());
    const auto* at = reinterpret_cast<const sockaddr*>(&address);
    listener = Descriptor(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0));
    wake = Descriptor(::eventfd(0, EFD_CLOEXEC));
    struct stat there {};
    if (::lstat(path.c_str(), &there) == 0) {
      if (!S_ISSOCK(there.st_mode))
        return usage_error(path + " is there and is no socket. Give another --control.");
      const Descriptor probe(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0));
      if (::connect(probe.get(), at, sizeof(address)) == 0)
        return usage_error(path + " is another server's. Give another --control.");
      ::unlink(path.c_str());
    }
    // Nobody can connect before listen(), so the mode is set in time.
    if (::bind(listener.get(), at, sizeof(address)) != 0 || ::chmod(path.c_str(), S_IRUSR | S_IWUSR) != 0 ||
        ::listen(listener.get(), SOMAXCONN) != 0) {
      return input_error(
          fmt::format("{}: the control socket cannot be made: {}.", path, std::strerror(errno)));
    }
    return {};
  }

  void loop() {
    std::array<pollfd, 2> events{{{listener.get(), POLLIN, 0}, {wake.get(), POLLIN, 0}}};
    while (::poll(events.data(), events.size(), -1) >= 0 || errno == EINTR) {
      if (events[1].revents != 0) return;
      if (events[0].revents == 0) continue;
      const Descriptor client(::accept4(listener.get(), nullptr, nullptr, SOCK_CLOEXEC));
      if (client.get() >= 0) serve(client.get());
    }
  }

  void serve(int client) {
    ::setsockopt(client, SOL_SOCKET, SO_RCVTIMEO, &kPatience, sizeof(kPatience));
    ::setsockopt(client, SOL_SOCKET, SO_SNDTIMEO, &kPatience, sizeof(kPatience));
    std::string request;
    std::array<char, 1024> chunk;
    while (request.find("\r\n\r\n") == std::string::npos && request.size() < kMostRequest) {
      const ssize_t n = ::recv(client, chunk.data(), chunk.size(), 0);
      if (n <= 0) return;
      request.append(chunk.data(), static_cast<size_t>(n));
    }
    const Reply reply = answer(std::string_view(request).substr(0, request.find("\r\n")));
    const std::string response = fmt::format(
        "HTTP/1.1 {} {}\r\nContent-Type: application/json\r\nContent-Length: {}\r\nConnection: "
        "close\r\n\r\n{}",
        reply.status, reply.status == 200 ? "OK" : "Error", reply.body.size(), reply.body);
    for (size_t sent = 0; sent < response.size();) {
      const ssize_t n = ::send(client, response.data() + sent, response.size() - sent, MSG_NOSIGNAL);
      if (n <= 0) return;
      sent += static_cast<size_t>(n);
    }
  }

  Reply answer(std::string_view line) {
    const size_t space = line.find(' ');
    if (space == std::string_view::npos) return problem(400, "This is no request of HTTP.");
    const std::string_view method = line.substr(0, space);
    std::string_view target = line.substr(space + 1);
    target = target.substr(0, target.find(' '));
    if (method == "GET" && target == "/status") return {200, status()};
    constexpr std::string_view kModels = "/models/";
    const size_t slash = target.rfind('/');
    if (method != "POST" || !target.starts_with(kModels) || slash < kModels.size())
      return problem(404, "There are GET /status, POST /models/NAME/load and POST /models/NAME/unload.");
    const auto name = percent_decoded(target.substr(kModels.size(), slash - kModels.size()));
    for (size_t i = 0; name && i < pool.size(); ++i) {
      if (pool.name(i) == *name) return change(i, target.substr(slash + 1));
    }
    return problem(404, "There is no such model; GET /status lists them.");
  }

  Reply change(size_t model, std::string_view verb) {
    if (verb != "load" && verb != "unload") return problem(404, "A model can be told to load and to unload.");
    const Status done = verb == "load" ? pool.load(model) : pool.unload(model);
    if (!done.ok()) return problem(503, done.error().message);
    Reply reply{200, "{\"model\":"};
    append_json_string(reply.body, pool.name(model));
    reply.body += fmt::format(",\"state\":\"{}\"}}", model_state_name(pool.residency(model).state));
    return reply;
  }
};

Result<ControlSocket> ControlSocket::open(std::string path, ModelPool& pool,
                                          std::function<std::string()> status) {
  auto state = std::unique_ptr<State>(
      new State{std::move(path), pool, std::move(status), Descriptor(), Descriptor(), {}});
  PLOW_TRY_STATUS(state->listen());
  state->thread = std::thread([at = state.get()] { at->loop(); });
  return ControlSocket(std::move(state));
}

ControlSocket::ControlSocket(std::unique_ptr<State> state) : state_(std::move(state)) {}
ControlSocket::ControlSocket(ControlSocket&&) noexcept = default;

ControlSocket::~ControlSocket() {
  if (!state_) return;
  const uint64_t one = 1;
  (void)!::write(state_->wake.get(), &one, sizeof(one));
  state_->thread.join();
  ::unlink(state_->path.c_str());
}

}  // namespace plow
