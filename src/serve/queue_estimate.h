// How long until a place is free: what Retry-After says. From the measured time between the ends of answers
// while there is work.
#pragma once

#include <chrono>
#include <cstdint>
#include <mutex>

namespace plow {

class QueueEstimate {
 public:
  using Time = std::chrono::steady_clock::time_point;

  void began(Time now);  // an answer was accepted
  void ended(Time now);  // one ended by itself
  void left();           // one was given up, which says nothing of the speed
  // Seconds until `waiting` answers have got a slot and one more place is free; 1 to 600.
  uint32_t seconds(uint64_t waiting) const;

 private:
  mutable std::mutex mutex_;
  uint64_t open_ = 0;
  Time mark_;            // since when the next end is waited for
  double interval_ = 0;  // between ends, in seconds: exponential mean; 0: none seen
};

}  // namespace plow
