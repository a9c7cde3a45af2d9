#include "checkpoint/safetensors.h"

#include <algorithm>
#include <cstring>

namespace plow {

namespace {

constexpr size_t kLengthBytes = 8;
constexpr uint64_t kMaxHeaderBytes = 100'000'000;  // the bound of the specification's reference reader
// {"dtype":..,"shape":[..],"data_offsets":[..,..]} makes about 8 values, so this is half a million tensors;
// the largest published checkpoints have a hundred thousand in all their shards together.
constexpr size_t kMaxHeaderValues = size_t{4} << 20;
constexpr uint32_t kHeaderDepth = 8;  // a header nests 3 deep

// What the specification allows and this library does not read, so that the message can tell it from a typing
// error.
constexpr std::string_view kOtherDTypes[] = {"BOOL",    "U8",      "I8",      "U16",     "I16",    "U32",
                                             "I32",     "U64",     "I64",     "F64",     "C64",    "F4",
                                             "F8_E5M2", "F8_E4M3", "F8_E8M0", "F6_E2M3", "F6_E3M2"};

Result<StoredDType> read_dtype(const JsonFields& fields) {
  PLOW_TRY(const std::string name, fields.string("dtype"));
  if (name == "F32") return StoredDType::kF32;
  if (name == "F16") return StoredDType::kF16;
  if (name == "BF16") return StoredDType::kBf16;
  if (std::find(std::begin(kOtherDTypes), std::end(kOtherDTypes), name) != std::end(kOtherDTypes)) {
    return fields.error(
        fmt::format("dtype {} is not supported; convert the tensor to BF16, F16 or F32", name));
  }
  return fields.error("dtype", "the name of a safetensors dtype (BF16, F16 or F32 are read)");
}

// The count of bytes of the shape; the error when it does not fit in 63 bits.
Result<uint64_t> shape_bytes(const JsonFields& fields, const std::vector<int64_t>& shape, StoredDType dtype) {
  uint64_t bytes = dtype_info(dtype).block_bytes;
  for (const int64_t dimension : shape) {
    if (dimension < 0) return fields.error("shape", "an array of positive integers");
    if (dimension == 0)
      return fields.error(
          "shape has a dimension of 0, so the tensor holds nothing; no model needs such a tensor");
    const auto d = static_cast<uint64_t>(dimension);
    if (bytes > static_cast<uint64_t>(std::numeric_limits<int64_t>::max()) / d) {
      return fields.error(fmt::format("shape {} has more bytes than 64 bits can count",
                                      fields.value().find("shape")->brief()));
    }
    bytes *= d;
  }
  return bytes;
}

Result<CheckpointTensor> read_entry(const JsonMember& member, std::span<const std::byte> data,
                                    uint64_t data_at, const std::string& source, uint32_t file_idx) {
  JsonReader reader(member.value, fmt::format("{}: tensor '{}'", source, member.key));
  PLOW_TRY(const JsonFields fields, reader.root());
  CheckpointTensor tensor;
  tensor.name = tensor.stored_name = member.key;
  tensor.file_idx = file_idx;
  PLOW_TRY(tensor.dtype, read_dtype(fields));
  PLOW_TRY(tensor.shape, fields.integers("shape"));
  PLOW_TRY(const auto offsets, fields.integers("data_offsets"));
  PLOW_TRY_STATUS(reader.check_all_read());
  if (offsets.size() != 2 || offsets[0] < 0 || offsets[1] < offsets[0]) {
    return fields.error("data_offsets", "[begin, end] with 0 <= begin <= end");
  }
  const auto begin = static_cast<uint64_t>(offsets[0]);
  const auto end = static_cast<uint64_t>(offsets[1]);
  if (end > data.size()) {
    return fields.error(
        fmt::format("its bytes end at {} of the data, but the file has {} (is the download complete?)", end,
                    data.size()));
  }
  PLOW_TRY(const uint64_t bytes, shape_bytes(fields, tensor.shape, tensor.dtype));
  if (bytes != end - begin) {
    return fields.error(fmt::format("shape {} of {} is {} bytes, but data_offsets span {}",
                                    member.value.find("shape")->brief(), stored_dtype_name(tensor.dtype),
                                    bytes, end - begin));
  }
  tensor.offset_bytes = data_at + begin;
  tensor.bytes = data.subspan(begin, bytes);
  return tensor;
}

// The specification allows neither overlaps nor holes: a byte that nobody describes could hold anything.
Status check_contiguous(const std::vector<CheckpointTensor>& tensors, uint64_t data_at, uint64_t data_bytes,
                        const std::string& source) {
  uint64_t expected = data_at;
  for (const auto& tensor : tensors) {
    if (tensor.offset_bytes != expected) {
      return input_error(
          fmt::format("{}: tensor '{}' begins at byte {} of the data, {} where the one before it ends ({})",
                      source, tensor.name, tensor.offset_bytes - data_at,
                      tensor.offset_bytes < expected ? "before" : "after", expected - data_at));
    }
    expected += tensor.bytes.size();
  }
  if (expected != data_at + data_bytes) {
    return input_error(fmt::format("{}: {} bytes at the end of the file belong to no tensor", source,
                                   data_at + data_bytes - expected));
  }
  return {};
}

Status check_metadata(const JsonValue& metadata, const std::string& source) {
  const auto* members = metadata.as_object();
  if (members == nullptr) return input_error(source + ": '__metadata__' must be an object of strings");
  for (const auto& member : *members) {
    if (member.value.as_string() == nullptr) {
      return input_error(fmt::format("{}: '__metadata__.{}' must be a string, found {}", source, member.key,
                                     member.value.brief()));
    }
  }
  return {};
}

Result<std::string_view> header_text(std::span<const std::byte> file, const std::string& source) {
  if (file.size() < kLengthBytes) {
    return input_error(fmt::format("{}: {} bytes are too few for a safetensors file", source, file.size()));
  }
  uint64_t n = 0;
  std::memcpy(&n, file.data(), sizeof n);
  if (n > kMaxHeaderBytes) {
    return input_error(
        fmt::format("{}: the header would have {} bytes, more than the {} that safetensors allows; is this a "
                    "safetensors file?",
                    source, n, kMaxHeaderBytes));
  }
  if (n > file.size() - kLengthBytes) {
    return input_error(
        fmt::format("{}: the header has {} bytes, but the file ends after {} (is the download complete?)",
                    source, n, file.size() - kLengthBytes));
  }
  const std::string_view text(reinterpret_cast<const char*>(file.data()) + kLengthBytes, n);
  if (text.empty() || text[0] != '{') return input_error(source + ": the header must begin with '{'");
  return text;
}

}  // namespace

Result<std::vector<CheckpointTensor>> read_safetensors(std::span<const std::byte> file,
                                                       const std::string& source, uint32_t file_idx) {
  PLOW_TRY(const std::string_view text, header_text(file, source));
  PLOW_TRY(
      const JsonValue header,
      parse_json(text, source + " (header)",
                 {.max_bytes = kMaxHeaderBytes, .max_depth = kHeaderDepth, .max_values = kMaxHeaderValues}));
  const uint64_t data_at = kLengthBytes + text.size();
  const auto data = file.subspan(data_at);
  std::vector<CheckpointTensor> tensors;
  for (const auto& member : *header.as_object()) {
    if (member.key == "__metadata__") {
      PLOW_TRY_STATUS(check_metadata(member.value, source));
      continue;
    }
    PLOW_TRY(CheckpointTensor tensor, read_entry(member, data, data_at, source, file_idx));
    tensors.push_back(std::move(tensor));
  }
  std::sort(tensors.begin(), tensors.end(),
            [](const auto& a, const auto& b) { return a.offset_bytes < b.offset_bytes; });
  PLOW_TRY_STATUS(check_contiguous(tensors, data_at, data.size(), source));
  return tensors;
}

}  // namespace plow
