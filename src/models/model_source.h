// What a family builds from: the configuration, field by field, and the tensors, each of which must be
// claimed once.
#pragma once

#include "checkpoint/checkpoint.h"
#include "graph/builder.h"
#include "models/models.h"

#include <string>
#include <vector>

namespace plow {

// Makes weight nodes of checkpoint tensors. The first error sticks and check() returns it, so that a model is
// written down without a test after each line.
class TensorClaims {
 public:
  TensorClaims(const Checkpoint& checkpoint, const ModelOptions& options, std::string architecture);

  // [rows, cols] in the dtype that the options say.
  NodeId matrix(GraphBuilder& builder, const std::string& name, uint32_t rows, uint32_t cols);
  // A norm's gain or a bias: [size] in the checkpoint, f32 [1, size] in the graph.
  NodeId vector(GraphBuilder& builder, const std::string& name, uint32_t size);

  // A tied head that the checkpoint also stores is the embedding again, byte for byte, or an error. Makes no
  // node.
  void copy_of(const std::string& name, const std::string& original);

  // Errors (kInput): a tensor that is missing, misshapen, or was not claimed by anyone. Buffers that old
  // versions of transformers saved (rotary_emb.inv_freq, and the cosines and sines made of it) follow from
  // the configuration and are passed over.
  Status check() const;

 private:
  const CheckpointTensor* claim(const std::string& name, const std::vector<int64_t>& shape);
  void fail(const std::string& message);

  const Checkpoint& checkpoint_;
  const ModelOptions& options_;
  std::string architecture_;
  std::vector<bool> claimed_;  // by tensor of the checkpoint
  Status status_;
};

struct ModelSource {
  JsonReader& reader;
  const JsonFields& config;
  TensorClaims& tensors;
  const ModelOptions& options;
};

// One a line of models.def.
#define PLOW_MODEL(architecture, function) Result<OpGraph> function(ModelSource& source);
#include "models/models.def"

// Fields that every family's config.json may have and that do not change what a model computes: provenance,
// training, and what is asked of a tokenizer or of generation. Fields that are null among them.
void ignore_harmless_fields(const JsonFields& config);

// A field that is null is one that is absent.
void ignore_null_fields(const JsonFields& fields);

}  // namespace plow
