// From work to time: a roofline a worker. Pure arithmetic, monotone in every argument.
#pragma once

#include "cost/part.h"
#include "graph/op_def.h"

namespace plow {

// How large a step is. Context: positions that a row of attention reads where no window cuts them off.
struct StepSize {
  double tokens = 1;
  double samples = 1;
  double context = 1024;
};

// What one task, or a whole operator, does.
struct Load {
  double bytes = 0;     // streamed from memory
  double flops = 0;     // of the matrix body
  double elements = 0;  // of row-wise bodies
};

// The load of an operator over all its tiles.
Load op_load(Op op, std::span<const ValueType> inputs, const ValueType& output, const Attributes& attributes,
             const StepSize& size);
// The same of a node; none for a leaf.
Load node_load(const OpGraph& graph, NodeId id, const StepSize& size);

inline Load share_of(const Load& load, double share) {
  return {load.bytes * share, load.flops * share, load.elements * share};
}

// Nanoseconds of one worker: streaming and arithmetic overlap, elements and the packet's own cost add to
// them.
double load_ns(const Part& part, const Load& load);

// Nanoseconds from the start to the end of an operator that is cut into equal packets for `workers` workers.
double node_ns(const Part& part, const Load& load, uint32_t workers);

// Nanoseconds that a consumer on another worker begins after its producer has ended.
double wait_ns(const Part& part);

}  // namespace plow
