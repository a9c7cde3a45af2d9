// From work to time: a roofline a worker, with the waits between workers. Pure arithmetic, monotone in every
// argument: more bytes, operations, rows, positions or hops never take less time.
#pragma once

#include "cost/part.h"
#include "cost/units.h"
#include "graph/op_def.h"

#include <array>

namespace plow {

// How large a step is: rows of tokens that belong to so many sequences in equal parts, each with `context`
// positions in the cache before its first row; and rows that pick a token.
struct StepSize {
  double tokens = 1;
  double samples = 1;
  double context = 1024;
  double sequences = 1;
};

// Bodies that work row by row: the PLOW_ROW_BODY lines of figures.def.
enum class RowBody : uint8_t {
  kNorm,
  kRotate,
  kAngles,
  kStore,
  kSilu,
  kGelu,
  kSum,
  kCap,
  kCopy,
  kPick,
  kCount
};

struct RowWork {
  Runs runs;
  Elements elements;
};
using RowWorks = std::array<RowWork, static_cast<size_t>(RowBody::kCount)>;

// What a task, or a whole operator, does.
struct Load {
  Bytes weights;            // of the tape
  Flops products;           // of the matrix body
  double product_rows = 0;  // rows that share a pass over the weights
  bool wide = false;        // weights in f32
  Bytes kv;                 // of the cache, read
  double pairs = 0;         // of a query head's row and a position that it attends to
  double queries = 0;       // that share a pass over the positions
  double head_columns = 0;
  Bytes inputs;         // activations
  RowWorks row_wise{};  // shared out with the columns
  RowWorks prologue{};  // of whole rows, which every worker that has a piece of the columns does again
};

// The load of an operator over all its tiles.
Load op_load(Op op, std::span<const ValueType> inputs, const ValueType& output, const Attributes& attributes,
             const StepSize& size);
// The same of a node; none for a leaf.
Load node_load(const OpGraph& graph, NodeId id, const StepSize& size);

// What a task has that does `share` of an operator's columns.
Load share_of(const Load& load, double share);

// What a worker's time depends on besides its own load.
struct Surroundings {
  Bytes working_set{1e18};  // that the worker streams through before it reads the same weights again
  double streaming = 1;     // share of the workers that stream at the same time: 1 is all of them
  double remote = 0;        // share of the inputs that other workers wrote
};

// One packet on one worker, begun when its waits are met.
Nanoseconds load_time(const Part& part, const Load& load, const Surroundings& around);

// Nanoseconds from the start to the end of an operator that is cut into equal packets for `workers` workers.
double node_ns(const Part& part, const Load& load, uint32_t workers);

// Nanoseconds that a consumer on another worker begins after its producer has ended.
double wait_ns(const Part& part);

}  // namespace plow
