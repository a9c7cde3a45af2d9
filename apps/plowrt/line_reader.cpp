#include "plowrt/line_reader.h"

#include "console/interrupt.h"

#include <unistd.h>

#include <array>
#include <cerrno>

namespace plow {

LineReader::Outcome LineReader::read(std::string& line) {
  while (true) {
    const size_t newline = buffer_.find('\n');
    if (newline != std::string::npos) {
      line = buffer_.substr(0, newline);
      buffer_.erase(0, newline + 1);
      return Outcome::kLine;
    }
    if (ended_) {
      line = std::move(buffer_);
      buffer_.clear();
      return line.empty() ? Outcome::kEnd : Outcome::kLine;
    }
    std::array<char, 4096> chunk;
    const ssize_t n = ::read(STDIN_FILENO, chunk.data(), chunk.size());
    if (n > 0) {
      buffer_.append(chunk.data(), static_cast<size_t>(n));
    } else if (n < 0 && errno == EINTR) {
      if (interrupted() == 0) continue;
      buffer_.clear();
      return Outcome::kInterrupted;
    } else {
      ended_ = true;
    }
  }
}

}  // namespace plow
