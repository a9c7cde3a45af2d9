// The server's log on standard error: a line a request, as text or as JSON.
#pragma once

#include "serve/serve_log.h"

#include <memory>
#include <string_view>

namespace spdlog {
class logger;
}

namespace plow {

class StderrLog : public ServeLog {
 public:
  explicit StderrLog(bool json);
  ~StderrLog() override;

  void request(const RequestRecord& record) override;
  void warn(std::string_view text) override;
  void say(std::string_view text);  // of the server itself

 private:
  const bool json_;
  std::unique_ptr<spdlog::logger> logger_;
};

}  // namespace plow
