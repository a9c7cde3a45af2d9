// From work to time: a roofline a worker. Pure arithmetic, monotone in every argument.
#pragma once

#include "cost/part.h"

namespace plow {

// What one task does.
struct Load {
  double bytes = 0;     // streamed from memory
  double flops = 0;     // of the matrix body
  double elements = 0;  // of row-wise bodies
};

// Nanoseconds of one worker: streaming and arithmetic overlap, elements and the packet's own cost add to them.
inline double load_ns(const Part& part, const Load& load) {
  const double stream = load.bytes / part.read_bytes_per_ns;
  const double arithmetic = load.flops / part.flops_per_ns;
  return (stream > arithmetic ? stream : arithmetic) + load.elements * part.element_ns + part.packet_ns;
}

}  // namespace plow
