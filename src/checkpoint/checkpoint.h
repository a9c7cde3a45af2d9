// Checkpoint: the first product of the road. Names, shapes and mapped bytes of a model's tensors, its
// configuration and, for GGUF, its tokenizer. It knows no model family: what a field of the configuration
// means is read in models/.
//
// Whatever the file format, the tensors carry Hugging Face names, shapes are row-major with the slowest
// dimension first, and read_rows() gives the values in Hugging Face's layout and convention; the
// configuration is what config.json of that architecture would say.
#pragma once

#include "base/error.h"
#include "base/mapped_file.h"
#include "checkpoint/dtype.h"
#include "checkpoint/gguf_tokenizer.h"
#include "checkpoint/json.h"

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace plow {

struct CheckpointTensor {
  std::string name;         // "model.layers.0.self_attn.q_proj.weight"
  std::string stored_name;  // as the file says it; differs for GGUF ("blk.0.attn_q.weight")
  StoredDType dtype = StoredDType::kF32;
  std::vector<int64_t> shape;        // may be empty (one value); no dimension is 0
  uint32_t file_idx = 0;             // into Checkpoint::files
  uint64_t offset_bytes = 0;         // of `bytes` in that file
  std::span<const std::byte> bytes;  // as stored

  // How values come from what is stored (GGUF only; read_rows applies both).
  // llama.cpp stores the rows of Q and K of the architecture "llama" with the two halves of each head
  // interleaved: row h*d + i*2 + j of the file is row h*d + j*(d/2) + i of the tensor. 0: rows are stored in
  // order.
  uint32_t interleaved_heads = 0;
  // Added to each value: -1 where GGUF stores 1 + w (the norms of Gemma).
  float addend = 0.0f;

  // The last dimension is a row; a tensor of one dimension is one row, and so is a single value.
  int64_t n_rows() const;
  int64_t row_values() const;
  // True when `bytes` are the tensor as it is: nothing is permuted or added.
  bool stored_as_is() const { return interleaved_heads == 0 && addend == 0.0f; }
};

// The values of rows [first_row, first_row + n_rows) as float32: bf16 and f16 exactly, blocks as ggml's
// reference dequantisation computes them, bit for bit. This is the one road to values, for every dtype.
// REQUIRES the rows to be in the tensor, and `out` to hold n_rows * row_values() floats.
void read_rows(const CheckpointTensor& tensor, int64_t first_row, int64_t n_rows, float* out);

// The same rows as they are stored, blocks and all, in the order of the tensor's rows: n_rows *
// stored_row_bytes(). REQUIRES more than one dimension and no addend.
uint64_t stored_row_bytes(const CheckpointTensor& tensor);
void read_stored_rows(const CheckpointTensor& tensor, int64_t first_row, int64_t n_rows, std::byte* out);

enum class CheckpointFormat : uint8_t { kSafetensors, kGguf };

struct Checkpoint {
  CheckpointFormat format = CheckpointFormat::kSafetensors;
  std::filesystem::path path;  // what load_checkpoint was given
  std::string config_source;  // how messages name the configuration: "config.json", or "NAME.gguf (metadata)"
  JsonValue config;           // an object
  std::optional<JsonValue> generation_config;  // an object
  std::vector<MappedFile> files;
  std::vector<CheckpointTensor> tensors;  // sorted by name, names unique
  std::optional<GgufTokenizer> gguf_tokenizer;

  // Null when there is none of that name.
  const CheckpointTensor* find(std::string_view name) const;
};

// Opens a checkpoint without reading its weights. `path` is
//  - a directory with config.json and model.safetensors, or model.safetensors.index.json and the shards it
//  names;
//  - a file that ends in .gguf.
// Errors (kInput): every way in which a file does not keep to its format's specification, with the file, the
// tensor and what is wrong; a dtype, GGUF architecture or GGUF tensor that is not supported, by name.
Result<Checkpoint> load_checkpoint(const std::filesystem::path& path);

}  // namespace plow
