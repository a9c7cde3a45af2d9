#include "compile/run_verifier.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstring>

namespace plow {
namespace {

// Of plow_verify: 0 accepted, 1 refused; else there is no receipt.
constexpr int kMostReceiptStatus = 1;

Error cannot_run(const std::filesystem::path& program, int error) {
  return input_error(fmt::format("cannot run {}: {}", program.string(), std::strerror(error)));
}

// A pipe whose ends are closed when they are no longer needed.
class Pipe {
 public:
  Pipe() { opened_ = ::pipe2(ends_.data(), O_CLOEXEC) == 0; }
  ~Pipe() {
    close_write_end();
    if (opened_) ::close(ends_[0]);
  }
  Pipe(const Pipe&) = delete;
  Pipe& operator=(const Pipe&) = delete;

  bool opened() const { return opened_; }
  int read_end() const { return ends_[0]; }
  int write_end() const { return ends_[1]; }
  void close_write_end() {
    if (opened_ && ends_[1] >= 0) ::close(ends_[1]);
    ends_[1] = -1;
  }

 private:
  std::array<int, 2> ends_{-1, -1};
  bool opened_ = false;
};

// Its standard output goes into the pipe; its messages to ours; it gets no environment, which it does not
// read.
Result<pid_t> start(const std::filesystem::path& program, const std::filesystem::path& model_pkt,
                    const Pipe& pipe) {
  std::string path = program.string(), model = model_pkt.string(), flag = "--receipt";
  std::array<char*, 4> arguments{path.data(), model.data(), flag.data(), nullptr};
  std::array<char*, 1> environment{nullptr};
  posix_spawn_file_actions_t actions;
  ::posix_spawn_file_actions_init(&actions);
  ::posix_spawn_file_actions_adddup2(&actions, pipe.write_end(), STDOUT_FILENO);
  pid_t child = 0;
  const int error =
      ::posix_spawn(&child, path.c_str(), &actions, nullptr, arguments.data(), environment.data());
  ::posix_spawn_file_actions_destroy(&actions);
  if (error != 0) return cannot_run(program, error);
  return child;
}

// All that comes until the end, or until it is cancelled.
std::string read_all(int fd, const std::function<bool()>& cancelled) {
  std::string text;
  std::array<char, 4096> chunk;
  while (!cancelled()) {
    pollfd ready{fd, POLLIN, 0};
    constexpr int kMilliseconds = 100;
    if (::poll(&ready, 1, kMilliseconds) <= 0) continue;
    const ssize_t n = ::read(fd, chunk.data(), chunk.size());
    if (n == 0 || (n < 0 && errno != EINTR)) break;
    if (n > 0) text.append(chunk.data(), static_cast<size_t>(n));
  }
  return text;
}

}  // namespace

Status check_verifier(const std::filesystem::path& program) {
  if (::access(program.c_str(), X_OK) == 0) return {};
  return input_error(
      fmt::format("{}: the bundle cannot be verified. plow_verify belongs beside plowc and is built with it "
                  "where Rocq and OCaml are "
                  "(scripts/packages.txt); --no-verify writes a bundle that is not verified",
                  cannot_run(program, errno).message));
}

Result<std::string> run_verifier(const std::filesystem::path& program, const std::filesystem::path& model_pkt,
                                 const std::function<bool()>& cancelled) {
  Pipe pipe;
  if (!pipe.opened()) return cannot_run(program, errno);
  PLOW_TRY(const pid_t child, start(program, model_pkt, pipe));
  pipe.close_write_end();
  std::string receipt = read_all(pipe.read_end(), cancelled);
  const bool stopped = cancelled();
  if (stopped) ::kill(child, SIGKILL);
  int status = 0;
  while (::waitpid(child, &status, 0) < 0 && errno == EINTR) {
  }
  if (stopped) return input_error("the verification was interrupted");
  if (WIFEXITED(status) && WEXITSTATUS(status) <= kMostReceiptStatus) return receipt;
  return verification_error(
      WIFEXITED(status) ? fmt::format("{} ended with status {}", program.string(), WEXITSTATUS(status))
                        : fmt::format("{} was ended by signal {}", program.string(), WTERMSIG(status)));
}

}  // namespace plow
