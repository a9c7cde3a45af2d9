// What the server reports about its work. Neither prompts nor answers are among it.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace plow {

struct RequestRecord {
  std::string id, method, path;
  int status = 0;
  double seconds = 0;  // from the request to the end of the response
  uint64_t prompt_tokens = 0, answer_tokens = 0;
  double first_token_seconds = 0;  // 0: none came
  std::string note;                // what went wrong; empty: nothing
};

// Called from several threads.
class ServeLog {
 public:
  virtual ~ServeLog() = default;
  virtual void request(const RequestRecord& record) = 0;
  virtual void warn(std::string_view text) = 0;
};

}  // namespace plow
