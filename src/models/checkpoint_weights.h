// The evaluator's view of a checkpoint's tensors.
#pragma once

#include "checkpoint/checkpoint.h"
#include "graph/evaluate.h"

namespace plow {

class CheckpointWeights final : public WeightSource {
 public:
  explicit CheckpointWeights(const Checkpoint& checkpoint) : checkpoint_(checkpoint) {}

  // REQUIRES a graph that build_model made of this checkpoint.
  Status read_rows(const std::string& name, uint32_t first, uint32_t count, uint32_t cols,
                   float* out) const override {
    const CheckpointTensor* tensor = checkpoint_.find(name);
    if (tensor == nullptr || tensor->row_values() != cols || int64_t{first} + count > tensor->n_rows()) {
      return input_error(
          fmt::format("{}: tensor '{}' is not what the graph was made of", checkpoint_.path.string(), name));
    }
    plow::read_rows(*tensor, first, count, out);
    return {};
  }

 private:
  const Checkpoint& checkpoint_;
};

}  // namespace plow
