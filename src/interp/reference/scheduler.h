// Which worker goes next.
#pragma once

#include "interp/reference/machine.h"

#include <cstdint>
#include <random>
#include <span>

namespace plow::reference {

class Scheduler {
 public:
  Scheduler(Policy policy, uint64_t seed) : policy_(policy), seed_(seed), random_(seed) {}

  // One of `runnable` (workers in ascending order, at least one). `done`, by worker, is how many instances it
  // has run.
  uint32_t pick(std::span<const uint32_t> runnable, std::span<const uint32_t> done);

 private:
  uint32_t any(std::span<const uint32_t> workers) { return workers[random_() % workers.size()]; }

  Policy policy_;
  uint64_t seed_;
  std::mt19937_64 random_;
  uint32_t last_ = 0;
};

}  // namespace plow::reference
