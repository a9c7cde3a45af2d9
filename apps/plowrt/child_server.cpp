#include "plowrt/child_server.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <signal.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <charconv>
#include <cstring>
#include <filesystem>
#include <string_view>
#include <vector>

namespace plow {
namespace {

// The environment but for the key: the one who started the server asks it.
std::vector<char*> environment_without_key() {
  std::vector<char*> variables;
  for (char** variable = environ; *variable != nullptr; ++variable) {
    if (!std::string_view(*variable).starts_with("PLOW_API_KEY=")) variables.push_back(*variable);
  }
  variables.push_back(nullptr);
  return variables;
}

int wait_for(pid_t pid) {
  int status = 0;
  ::waitpid(pid, &status, 0);
  return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

}  // namespace

Result<ChildServer> ChildServer::start(const std::string& bundle) {
  std::array<int, 2> ends{};
  std::error_code none;
  const std::string program = std::filesystem::read_symlink("/proc/self/exe", none).string();
  if (none || ::pipe2(ends.data(), O_CLOEXEC) != 0)
    return device_error("no process can be started from here: /proc is not there, or no descriptor is free.");
  std::vector<std::string> words = {program,  "serve",     "--assets", bundle,
                                    "--host", "127.0.0.1", "--port",   "0"};
  std::vector<char*> arguments;
  for (std::string& word : words) arguments.push_back(word.data());
  arguments.push_back(nullptr);
  posix_spawn_file_actions_t actions;
  ::posix_spawn_file_actions_init(&actions);
  ::posix_spawn_file_actions_adddup2(&actions, ends[1], STDOUT_FILENO);
  ::posix_spawn_file_actions_adddup2(&actions, ends[1], STDERR_FILENO);
  pid_t pid = -1;
  const int failed = ::posix_spawn(&pid, program.c_str(), &actions, nullptr, arguments.data(),
                                   environment_without_key().data());
  ::posix_spawn_file_actions_destroy(&actions);
  ::close(ends[1]);
  ChildServer server(failed == 0 ? pid : -1, ends[0]);
  if (failed != 0)
    return device_error(fmt::format("{} cannot be started: {}.", program, std::strerror(failed)));
  PLOW_TRY_STATUS(server.wait_until_ready());
  return server;
}

Status ChildServer::wait_until_ready() {
  constexpr std::string_view kUrl = "ready: http://127.0.0.1:";  // serve_command.cpp, ready_text()
  std::string said;
  std::array<char, 4096> chunk;
  while (true) {
    const size_t at = said.find(kUrl);
    if (at != std::string::npos && said.find('\n', at) != std::string::npos) {
      const char* digits = said.data() + at + kUrl.size();
      std::from_chars(digits, said.data() + said.size(), port_);
      return {};
    }
    const ssize_t n = ::read(output_, chunk.data(), chunk.size());
    if (n <= 0) break;
    said.append(chunk.data(), static_cast<size_t>(n));
  }
  while (!said.empty() && said.back() == '\n') said.pop_back();
  return device_error("the server ended before it was ready: " + said);
}

Status ChildServer::stop() {
  ::kill(pid_, SIGTERM);
  const int code = wait_for(std::exchange(pid_, -1));
  if (code == 0) return {};
  return device_error(fmt::format("the server ended with exit code {} when it was told to stop.", code));
}

ChildServer::~ChildServer() {
  if (pid_ > 0) {
    ::kill(pid_, SIGKILL);
    wait_for(pid_);
  }
  if (output_ >= 0) ::close(output_);
}

}  // namespace plow
