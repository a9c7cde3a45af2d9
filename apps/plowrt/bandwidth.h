// How fast the cores of this machine read memory: the denominator of every figure of speed on a CPU.
#pragma once

#include "base/error.h"

#include <cstdint>

namespace plow {

struct ReadBandwidth {
  double median = 0;  // bytes a second, all threads together, by the wall clock
  double best = 0;
  // By a thread's own CPU time, the mean of the threads' best: what a core gives when others leave it alone.
  double own_core = 0;
  uint64_t bytes_per_thread = 0;
};

// Each of `threads` threads sums a buffer of its own, several times over. The buffers are far larger than the
// caches of a core; together they take at most a quarter of `memory_available`. Takes about a second. Errors
// (kDoesNotFit): no memory for the buffers.
Result<ReadBandwidth> measure_read_bandwidth(uint32_t threads, uint64_t memory_available);

}  // namespace plow
