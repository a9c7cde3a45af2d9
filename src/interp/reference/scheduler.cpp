#include "interp/reference/scheduler.h"

#include <algorithm>

namespace plow::reference {

uint32_t Scheduler::pick(std::span<const uint32_t> runnable, std::span<const uint32_t> done) {
  switch (policy_) {
    case Policy::kRoundRobin: {
      const auto after = std::upper_bound(runnable.begin(), runnable.end(), last_);
      return last_ = after == runnable.end() ? runnable.front() : *after;
    }
    case Policy::kRandom:
      return any(runnable);
    case Policy::kFurthestAhead:
      return *std::max_element(runnable.begin(), runnable.end(),
                               [&](uint32_t a, uint32_t b) { return done[a] < done[b]; });
    case Policy::kDelayOne: {
      const uint32_t worker = any(runnable);
      if (runnable.size() == 1 || worker != seed_ % done.size()) return worker;
      return worker == runnable.front() ? runnable.back() : runnable.front();
    }
    case Policy::kReverse:
      return runnable.back();
  }
  return runnable.front();
}

}  // namespace plow::reference
