#include "checkpoint/gguf_model.h"

#include <algorithm>

namespace plow {

namespace {

Result<GgufArchitecture> find_architecture(const JsonFields& fields) {
  PLOW_TRY(const std::string name, fields.string("general.architecture"));
  std::string known;
  for (const auto& architecture : kGgufArchitectures) {
    if (architecture.name == name) return architecture;
    known += (known.empty() ? "" : ", ") + std::string(architecture.name);
  }
  return fields.error(fmt::format("the architecture '{}' is not supported; supported: {}", name, known));
}

// Keys under the architecture's own prefix describe the computation, so one that nobody read is an error;
// general.*, tokenizer.* and others do not.
Status check_understood(const GgufFile& gguf, const JsonReader& reader, const GgufArchitecture& architecture,
                        const std::string& source) {
  const std::string prefix = std::string(architecture.name) + ".";
  for (const auto& key : reader.unread()) {
    if (key.starts_with(prefix)) {
      return input_error(fmt::format("{}: '{}' ({}) is not understood, and it may change the result", source,
                                     key, gguf.metadata.find(key)->brief()));
    }
  }
  return {};
}

// All sizes of the supported architectures are one number for all layers.
Status check_no_arrays(const GgufFile& gguf, const GgufArchitecture& architecture,
                       const std::string& source) {
  const std::string prefix = std::string(architecture.name) + ".";
  std::string first;  // in order of names, so that the message does not depend on a hash
  for (const auto& [key, array] : gguf.arrays) {
    if (key.starts_with(prefix) && (first.empty() || key < first)) first = key;
  }
  if (first.empty()) return {};
  return input_error(
      fmt::format("{}: '{}' is an array; a value for each layer is not supported", source, first));
}

}  // namespace

Result<Checkpoint> gguf_to_checkpoint(const GgufFile& gguf, const std::string& source) {
  JsonReader reader(gguf.metadata, source);
  PLOW_TRY(const JsonFields fields, reader.root());
  PLOW_TRY(const GgufArchitecture architecture, find_architecture(fields));
  PLOW_TRY_STATUS(check_no_arrays(gguf, architecture, source));
  PLOW_TRY(const GgufHeads heads, gguf_heads(fields, architecture));

  Checkpoint checkpoint;
  checkpoint.format = CheckpointFormat::kGguf;
  checkpoint.config_source = source + " (metadata)";
  PLOW_TRY(checkpoint.tensors, gguf_tensors(gguf, architecture, heads, source));
  PLOW_TRY(checkpoint.gguf_tokenizer, gguf_tokenizer(gguf, fields, source));
  const auto rope_factors =
      std::find_if(gguf.tensors.begin(), gguf.tensors.end(),
                   [](const GgufTensor& tensor) { return tensor.name == "rope_freqs.weight"; });
  PLOW_TRY(checkpoint.config, gguf_config(fields, architecture, checkpoint.tensors, checkpoint.gguf_tokenizer,
                                          rope_factors == gguf.tensors.end() ? nullptr : &*rope_factors));
  if (checkpoint.gguf_tokenizer) {
    PLOW_TRY(checkpoint.generation_config,
             gguf_generation_config(fields, architecture, *checkpoint.gguf_tokenizer));
  }
  PLOW_TRY_STATUS(check_understood(gguf, reader, architecture, source));
  return checkpoint;
}

}  // namespace plow
