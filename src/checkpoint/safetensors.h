// The safetensors format: a 64-bit little-endian length, a JSON header of that length, then the tensors'
// bytes. Source: the format's specification (README of huggingface/safetensors, section "Format") and, for
// the bound on the header, its reference reader.
#pragma once

#include "base/error.h"
#include "checkpoint/checkpoint.h"

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

namespace plow {

// The tensors of one file, in the order of their offsets; their spans point into `file`, their file_idx is
// `file_idx`. Errors (kInput, beginning with `source`): any departure from the specification; a dtype other
// than F32, F16, BF16; a dimension of 0.
Result<std::vector<CheckpointTensor>> read_safetensors(std::span<const std::byte> file,
                                                       const std::string& source, uint32_t file_idx);

}  // namespace plow
