// From a checkpoint to its operator graph: the only place that knows model families. A family is a file here
// and a line in models.def.
//
// Nothing is guessed: an architecture, a field of the configuration, a kind of rope scaling or a tensor that
// is not understood is an error that names it.
#pragma once

#include "abi/tensor.h"
#include "base/error.h"
#include "checkpoint/checkpoint.h"
#include "graph/graph.h"

#include <optional>

namespace plow {

struct ModelOptions {
  DType kv_dtype = DType::kBf16;      // of the cache: f32, bf16 or f16
  std::optional<DType> weight_dtype;  // of matrices; unset: as the checkpoint stores them
  // Of those, Q8_0 and Q4_0 stay as they are; blocks of other kinds, and all when this is false, become bf16.
  bool keep_blocks = false;
};

// The graph of primitive operators. Norm gains and biases are f32, whatever the checkpoint stores. Weights
// carry the checkpoint's names. Errors (kInput), beginning with the configuration or the checkpoint: a field
// that is missing, of the wrong type, out of range or not understood; an architecture that models.def lacks;
// a tensor that is missing, of another shape or not one of the architecture's.
Result<OpGraph> build_model(const Checkpoint& checkpoint, const ModelOptions& options);

}  // namespace plow
