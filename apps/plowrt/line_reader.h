// Lines of standard input, where Ctrl-C interrupts the waiting (std::getline would wait on).
#pragma once

#include <string>

namespace plow {

class LineReader {
 public:
  enum class Outcome { kLine, kEnd, kInterrupted };

  // The next line without its newline. What was typed before an interrupt is dropped.
  Outcome read(std::string& line);

 private:
  std::string buffer_;  // read but not yet given out
  bool ended_ = false;
};

}  // namespace plow
