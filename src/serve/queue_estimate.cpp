#include "serve/queue_estimate.h"

#include <algorithm>
#include <cmath>

namespace plow {
namespace {

constexpr double kNewest = 0.2;    // weight of the newest interval in the mean
constexpr double kUnmeasured = 1;  // seconds an answer, before any has ended
constexpr double kLongest = 600;   // what a client can be asked to wait

}  // namespace

void QueueEstimate::began(Time now) {
  const std::lock_guard lock(mutex_);
  if (open_++ == 0) mark_ = now;
}

void QueueEstimate::ended(Time now) {
  const std::lock_guard lock(mutex_);
  if (open_ > 0) --open_;
  const double interval = std::chrono::duration<double>(now - mark_).count();
  mark_ = now;
  interval_ = interval_ == 0 ? interval : interval_ + kNewest * (interval - interval_);
}

void QueueEstimate::left() {
  const std::lock_guard lock(mutex_);
  if (open_ > 0) --open_;
}

uint32_t QueueEstimate::seconds(uint64_t waiting) const {
  const std::lock_guard lock(mutex_);
  const double each = interval_ == 0 ? kUnmeasured : interval_;
  return static_cast<uint32_t>(std::clamp(std::ceil(each * static_cast<double>(waiting + 1)), 1.0, kLongest));
}

}  // namespace plow
