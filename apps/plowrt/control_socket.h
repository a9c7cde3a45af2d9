// A socket of this machine on which a server's models are looked at, loaded and unloaded. Only the user who
// runs the server can open it, so it asks for no key. It speaks as much of HTTP/1.0 as curl --unix-socket
// needs:
//   GET /status; POST /models/NAME/load; POST /models/NAME/unload
#pragma once

#include "base/error.h"
#include "runtime/model_pool.h"

#include <functional>
#include <string>
#include <string_view>
#include <thread>

namespace plow {

class ControlSocket {
 public:
  // Errors (kUsage): a path that is too long or in use; (kInput) it cannot be made. A socket that a server
  // left behind is replaced. `status` gives the JSON of GET /status. REQUIRES that pool and status outlive
  // it.
  static Result<ControlSocket> open(std::string path, ModelPool& pool, std::function<std::string()> status);

  ControlSocket(ControlSocket&& other) noexcept;
  ControlSocket& operator=(ControlSocket&&) = delete;
  // Ends the thread and removes the socket. A load or unload under way has to end first: stop the pool.
  ~ControlSocket();

 private:
  struct State;
  explicit ControlSocket(std::unique_ptr<State> state);
  std::unique_ptr<State> state_;
};

}  // namespace plow
