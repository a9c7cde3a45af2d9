// The GGUF container: header, metadata, tensor descriptions, data. What the metadata mean is read in
// gguf_model.h. Source: the GGUF specification (ggml/docs/gguf.md), versions 2 and 3, little-endian.
#pragma once

#include "base/error.h"
#include "checkpoint/dtype.h"
#include "checkpoint/gguf_tokenizer.h"
#include "checkpoint/json.h"

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

namespace plow {

// gguf_metadata_value_type of the specification.
enum class GgufType : uint32_t {
  kUint8 = 0,
  kInt8 = 1,
  kUint16 = 2,
  kInt16 = 3,
  kUint32 = 4,
  kInt32 = 5,
  kFloat32 = 6,
  kBool = 7,
  kString = 8,
  kArray = 9,
  kUint64 = 10,
  kInt64 = 11,
  kFloat64 = 12,
};

// A metadata array as it lies in the file.
struct GgufArray {
  GgufType element = GgufType::kUint8;
  uint64_t count = 0;
  std::span<const std::byte> bytes;  // exactly the `count` elements
};

struct GgufTensor {
  std::string name;
  StoredDType dtype = StoredDType::kF32;
  std::vector<int64_t> shape;  // slowest dimension first (the file has the fastest first)
  uint64_t offset_bytes = 0;   // from the start of the file
  std::span<const std::byte> bytes;
};

// Views point into the bytes that read_gguf was given.
struct GgufFile {
  // The metadata that are numbers, booleans and strings, as one flat object {"general.architecture": "llama",
  // ...}, in the order of the file, so that JsonReader serves GGUF too. A float32 becomes the double of its
  // shortest decimal form (1e-05, not 9.999999747378752e-06), which is what config.json has.
  JsonValue metadata;
  std::unordered_map<std::string, GgufArray> arrays;
  std::vector<GgufTensor> tensors;  // in the order of the file

  // Errors (kInput, beginning with `source`): the array is there and its elements are of another type. An
  // absent array is an empty view.
  Result<GgufStrings> strings(const std::string& key, const std::string& source) const;
  template <class T>
  Result<GgufNumbers<T>> numbers(const std::string& key, GgufType type, const std::string& source) const {
    PLOW_TRY(const GgufArray array, array_of(key, type, source));
    return GgufNumbers<T>(array.bytes);
  }

 private:
  Result<GgufArray> array_of(const std::string& key, GgufType type, const std::string& source) const;
};

// Errors (kInput, beginning with `source`): any departure from the specification; a block format that is not
// in StoredDType, by name; big-endian files, version 1, files split in several.
Result<GgufFile> read_gguf(std::span<const std::byte> file, const std::string& source);

}  // namespace plow
