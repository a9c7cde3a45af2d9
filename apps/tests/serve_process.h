// plowrt serve as a process of its own, for tests: its ready line, its port, its log, and streams of chat.
#pragma once

#include "serve/testing/http_client.h"
#include "tests/fixture.h"

#include <boost/json.hpp>
#include <fcntl.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <cstdlib>
#include <filesystem>
#include <optional>
#include <string>
#include <thread>

namespace plow {

namespace json = boost::json;

// The program as a process of its own, from its ready line to its end.
class ServerProcess {
 public:
  explicit ServerProcess(const std::string& options = {}, const std::string& key = {},
                         const std::string& bundle = "tiny.plow") {
    const std::string port = options.find("--port") == std::string::npos ? " --port 0 " : " ";
    ProgramRun run = parse_command("plowrt serve --assets DIR/" + bundle + port + options);
    std::vector<char*> arguments;
    for (std::string& argument : run.arguments) arguments.push_back(argument.data());
    arguments.push_back(nullptr);
    std::string variable = "PLOW_API_KEY=" + key;
    std::vector<char*> environment;
    if (!key.empty()) environment.push_back(variable.data());
    environment.push_back(nullptr);
    std::array<int, 2> out{};
    EXPECT_EQ(::pipe(out.data()), 0);
    log_ = (fixture_folder() / ("serve." + std::to_string(next_log()) + ".log")).string();
    pid_ = ::fork();
    if (pid_ == 0) {
      ::dup2(out[1], STDOUT_FILENO);
      ::close(out[0]);
      const int log = ::open(log_.c_str(), O_WRONLY | O_CREAT | O_TRUNC, 0644);
      ::dup2(log, STDERR_FILENO);
      ::execve(arguments[0], arguments.data(), environment.data());
      ::_exit(127);
    }
    ::close(out[1]);
    std::array<char, 4096> chunk;
    for (ssize_t n = 0;
         ready_.find("curl") == std::string::npos && (n = ::read(out[0], chunk.data(), chunk.size())) > 0;)
      ready_.append(chunk.data(), static_cast<size_t>(n));
    ::close(out[0]);
    const size_t colon = ready_.find(':', ready_.find("http://") + 7);
    if (colon != std::string::npos) port_ = static_cast<uint16_t>(std::atoi(ready_.c_str() + colon + 1));
    EXPECT_NE(port_, 0) << log();
  }
  ~ServerProcess() {
    if (pid_ > 0) {
      ::kill(pid_, SIGKILL);
      wait();
    }
  }

  uint16_t port() const { return port_; }
  const std::string& ready_text() const { return ready_; }
  void signal(int number) const { ::kill(pid_, number); }
  int wait() {
    int status = 0;
    ::waitpid(std::exchange(pid_, -1), &status, 0);
    return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
  }
  std::string log() const {
    std::string text;
    if (std::FILE* file = std::fopen(log_.c_str(), "r")) {
      std::array<char, 65536> chunk;
      for (size_t n = 0; (n = std::fread(chunk.data(), 1, chunk.size(), file)) > 0;)
        text.append(chunk.data(), n);
      std::fclose(file);
    }
    return text;
  }

  ClientResponse get(const std::string& path, const std::string& fields = {}) const {
    HttpClient client(port_);
    client.get(path, fields);
    return client.read();
  }
  ClientResponse post(const std::string& path, const std::string& body) const {
    HttpClient client(port_);
    client.post(path, body);
    return client.read();
  }
  json::object model_status() const {
    return json::parse(get("/status").body).at("models").at(0).as_object();
  }
  // Waits until nothing runs or waits.
  json::object idle_status() const {
    json::object status;
    for (int i = 0; i < 3000; ++i) {
      status = model_status();
      if (status["running"] == 0 && status["waiting"] == 0) break;
      std::this_thread::sleep_for(std::chrono::milliseconds(20));
    }
    return status;
  }

 private:
  static int next_log() {
    static int n = 0;
    return n++;
  }
  pid_t pid_ = -1;
  uint16_t port_ = 0;
  std::string ready_, log_;
};

inline std::string chat_body(const std::string& text, const std::string& rest) {
  return R"({"messages":[{"role":"user","content":)" + json::serialize(json::value(text)) + "}]" + rest + "}";
}

struct Streamed {
  std::string text, finish_reason;
  json::value usage, error;
  int frames = 0, finishes = 0;
  bool done = false;
};

inline Streamed read_events(const std::string& body) {
  Streamed streamed;
  for (size_t at = 0; at < body.size();) {
    const size_t end = body.find("\n\n", at);
    if (end == std::string::npos) break;
    const std::string line = body.substr(at, end - at);
    at = end + 2;
    if (line.starts_with(":")) continue;
    const std::string data = line.substr(6);
    if (data == "[DONE]") {
      streamed.done = true;
      continue;
    }
    ++streamed.frames;
    const json::value frame = json::parse(data);
    const json::object& object = frame.as_object();
    if (const json::value* error = object.if_contains("error")) {
      streamed.error = *error;
      continue;
    }
    if (const json::value* usage = object.if_contains("usage"); usage != nullptr && !usage->is_null())
      streamed.usage = *usage;
    for (const json::value& choice : object.at("choices").as_array()) {
      if (const json::value* piece = choice.at("delta").as_object().if_contains("content"))
        streamed.text += std::string_view(piece->as_string());
      if (choice.at("finish_reason").is_string()) {
        streamed.finish_reason = std::string(choice.at("finish_reason").as_string());
        ++streamed.finishes;
      }
    }
  }
  return streamed;
}

inline Streamed stream_alone(const ServerProcess& server, const std::string& body) {
  const ClientResponse response = server.post("/v1/chat/completions", body);
  EXPECT_EQ(response.status, 200) << response.body;
  EXPECT_TRUE(response.whole);
  return read_events(response.body);
}

}  // namespace plow
