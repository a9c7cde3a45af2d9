#include "serve/stop_matcher.h"

#include <algorithm>
#include <utility>

namespace plow {

std::string StopMatcher::push(std::string_view piece) {
  held_ += piece;
  size_t begin = std::string::npos, end = std::string::npos;
  for (const std::string& stop : stops_) {
    const size_t at = held_.find(stop);
    if (at == std::string::npos) continue;
    const size_t stop_end = at + stop.size();
    if (stop_end < end || (stop_end == end && at < begin)) {
      begin = at;
      end = stop_end;
      stopped_by_ = &stop;
    }
  }
  if (stopped()) return std::exchange(held_, {}).substr(0, begin);
  const size_t kept = maybe_begun();
  std::string certain = held_.substr(0, held_.size() - kept);
  held_.erase(0, certain.size());
  return certain;
}

// Bytes at the end that are the beginning of a stop string; the longest such.
size_t StopMatcher::maybe_begun() const {
  size_t longest = 0;
  for (const std::string& stop : stops_) {
    for (size_t n = std::min(stop.size() - 1, held_.size()); n > longest; --n) {
      if (std::string_view(held_).substr(held_.size() - n) == std::string_view(stop).substr(0, n))
        longest = n;
    }
  }
  return longest;
}

std::string StopMatcher::finish() { return std::exchange(held_, {}); }

}  // namespace plow
