#include "tests/run_program.h"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cstdlib>

namespace plow {

namespace {

struct Pipe {
  int read_end = -1, write_end = -1;
  Pipe() {
    std::array<int, 2> ends{};
    if (::pipe2(ends.data(), O_CLOEXEC) == 0) {
      read_end = ends[0];
      write_end = ends[1];
    }
  }
};

[[noreturn]] void become(const ProgramRun& run, int in, int out, int err) {
  ::dup2(in, STDIN_FILENO);
  ::dup2(out, STDOUT_FILENO);
  ::dup2(err, STDERR_FILENO);
  std::vector<std::string> variables = {std::string("PATH=") + std::getenv("PATH")};
  for (const auto& [name, value] : run.environment) variables.push_back(name + "=" + value);
  std::vector<char*> environment, arguments;
  for (std::string& variable : variables) environment.push_back(variable.data());
  environment.push_back(nullptr);
  for (const std::string& argument : run.arguments) arguments.push_back(const_cast<char*>(argument.c_str()));
  arguments.push_back(nullptr);
  if (run.in_child) run.in_child();
  ::execve(arguments[0], arguments.data(), environment.data());
  ::_exit(127);
}

// Takes what is there; false at the end.
bool drain(int fd, std::string& text) {
  std::array<char, 65536> chunk;
  const ssize_t n = ::read(fd, chunk.data(), chunk.size());
  if (n > 0) text.append(chunk.data(), static_cast<size_t>(n));
  return n > 0;
}

void collect(int pid, int out, int err, ProgramResult& result,
             std::chrono::steady_clock::time_point deadline) {
  std::array<pollfd, 2> fds = {{{out, POLLIN, 0}, {err, POLLIN, 0}}};
  while (fds[0].fd >= 0 || fds[1].fd >= 0) {
    if (std::chrono::steady_clock::now() > deadline) ::kill(pid, SIGKILL);
    if (::poll(fds.data(), fds.size(), 100) <= 0) continue;
    for (size_t i = 0; i < fds.size(); ++i) {
      if (fds[i].fd >= 0 && fds[i].revents != 0 && !drain(fds[i].fd, i == 0 ? result.out : result.err))
        fds[i].fd = -1;
    }
  }
}

}  // namespace

ProgramResult run_program(const ProgramRun& run, std::chrono::seconds limit) {
  Pipe in, out, err;
  const int output =
      run.output_file.empty() ? out.write_end : ::open(run.output_file.c_str(), O_WRONLY | O_CLOEXEC);
  const int pid = ::fork();
  if (pid == 0) become(run, in.read_end, output, err.write_end);
  ::close(in.read_end);
  ::close(out.write_end);
  if (output != out.write_end) ::close(output);
  ::close(err.write_end);
  ::signal(SIGPIPE, SIG_IGN);  // a program may end without reading its input
  if (!run.input.empty() && ::write(in.write_end, run.input.data(), run.input.size()) < 0) {
    // It did not want it.
  }
  ::close(in.write_end);
  if (run.while_running) run.while_running(pid);
  ProgramResult result;
  collect(pid, out.read_end, err.read_end, result, std::chrono::steady_clock::now() + limit);
  ::close(out.read_end);
  ::close(err.read_end);
  int status = 0;
  ::waitpid(pid, &status, 0);
  result.exit_code = WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
  return result;
}

}  // namespace plow
