// A server as a process of its own, of this very program.
#pragma once

#include "base/error.h"

#include <sys/types.h>

#include <cstdint>
#include <string>
#include <utility>

namespace plow {

class ChildServer {
 public:
  // plowrt serve on a free port of 127.0.0.1, without a key; other options come from the environment as
  // always. Returns when its ready line is there. Errors (kDevice): it ended instead; what it said is in the
  // message.
  static Result<ChildServer> start(const std::string& bundle);
  ChildServer(ChildServer&& other) noexcept
      : pid_(std::exchange(other.pid_, -1)), output_(std::exchange(other.output_, -1)), port_(other.port_) {}
  ChildServer& operator=(ChildServer&&) = delete;
  ~ChildServer();  // ends it at once

  uint16_t port() const { return port_; }
  // Tells it to end, and waits. Errors (kDevice): it ended in another way.
  Status stop();

 private:
  ChildServer(pid_t pid, int output) : pid_(pid), output_(output) {}
  Status wait_until_ready();

  pid_t pid_;
  int output_;  // what it says; open as long as it runs
  uint16_t port_ = 0;
};

}  // namespace plow
