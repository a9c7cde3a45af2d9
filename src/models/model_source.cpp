#include "models/model_source.h"

#include <algorithm>

namespace plow {
namespace {

std::string shape_text(const std::vector<int64_t>& shape) {
  return fmt::format("[{}]", fmt::join(shape, ", "));
}

DType graph_dtype(StoredDType stored, bool keep_blocks) {
  switch (stored) {
    case StoredDType::kF32:
      return DType::kF32;
    case StoredDType::kF16:
      return DType::kF16;
    case StoredDType::kQ8_0:
      return keep_blocks ? DType::kQ8_0 : DType::kBf16;
    case StoredDType::kQ4_0:
      return keep_blocks ? DType::kQ4_0 : DType::kBf16;
    default:
      return DType::kBf16;  // other blocks of few bits have no format of their own in the tape
  }
}

bool is_rotary_buffer(const std::string& name) {
  for (const char* end : {"rotary_emb.inv_freq", "rotary_emb.cos_cached", "rotary_emb.sin_cached"}) {
    if (name.ends_with(end)) return true;
  }
  return false;
}

}  // namespace

TensorClaims::TensorClaims(const Checkpoint& checkpoint, const ModelOptions& options,
                           std::string architecture)
    : checkpoint_(checkpoint),
      options_(options),
      architecture_(std::move(architecture)),
      claimed_(checkpoint.tensors.size(), false) {}

void TensorClaims::fail(const std::string& message) {
  if (status_.ok()) status_ = input_error(checkpoint_.path.string() + ": " + message);
}

const CheckpointTensor* TensorClaims::claim(const std::string& name, const std::vector<int64_t>& shape) {
  const CheckpointTensor* tensor = checkpoint_.find(name);
  if (tensor == nullptr) {
    fail(fmt::format("tensor '{}' is missing; {} needs it with the shape {}", name, architecture_,
                     shape_text(shape)));
    return nullptr;
  }
  claimed_[static_cast<size_t>(tensor - checkpoint_.tensors.data())] = true;
  if (tensor->shape != shape) {
    fail(fmt::format("tensor '{}' has the shape {}, but by {} it must be {}", name, shape_text(tensor->shape),
                     checkpoint_.config_source, shape_text(shape)));
    return nullptr;
  }
  return tensor;
}

NodeId TensorClaims::matrix(GraphBuilder& builder, const std::string& name, uint32_t rows, uint32_t cols) {
  const CheckpointTensor* tensor = claim(name, {rows, cols});
  const DType stored = tensor == nullptr ? DType::kF32 : graph_dtype(tensor->dtype, options_.keep_blocks);
  return builder.weight(name, options_.weight_dtype.value_or(stored), rows, cols);
}

NodeId TensorClaims::vector(GraphBuilder& builder, const std::string& name, uint32_t size) {
  claim(name, {size});
  return builder.weight(name, DType::kF32, 1, size);
}

void TensorClaims::copy_of(const std::string& name, const std::string& original) {
  const CheckpointTensor* copy = checkpoint_.find(name);
  const CheckpointTensor* from = checkpoint_.find(original);
  if (copy == nullptr || from == nullptr) return;
  claimed_[static_cast<size_t>(copy - checkpoint_.tensors.data())] = true;
  if (copy->dtype != from->dtype || copy->shape != from->shape ||
      !std::ranges::equal(copy->bytes, from->bytes)) {
    fail(
        fmt::format("'tie_word_embeddings' says that '{}' is '{}', but the checkpoint holds both and they "
                    "differ; set it to "
                    "false or remove the tensor that is wrong",
                    name, original));
  }
}

Status TensorClaims::check() const {
  if (!status_.ok()) return status_;
  for (size_t i = 0; i < claimed_.size(); ++i) {
    const std::string& name = checkpoint_.tensors[i].name;
    if (claimed_[i] || is_rotary_buffer(name)) continue;
    return input_error(fmt::format("{}: tensor '{}' with the shape {} is not one that {} has by {}",
                                   checkpoint_.path.string(), name, shape_text(checkpoint_.tensors[i].shape),
                                   architecture_, checkpoint_.config_source));
  }
  return {};
}

void ignore_harmless_fields(const JsonFields& config) {
  // Provenance and how the files were written.
  config.ignore({"_name_or_path", "model_type", "transformers_version", "torch_dtype", "dtype",
                 "architectures", "_attn_implementation", "_attn_implementation_autoset",
                 "transformers.js_config", "unsloth_fixed", "unsloth_version", "tokenizer_class", "license",
                 "finetuning_task", "task_specific_params"});
  // Training.
  config.ignore({"initializer_range", "attention_dropout", "hidden_dropout", "gradient_checkpointing",
                 "pretraining_tp"});
  // Generation and the tokenizer: generation_config.json and the tokenizer's own files say what holds.
  config.ignore({"use_cache", "cache_implementation", "bos_token_id", "eos_token_id", "pad_token_id",
                 "sep_token_id", "decoder_start_token_id", "max_length", "min_length", "do_sample",
                 "temperature", "top_k", "top_p", "repetition_penalty", "num_beams", "output_attentions",
                 "output_hidden_states", "return_dict"});
  ignore_null_fields(config);
}

void ignore_null_fields(const JsonFields& fields) {
  for (const JsonMember& member : *fields.value().as_object()) {
    if (member.value.is_null()) fields.find(member.key);
  }
}

}  // namespace plow
