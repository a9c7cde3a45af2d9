// Streams the checkpoint's weights and the graph's constants into weights.tape.
#pragma once

#include <vector>

#include "base/digest.h"
#include "base/staged_directory.h"
#include "bundle/bundle.h"
#include "checkpoint/checkpoint.h"
#include "compile/pipeline.h"
#include "packet/tape.h"

namespace plow {

struct WrittenTape {
  std::vector<SourceRecord> sources;  // by tape tensor
  Digest128 digest;                   // of the whole file
};

// Names and places of the tape's tensors; the digests are known once they are written.
std::vector<SourceRecord> planned_sources(const OpGraph& graph, const TapePlan& plan);

// Writes "weights.tape" of plan.bytes bytes. Needs a few tens of megabytes beside the mapped checkpoint, however large the model is.
Result<WrittenTape> write_tape(const OpGraph& graph, const TapePlan& plan, const Checkpoint& checkpoint,
                               const StagedDirectory& directory, ProgressSink& progress);

}  // namespace plow
